"""Run as a process of its own: open a store, answer the questions of a file, say what memory that took.

Arguments: store directory, namespace, embedder, path of a JSON list of questions. Writes one line after the first
answer and one JSON object {resident_bytes, peak_bytes} after the last. It imports only what answering needs, so that
what is measured is what a user's process would take.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import commonplace


def main(arguments: list[str]) -> None:
    """Answer the questions and report."""
    store, namespace, embedder, path = arguments
    questions = json.loads(Path(path).read_bytes())
    with commonplace.open(store, namespace, embedder or None) as book:
        for number, question in enumerate(questions):
            book.search(question)
            if number == 0:
                sys.stdout.write("answered\n")
                sys.stdout.flush()
        # Imported when the answers are given: the first of them is timed from outside.
        from commonplace.benchmarks.machine import peak_memory_bytes, resident_memory_bytes

        figures = {"resident_bytes": resident_memory_bytes(), "peak_bytes": peak_memory_bytes()}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
