"""Run as a process of its own: store and recall in turn, and say how long each call and how much memory it took.

Arguments: store directory, embedder. Reads a JSON object {texts, questions}, writes one {store_ms, recall_ms,
resident_bytes, peak_bytes}. It imports only what a user's process would.
"""

from __future__ import annotations

import json
import sys
import time

import commonplace


def main(arguments: list[str]) -> None:
    """Store and recall, and report."""
    directory, embedder = arguments
    task = json.load(sys.stdin)
    store_ms, recall_ms = [], []
    with commonplace.open(directory, embedder=embedder or None) as book:
        for text, question in zip(task["texts"], task["questions"], strict=True):
            begun = time.perf_counter()
            book.remember(text)
            stored = time.perf_counter()
            book.recall(question)
            recall_ms.append((time.perf_counter() - stored) * 1000)
            store_ms.append((stored - begun) * 1000)
        from commonplace.benchmarks.machine import peak_memory_bytes, resident_memory_bytes

        memory = {"resident_bytes": resident_memory_bytes(), "peak_bytes": peak_memory_bytes()}
    sys.stdout.write(json.dumps({"store_ms": store_ms, "recall_ms": recall_ms, **memory}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
