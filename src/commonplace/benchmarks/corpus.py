"""Make a corpus of any size whose words are distributed like those of real text, and questions about it; seeded.

Words come from the tokenizer's vocabulary, which lists pieces from the commonest to the rarest; stems with endings
make the long tail. Most of a passage's words follow the language as a whole (Zipf–Mandelbrot: the frequency of rank r
is proportional to 1 / (r + q)^s; Mandelbrot, "An informational theory of the statistical structure of language",
1953), the others the same law over the words of the passage's own topic, so that words of a topic meet each other and
come in bursts. The constants are set so that, as in two million words of English passages, the hundred commonest
words make up .46 of the text and there are some fifty thousand different ones: caches and term dictionaries live on
that.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXPONENT, SHIFT = 1.3, 2.7
WORDS = 60_000
TOPICS = 400
TOPIC_WORDS = 300
TOPIC_RANKS = (150, 20_000)
"""Between these ranks lie the words of topics: the commonest belong to none, the rarest to no one topic."""
TOPIC_SHARE = 0.3
LENGTHS = (120, 281)
"""Words in a passage, uniform in this half-open range: 200 in the mean."""
BATCH = 500

_OPENINGS = ("what is", "how does the", "where did we", "why was the", "which of the", "when did", "who has")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What determines a made corpus, byte for byte."""

    passages: int
    seed: int = 0


def words_of(pieces: Iterable[str], limit: int = WORDS) -> list[str]:
    """Return words from a WordPiece vocabulary: its own, in its order, then stems with endings; each once."""
    pieces = list(pieces)
    # A vocabulary lists the letters first, common or not.
    whole = [piece for piece in pieces if len(piece) > 1 and piece.isascii() and piece.isalpha()]
    endings = [piece[2:] for piece in pieces if piece.startswith("##") and piece[2:].isalpha() and piece.isascii()]
    stems = [word for word in whole if len(word) > 3]
    words = dict.fromkeys(whole)
    # The stride walks through stems and endings at different speeds, so that no ending is always with the same stem.
    for number in count():
        if len(words) >= limit or not stems or number >= len(stems) * len(endings):
            break
        words[stems[(number * 7) % len(stems)] + endings[(number * 3) % min(len(endings), 400)]] = None
    return list(words)[:limit]


def make_documents(recipe: Recipe, words: Sequence[str]) -> Iterator[Document]:
    """Yield the passages of a recipe one by one; the same recipe and words give the same bytes."""
    import numpy as np

    generator = np.random.default_rng(recipe.seed)
    everywhere = _law(len(words))
    topics = _topics(len(words), generator)
    within = _law(topics.shape[1])
    # The second copy of every word ends a sentence: punctuation costs nothing when the words are joined.
    forms = [*words, *(f"{word}." for word in words)]
    for start in range(0, recipe.passages, BATCH):
        size = min(BATCH, recipe.passages - start)
        lengths = generator.integers(*LENGTHS, size=size)
        total = int(lengths.sum())
        ids = np.searchsorted(everywhere, generator.random(total))
        topic = np.repeat(generator.integers(len(topics), size=size), lengths)
        own = topics[topic, np.searchsorted(within, generator.random(total))]
        ids = np.where(generator.random(total) < TOPIC_SHARE, own, ids)
        ids = ids + len(words) * (generator.random(total) < 1 / 16)
        text = [forms[number] for number in ids.tolist()]
        ends = np.cumsum(lengths).tolist()
        for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False), start=start):
            yield Document(id=f"p{number:07d}", text=" ".join(text[begin:end]))


def _law(ranks: int) -> NDArray[np.float64]:
    """Return the cumulative Zipf–Mandelbrot distribution, float64, shape (ranks,), ending in exactly 1."""
    import numpy as np

    shares = 1.0 / (np.arange(1, ranks + 1) + SHIFT) ** EXPONENT
    cumulative = np.cumsum(shares)
    return np.asarray(cumulative / cumulative[-1])


def _topics(words: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the words of each topic, int64, shape (topics, words of a topic)."""
    import numpy as np

    first, last = min(TOPIC_RANKS[0], words // 2), min(TOPIC_RANKS[1], words)
    # Uniform in the logarithm of the rank: common words belong to more subjects than rare ones do.
    places = generator.random((TOPICS, min(TOPIC_WORDS, words)))
    return np.asarray((first * (last / first) ** places).astype(np.int64))


def sample(documents: Iterable[Document], size: int, seed: int) -> list[Document]:
    """Return `size` documents, each as likely as any other, in one pass (Vitter's algorithm R, 1985)."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    kept: list[Document] = []
    for number, document in enumerate(documents):
        if len(kept) < size:
            kept.append(document)
        elif (place := draw.randrange(number + 1)) < size:
            kept[place] = document
    return kept


def make_queries(passages: Sequence[Document], size: int, seed: int) -> list[str]:
    """Return questions of 3–10 words about the passages; every other one reads like language, with stop words."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    with_words = [words for passage in passages if len(words := _words(passage.text)) >= 3]
    return [_question(draw, draw.choice(with_words), number % 2 == 1) for number in range(size if with_words else 0)]


def _words(text: str) -> list[str]:
    return ["".join(filter(str.isalnum, word)).lower() for word in text.split() if any(map(str.isalnum, word))]


def _question(draw: random.Random, words: Sequence[str], is_language: bool) -> str:
    if is_language:
        opening = draw.choice(_OPENINGS)
        length = min(draw.randint(6, 10) - len(opening.split()), len(words))
        start = draw.randrange(len(words) - length + 1)
        return " ".join([opening, *words[start : start + length]])
    content = list(dict.fromkeys(word for word in words if word not in STOP_WORDS)) or list(words)
    return " ".join(draw.sample(content, min(draw.randint(3, 6), len(content))))
