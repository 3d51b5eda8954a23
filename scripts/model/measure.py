"""Measure an embedder's vectors alone on the development data: sentence similarity and dense retrieval, no fusion.

COMMONPLACE_DATA=DIR PYTHONPATH=scripts python -m model.measure [EMBEDDER [COLLECTION …]]

Collections are directories in the layout of BEIR, measured beside those of the development data;
`scripts/ranking/made_sets.py` makes two.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.registry import open_embedder
from commonplace.models.static import StaticEmbedder

Floats = NDArray[np.float32]
COLLECTIONS = ("cosqa-dev", "cranfield", "medquad")
DEPTH = 10
TIMED, QUERIES = 500, 300
"""So many passages are embedded for the throughput, and so many queries, one by one, for the latency."""


class Measured:
    """An embedder with the tokenizer that all of ours share."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._tokenize = StaticEmbedder.load().tokenize

    def tokenized(self, texts: list[str]) -> list[TokenizedText]:
        """Return the texts with their tokens."""
        return [TokenizedText(text, self._tokenize(text)) for text in texts]

    def embedded(self, texts: list[str]) -> Floats:
        """Return float32, shape (len(texts), dimensions), unit rows."""
        return self.embedder.embed(self.tokenized(texts))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ranks(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the rank of each value, ties sharing their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places], np.float64)


def similarity_correlation(measured: Measured, pairs: list[dict[str, Any]]) -> float:
    """Return Spearman's correlation of the cosines with people's scores."""
    first, second = (measured.embedded([pair[side] for pair in pairs]) for side in ("a", "b"))
    scores = np.array([pair["score"] for pair in pairs], np.float64)
    return float(np.corrcoef(ranks((first * second).sum(1)), ranks(scores))[0, 1])


def gain(order: list[str], relevant: Mapping[str, float]) -> float:
    """Return nDCG of the first ten (Järvelin & Kekäläinen 2002), gains as judged."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    grades = np.array([relevant.get(document, 0.0) for document in order[:DEPTH]])
    ideal = np.array(sorted(relevant.values(), reverse=True)[:DEPTH])
    return float(grades @ discounts[: len(grades)] / (ideal @ discounts[: len(ideal)]))


def mean_gain(measured: Measured, collection: Path) -> float:
    """Return the mean nDCG@10 of dense retrieval over the queries that have a relevant document."""
    corpus = read_lines(collection / "corpus.jsonl")
    ids = [document["_id"] for document in corpus]
    queries = {query["_id"]: query["text"] for query in read_lines(collection / "queries.jsonl")}
    judged: dict[str, dict[str, float]] = {}
    for line in (collection / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, grade = line.split("\t")
        if query in queries and float(grade) > 0:
            judged.setdefault(query, {})[document] = float(grade)
    documents = measured.embedded([f"{document.get('title', '')} {document['text']}" for document in corpus])
    query_vectors = measured.embedded([queries[query] for query in judged])
    gains = []
    for vector, relevant in zip(query_vectors, judged.values(), strict=True):
        best = np.argsort(-(documents @ vector), kind="stable")[:DEPTH]
        gains.append(gain([ids[index] for index in best], relevant))
    return float(np.mean(gains))


def resident_bytes() -> int:
    """Return the memory that the process has resident; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def print_cost(measured: Measured, collection: Path) -> None:
    """Print seconds and resident memory: before, after the first query, and after many passages."""
    queries = measured.tokenized([line["text"] for line in read_lines(collection / "queries.jsonl")[:QUERIES]])
    passages = measured.tokenized([line["text"] for line in read_lines(collection / "corpus.jsonl")[:TIMED]])
    before = resident_bytes()
    started = time.perf_counter()
    measured.embedder.embed(queries[:1])
    print(f"first query: {(time.perf_counter() - started) * 1000:.0f} ms, {(resident_bytes() - before) / 1e6:.0f} MB")
    took = []
    for query in queries:
        started = time.perf_counter()
        measured.embedder.embed([query])
        took.append(time.perf_counter() - started)
    print(f"a query: {np.median(took) * 1000:.2f} ms (median of {len(took)})")
    started = time.perf_counter()
    measured.embedder.embed(passages)
    seconds = time.perf_counter() - started
    tokens = sum(len(passage.token_ids) for passage in passages) / len(passages)
    print(f"passages of {tokens:.0f} tokens: {len(passages) / seconds:,.0f} a second")
    print(f"resident more than before the first query: {(resident_bytes() - before) / 1e6:.0f} MB")


def main() -> None:
    """Print one line a figure."""
    data = Path(os.environ["COMMONPLACE_DATA"])
    measured = Measured(open_embedder((sys.argv[1:] or ["static"])[0]))
    print(f"model {measured.embedder.stamp}")
    print_cost(measured, data / "cosqa-dev")
    print(f"stsb dev, Spearman: {similarity_correlation(measured, read_lines(data / 'stsb' / 'dev.jsonl')):.3f}")
    for collection in (*(data / name for name in COLLECTIONS), *map(Path, sys.argv[2:])):
        print(f"{collection.name}, nDCG@10: {mean_gain(measured, collection):.3f}")


if __name__ == "__main__":
    main()
