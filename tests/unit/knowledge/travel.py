"""The contract's travel agent, and embedders and re-rankers of somebody's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

SEOUL = {
    "cityName": "Seoul",
    "aliases": "Seoul, SEOUL, KOR, Korea",
    "info": "Capital city of South Korea",
    "weather": "Four distinct seasons",
}
TOKYO = {
    "cityName": "Tokyo",
    "aliases": "Tokyo, TYO, Japan",
    "info": "Capital city of Japan",
    "weather": "Humid subtropical climate",
}
CITIES = [SEOUL, TOKYO]
SEOUL_TEXT = (
    "aliases: Seoul, SEOUL, KOR, Korea cityName: Seoul info: Capital city of South Korea weather: Four distinct seasons"
)
TOKYO_TEXT = "aliases: Tokyo, TYO, Japan cityName: Tokyo info: Capital city of Japan weather: Humid subtropical climate"


class OwnEmbedder:
    """The contract's embedder: each text is what it has of some letters."""

    def __init__(self, letters: str = "abcdefgh", name: str = "own") -> None:
        self.name = name
        self.letters = letters
        self.asked: list[str] = []
        self.error: Exception | None = None

    def embed(self, *texts: str) -> list[list[float]]:
        if self.error is not None:
            raise self.error
        self.asked += texts
        return [[float(text.lower().count(letter)) for letter in self.letters] for text in texts]


class OwnReranker:
    """The contract's re-ranker, by a rule that gives each candidate a score."""

    def __init__(self, score: Callable[[str], float]) -> None:
        self.score = score
        self.asked: list[tuple[str, list[str], int]] = []

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[Any]:
        self.asked.append((query, list(candidates), top_k))
        results = [{"content": text, "score": self.score(text)} for text in candidates]
        return sorted(results, key=lambda result: -result["score"])[:top_k]
