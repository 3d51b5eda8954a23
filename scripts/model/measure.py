"""Measure the shipped vectors alone on the development data: sentence similarity and dense retrieval, no fusion.

COMMONPLACE_DATA=DIR PYTHONPATH=scripts python -m model.measure
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import TokenizedText
from commonplace.models.static import StaticEmbedder

Floats = NDArray[np.float32]
COLLECTIONS = ("cosqa-dev", "cranfield", "medquad")
DEPTH = 10


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def embedded(embedder: StaticEmbedder, texts: list[str]) -> Floats:
    """Return float32, shape (len(texts), dimensions), unit rows."""
    return embedder.embed([TokenizedText(text, embedder.tokenize(text)) for text in texts])


def ranks(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the rank of each value, ties sharing their mean."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places], np.float64)


def similarity_correlation(embedder: StaticEmbedder, pairs: list[dict[str, Any]]) -> float:
    """Return Spearman's correlation of the cosines with people's scores."""
    first, second = (embedded(embedder, [pair[side] for pair in pairs]) for side in ("a", "b"))
    scores = np.array([pair["score"] for pair in pairs], np.float64)
    return float(np.corrcoef(ranks((first * second).sum(1)), ranks(scores))[0, 1])


def gain(order: list[str], relevant: Mapping[str, float]) -> float:
    """Return nDCG of the first ten (Järvelin & Kekäläinen 2002), gains as judged."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    found = np.array([relevant.get(document, 0.0) for document in order[:DEPTH]])
    ideal = np.array(sorted(relevant.values(), reverse=True)[:DEPTH])
    return float(found @ discounts[: len(found)] / (ideal @ discounts[: len(ideal)]))


def mean_gain(embedder: StaticEmbedder, collection: Path) -> float:
    """Return the mean nDCG@10 of dense retrieval over the queries that have a relevant document."""
    corpus = read_lines(collection / "corpus.jsonl")
    ids = [document["_id"] for document in corpus]
    queries = {query["_id"]: query["text"] for query in read_lines(collection / "queries.jsonl")}
    judged: dict[str, dict[str, float]] = {}
    for line in (collection / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, grade = line.split("\t")
        if query in queries and float(grade) > 0:
            judged.setdefault(query, {})[document] = float(grade)
    documents = embedded(embedder, [f"{document.get('title', '')} {document['text']}" for document in corpus])
    asked = embedded(embedder, [queries[query] for query in judged])
    gains = []
    for vector, relevant in zip(asked, judged.values(), strict=True):
        best = np.argsort(-(documents @ vector), kind="stable")[:DEPTH]
        gains.append(gain([ids[place] for place in best], relevant))
    return float(np.mean(gains))


def main() -> None:
    """Print one line a figure."""
    data = Path(os.environ["COMMONPLACE_DATA"])
    embedder = StaticEmbedder.load()
    print(f"model {embedder.stamp}")
    print(f"stsb dev, Spearman: {similarity_correlation(embedder, read_lines(data / 'stsb' / 'dev.jsonl')):.3f}")
    for name in COLLECTIONS:
        print(f"{name}, nDCG@10: {mean_gain(embedder, data / name):.3f}")


if __name__ == "__main__":
    main()
