"""Run as a process of its own: ask a graph what it is told, and say how long each call took and how much memory it has.

Arguments: store directory, namespace, embedder. Reads JSON lines, one request after the other: [name of the call, where
its time is to be told, arguments…], or ["memory", name of the stage]. Writes one object {times, sizes, memory} in the
end: milliseconds by where, how many entities each neighbourhood had, and memory by stage. It imports only what a user's
process would.
"""

from __future__ import annotations

import json
import os
import sys
import time

import commonplace


def main(arguments: list[str]) -> None:
    """Ask, and report."""
    directory, namespace, embedder = arguments
    times: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    memory: dict[str, dict[str, int]] = {}
    with commonplace.open(directory, namespace, embedder or None) as book:
        from commonplace.benchmarks.harness import memory_of

        for line in sys.stdin:
            call, start, *values = json.loads(line)
            if call == "memory":
                memory[start] = memory_of(os.getpid())
                continue
            method = getattr(book.graph, call)
            begun = time.perf_counter()
            result = method(*values)
            times.setdefault(start, []).append((time.perf_counter() - begun) * 1000)
            if call == "neighbourhood":
                sizes.setdefault(start, []).append(len(result.entities))
    sys.stdout.write(json.dumps({"times": times, "sizes": sizes, "memory": memory}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
