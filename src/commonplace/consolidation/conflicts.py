"""Tell where two sentences that are otherwise alike contradict each other, by what they say in the same place.

The vectors of "deploy on Monday" and "deploy on Friday" are neighbours, as are those of "likes" and "does not like": no
threshold on their cosine tells them apart. So what differs is looked at word by word. A wrong "conflict" asks a person;
a wrong "none" mixes what was so with what is so. It knows no memories and no vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final, Literal

from commonplace.text.analysis import analyse
from commonplace.text.stopwords import STOP_WORDS
from commonplace.text.wording import fold, unified
from commonplace.timeline import mentions, without

Conflict = Literal["negation", "number", "time", "name", "word", "order"]

LEAST_SHARED: Final = 0.5
"""Sentences that share less of their content words speak of different things, and contradict nothing."""
_LONGEST_SLOT: Final = 3
_LEAST_SAME: Final = 0.5

_WORD: Final = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")
_NEGATION: Final = re.compile(
    r"\b(?:not?|never|nor|none|nobody|nothing|cannot|without|neither|hardly|stopped|quit|refuses?|avoids?|dislikes?|"
    r"hates?)\b|n't\b"
)
_NUMBER: Final = re.compile(r"(?<![^\W_])[-+]?\d+(?:[.,:]\d+)*")
_NUMERALS: Final = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split(),
    )
    if word != "one"  # mostly no number: "one of them"
}
_OPPOSITES: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in "before/after on/off in/out up/down more/less over/under above/below and/or all/some from/to".split()
)
_NO_NAMES: Final = frozenset("i i'm i've i'll i'd".split())


@dataclass(frozen=True, slots=True)
class Statement:
    """What counts of a sentence.

    Attributes:
        words: folded, in order, without what tells a time.
        stems: of its content words, without times, numbers and negations.
        times: what it speaks of, seconds since the epoch, half-open.
        names: words with a capital that do not begin the sentence.
    """

    words: tuple[str, ...]
    stems: frozenset[str]
    times: frozenset[tuple[float, float]]
    numbers: frozenset[str]
    names: frozenset[str]
    is_negated: bool


def read_statement(text: str, at: datetime) -> Statement:
    """Return what counts of a sentence that was said at an aware time."""
    plain = unified(text)
    found = mentions(plain, now=at)
    rest = without(plain, found) if found else plain
    folded = fold(rest)
    written = _WORD.findall(rest)
    words = tuple(fold(word) for word in written)
    numbers = frozenset(_NUMBER.findall(rest)) | {_NUMERALS[word] for word in words if word in _NUMERALS}
    names = frozenset(fold(word) for word in written[1:] if word[:1].isupper() and fold(word) not in _NO_NAMES)
    stems = frozenset(analyse(_NUMBER.sub(" ", _NEGATION.sub(" ", folded))))
    return Statement(
        words=words,
        stems=stems,
        times=frozenset((each.since, each.until) for each in found),
        numbers=numbers,
        names=names,
        is_negated=len(_NEGATION.findall(folded)) % 2 == 1,
    )


def conflict(one: Statement, other: Statement) -> Conflict | None:
    """Return in what two different sentences contradict each other, None where they do not; symmetric.

    Sentences that share at least half of the content words of the shorter one contradict each other where just one is
    negated, where each has a number, a name or a time that the other has not (a time that overlaps none of the
    other's), or where each has another content word, or one of two opposites, in the same place of otherwise the same
    words, or where they say who does what to whom with the same words the other way round. What only one of them tells
    is more, and contradicts nothing.
    """
    if not _are_alike(one, other):
        return None
    return next((kind for kind, differ in _WAYS.items() if differ(one, other)), None)


def _are_alike(one: Statement, other: Statement) -> bool:
    fewest = min(len(one.stems - one.names), len(other.stems - other.names))
    shared = len(one.stems & other.stems)
    return shared >= LEAST_SHARED * fewest and (shared > 0 or len(one.stems | other.stems) <= 1)


def _lie_apart(ones: frozenset[tuple[float, float]], others: frozenset[tuple[float, float]]) -> bool:
    def has_own(some: frozenset[tuple[float, float]], rest: frozenset[tuple[float, float]]) -> bool:
        return any(all(until <= begin or end <= since for begin, end in rest) for since, until in some)

    return bool(ones) and bool(others) and has_own(ones, others) and has_own(others, ones)


def _differ_in_place(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Tell whether a few content words stand in the place of a few others, where most words are the same."""
    # Both ways round: what difflib aligns may depend on which comes first.
    return _is_replaced(ones, others) or _is_replaced(others, ones)


def _is_replaced(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    matcher = SequenceMatcher(None, ones, others, autojunk=False)
    if sum(block.size for block in matcher.get_matching_blocks()) < _LEAST_SAME * max(len(ones), len(others)):
        return False
    for tag, begin, end, first, last in matcher.get_opcodes():
        if tag == "replace" and end - begin <= _LONGEST_SLOT and last - first <= _LONGEST_SLOT:
            mine, theirs = ones[begin:end], others[first:last]
            if any(frozenset(pair) in _OPPOSITES for pair in zip(mine, theirs, strict=False)):
                return True
            if _are_other(mine, theirs, ones, others):
                return True
    return False


def _are_other(mine: tuple[str, ...], theirs: tuple[str, ...], ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Tell whether two runs of words both hold a content word, and none that the other's sentence has somewhere."""
    own, other = _stems(mine), _stems(theirs)
    return bool(own) and bool(other) and own.isdisjoint(_stems(others)) and other.isdisjoint(_stems(ones))


def _are_turned(ones: list[str], others: list[str]) -> bool:
    """Tell whether the same content words stand in an order that moving one phrase does not explain."""
    if ones == others or sorted(ones) != sorted(others):
        return False
    begin = next(place for place, pair in enumerate(zip(ones, others, strict=True)) if pair[0] != pair[1])
    pairs = zip(reversed(ones), reversed(others), strict=True)
    end = len(ones) - next(place for place, pair in enumerate(pairs) if pair[0] != pair[1])
    mine, theirs = ones[begin:end], others[begin:end]
    return not any(mine[cut:] + mine[:cut] == theirs for cut in range(1, len(mine)))


def _content(words: tuple[str, ...]) -> list[str]:
    return analyse(" ".join(word for word in words if word not in STOP_WORDS))


def _stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_content(words))


_WAYS: Final[Mapping[Conflict, Callable[[Statement, Statement], bool]]] = {
    "negation": lambda one, other: one.is_negated != other.is_negated,
    "number": lambda one, other: bool(one.numbers - other.numbers and other.numbers - one.numbers),
    "time": lambda one, other: _lie_apart(one.times, other.times),
    "name": lambda one, other: bool(one.names - set(other.words) and other.names - set(one.words)),
    "word": lambda one, other: _differ_in_place(one.words, other.words),
    "order": lambda one, other: _are_turned(_content(one.words), _content(other.words)),
}
"""In what two sentences can contradict each other, the plainest first."""
