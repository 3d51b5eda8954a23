"""Run as a process of its own: do what it is told, and say how long each call took and how much memory it has.

Arguments: store directory, embedder. Reads JSON lines as a server would, one request after the other: ["store", text],
["recall", question] or ["memory", name of the stage]. Writes one object {store_ms, recall_ms, memory} in the end, the
last of them by stage. It imports only what a user's process would.
"""

from __future__ import annotations

import json
import os
import sys
import time

import commonplace


def main(arguments: list[str]) -> None:
    """Store and recall, and report."""
    directory, embedder = arguments
    times: dict[str, list[float]] = {"store_ms": [], "recall_ms": []}
    memory: dict[str, dict[str, int]] = {}
    with commonplace.open(directory, embedder=embedder or None) as book:
        from commonplace.benchmarks.harness import memory_of

        for line in sys.stdin:
            request, text = json.loads(line)
            if request == "memory":
                memory[text] = memory_of(os.getpid())
                continue
            begun = time.perf_counter()
            if request == "store":
                book.remember(text)
            else:
                book.recall(text)
            times[f"{request}_ms"].append((time.perf_counter() - begun) * 1000)
    sys.stdout.write(json.dumps({**times, "memory": memory}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
