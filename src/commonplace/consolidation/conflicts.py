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
} | {
    word: str(10 * number)
    for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety hundred".split(), 2)
}
_ORDINALS: Final = {
    word: f"{number}."
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
}
_OPPOSITES: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in (
        "before/after on/off in/out up/down more/less over/under above/below and/or all/some from/to enabled/disabled "
        "enable/disable dark/light open/closed allowed/forbidden allowed/denied required/optional public/private "
        "true/false left/right tabs/spaces always/sometimes first/last early/late morning/evening increased/decreased "
        "accepted/rejected likes/hates loves/hates internal/external minimum/maximum"
    ).split()
)
_NO_NAMES: Final = frozenset("i i'm i've i'll i'd".split())
_LETTERED: Final = re.compile(r"(?<![^\W_])[^\W\d_]{2,}[-_][^\W\d_](?![^\W_])")
"""One of several things that differ by a letter: db-a, node_b."""
_ROLES: Final = frozenset("from to into onto by before after over under above below behind than via".split())
"""What stands behind one of these is not what stands behind it elsewhere, whichever comes first in the sentence."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What counts of a sentence.

    Attributes:
        words: folded, in order, without what tells a time.
        stems: of its content words, without times, numbers and negations.
        times: what it speaks of, seconds since the epoch, half-open.
        names: words with a capital that do not begin the sentence, and words with a letter behind a hyphen.
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
    written = [word.removesuffix("'s") for word in _WORD.findall(rest)]
    words = tuple(fold(word) for word in written)
    numbers = frozenset(_NUMBER.findall(rest)) | {
        known[w] for w in words for known in (_NUMERALS, _ORDINALS) if w in known
    }
    names = frozenset(fold(word) for word in written[1:] if word[:1].isupper() and fold(word) not in _NO_NAMES)
    names |= frozenset(map(fold, _LETTERED.findall(rest)))
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


def contradiction(one: Statement, other: Statement) -> Conflict | None:
    """Return in what two different sentences contradict each other for sure, None where another word may mean the same.

    As `conflict`, but "slices" in the place of "cuts" is none, as "enabled" in the place of "disabled" is.
    """
    kind = conflict(one, other)
    return None if kind == "word" and not _are_opposite(one.words, other.words) else kind


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
            if _are_opposite(mine, theirs) or _are_other(mine, theirs, ones, others):
                return True
    return False


def _are_opposite(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Tell whether a word of the one stands where its opposite stands in the other, with as many words before it."""
    return any(frozenset(pair) in _OPPOSITES for pair in zip(ones, others, strict=False))


def _are_other(mine: tuple[str, ...], theirs: tuple[str, ...], ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Tell whether two runs of words both hold a content word, and none that the other's sentence has somewhere."""
    own, other = _stems(mine), _stems(theirs)
    return bool(own) and bool(other) and own.isdisjoint(_stems(others)) and other.isdisjoint(_stems(ones))


def _are_turned(one: Statement, other: Statement) -> bool:
    """Tell whether the same content words stand in an order that moving one phrase does not explain."""
    ones, others = _content(one), _content(other)
    if ones == others or sorted(ones) != sorted(others):
        return False
    mine, theirs = _roles(one.words), _roles(other.words)
    if any(mine[role].isdisjoint(theirs[role]) for role in mine.keys() & theirs.keys()):
        return True  # "from Redis to Kafka", "from Kafka to Redis"
    begin = next(place for place, pair in enumerate(zip(ones, others, strict=True)) if pair[0] != pair[1])
    pairs = zip(reversed(ones), reversed(others), strict=True)
    end = len(ones) - next(place for place, pair in enumerate(pairs) if pair[0] != pair[1])
    between, then = ones[begin:end], others[begin:end]
    return not any(between[cut:] + between[:cut] == then for cut in range(1, len(between)))


def _content(said: Statement) -> list[str]:
    """Return the stems of the content words in order; "A" is one where it is a name."""
    return [
        stem
        for word in said.words
        for stem in ([word] if word in said.names else [] if word in STOP_WORDS else analyse(word))
    ]


def _roles(words: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the content words that stand behind each of the words that say what has which part in something."""
    found: dict[str, set[str]] = {}
    role = ""
    for word in words:
        if word in _ROLES:
            role = word
        elif role and (stems := _stems((word,))):
            found.setdefault(role, set()).update(stems)
            role = ""
    return found


def _stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(analyse(" ".join(word for word in words if word not in STOP_WORDS)))


def have_same_marks(one: Statement, other: Statement) -> bool:
    """Tell whether two sentences have the same numbers, names and times, and both or none is negated."""
    return (
        (one.numbers, one.times, one.is_negated) == (other.numbers, other.times, other.is_negated)
        and one.names <= other.names.union(other.words)
        and other.names <= one.names.union(one.words)
    )


_WAYS: Final[Mapping[Conflict, Callable[[Statement, Statement], bool]]] = {
    "negation": lambda one, other: one.is_negated != other.is_negated,
    "number": lambda one, other: bool(one.numbers - other.numbers and other.numbers - one.numbers),
    "time": lambda one, other: _lie_apart(one.times, other.times),
    "name": lambda one, other: bool(
        one.names.difference(other.words, other.names) and other.names.difference(one.words, one.names)
    ),
    "word": lambda one, other: _differ_in_place(one.words, other.words),
    "order": _are_turned,
}
"""In what two sentences can contradict each other, the plainest first."""
