"""Merge texts of similar memories and detect contradictions between them.

If the longest text contains all others, it is the result. Otherwise what the others add is appended. Sentences that
contradict each other are all kept, each with its date, and so are sentences with relative dates ("yesterday") if the
sources are of different days.

No threshold on cosine separates "deploy on Monday" from "deploy on Friday", or "likes" from "does not like", so
differences are compared word by word. A false conflict asks a person; a missed one mixes true with outdated.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from difflib import SequenceMatcher, unified_diff
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID, uuid5

from numpy.typing import NDArray

from commonplace.consolidation import pairs as clustering
from commonplace.dataclasses import dataclass, replace
from commonplace.dates import mentions, without
from commonplace.dates.time import moment_of
from commonplace.memory.validate import TRUST
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.text.languages import STOP_WORDS
from commonplace.text.sentences import Unit, units_of
from commonplace.text.similarity import fold, unified
from commonplace.text.tokens import analyse
from commonplace.text.words import entries
from commonplace.types import TIERS, MemoryRecord, Owner, StoredMemory

Conflict = Literal["negation", "number", "time", "name", "word", "order"]

MIN_SHARED: Final = 0.5
"""Sentences that share less of their content words speak of different things, and contradict nothing."""
_MAX_KEY_LENGTH: Final = 3
_MIN_SAME_SHARE: Final = 0.5

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
_OPPOSITES: Final = frozenset(frozenset(pair.split("/")) for pair in entries(Path(__file__).with_name("opposites.txt")))
_NO_NAMES: Final = frozenset("i i'm i've i'll i'd".split())
_LETTERED: Final = re.compile(r"(?<![^\W_])[^\W\d_]{2,}[-_][^\W\d_](?![^\W_])")
"""One of several things that differ by a letter: db-a, node_b."""
_ROLES: Final = frozenset("from to into onto by before after over under above below behind than via".split())
"""What follows one of these has another role than what follows another one, whichever comes first in the sentence."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What counts of a sentence.

    Attributes:
        words: folded, in order, without those of times.
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
    words, or where they say who does what to whom with the same words the other way round. What only one of them says
    is more, and contradicts nothing.
    """
    fewest = min(len(one.stems - one.names), len(other.stems - other.names))
    shared = len(one.stems & other.stems)
    if shared < MIN_SHARED * fewest or (not shared and len(one.stems | other.stems) > 1):
        return None
    # The plainest comes first.
    if one.is_negated != other.is_negated:
        return "negation"
    if one.numbers - other.numbers and other.numbers - one.numbers:
        return "number"
    if _has_own_time(one.times, other.times) and _has_own_time(other.times, one.times):
        return "time"
    if one.names.difference(other.words, other.names) and other.names.difference(one.words, one.names):
        return "name"
    # Both ways round: what difflib aligns may depend on which comes first.
    if _is_replaced(one.words, other.words) or _is_replaced(other.words, one.words):
        return "word"
    return "order" if _are_turned(one, other) else None


def contradiction(one: Statement, other: Statement) -> Conflict | None:
    """Return in what two sentences contradict each other for sure: as `conflict`, but "slices" for "cuts" is none."""
    kind = conflict(one, other)
    return None if kind == "word" and not _are_opposite(one.words, other.words) else kind


def _has_own_time(some: frozenset[tuple[float, float]], rest: frozenset[tuple[float, float]]) -> bool:
    """Return whether one of some times overlaps none of the rest, of which there are any."""
    return bool(rest) and any(all(until <= begin or end <= since for begin, end in rest) for since, until in some)


def _is_replaced(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    matcher = SequenceMatcher(None, ones, others, autojunk=False)
    if sum(block.size for block in matcher.get_matching_blocks()) < _MIN_SAME_SHARE * max(len(ones), len(others)):
        return False
    for tag, begin, end, first, last in matcher.get_opcodes():
        if tag == "replace" and end - begin <= _MAX_KEY_LENGTH and last - first <= _MAX_KEY_LENGTH:
            mine, theirs = ones[begin:end], others[first:last]
            if _are_opposite(mine, theirs):
                return True
            # Both hold a content word, and none that the other's sentence has somewhere.
            own, other = _stems(mine), _stems(theirs)
            if own and other and own.isdisjoint(_stems(others)) and other.isdisjoint(_stems(ones)):
                return True
    return False


def _are_opposite(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether a word of the one is where its opposite is in the other, with as many words before it."""
    return any(frozenset(pair) in _OPPOSITES for pair in zip(ones, others, strict=False))


def _are_turned(one: Statement, other: Statement) -> bool:
    """Return whether the same content words have an order that moving one phrase does not explain."""
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
    """Return the content words that follow each of the words of `_ROLES`."""
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


if TYPE_CHECKING:
    Likeness = Callable[[Sequence[str]], NDArray[Any]]
    """Returns the similarity of each of n texts to each, 0–1, float32, shape (n, n)."""


Doubt = Conflict | Literal["length"]

SAID_AGAIN: Final = 0.9
"""The least similarity of two sentences of which one says what the other says."""
SAID_IN_THE_SAME_WORDS: Final = 0.75
"""The same of two whose content words are the same, in whatever order."""
_MAX_UNITS: Final = 400
"""The sentences of so many texts are compared by their vectors, each of which takes milliseconds."""

MAX_COMPARED: Final = 40_000
"""Of pairs of sentences: two texts of 200 sentences each. Longer ones are documents, whose merge a person looks at."""

_BEGIN: Final = r"(?<![^\s(\[\"'])"
_END: Final = r"(?![^\s,;:.!?)\]\"'])"
"""Where words may begin and end within others: not behind a hyphen, which may be a minus, nor before a percent sign."""
_ELSEWHERE: Final = datetime.fromisoformat("1931-08-19T00:00:00+00:00")
"""A date by which relative dates ("yesterday") are recognised: as of it they mean another day."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that is merged, and when it was said, aware."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Merged:
    """What was made of some texts.

    Attributes:
        conflicts: how many pairs of sentences contradict each other, by what they differ in; "length" means texts
            that are too long for all their sentences to be compared.
    """

    text: str
    conflicts: Counter[Doubt]


@dataclass(frozen=True, slots=True)
class _Said:
    """A unit of a source, what counts of it, and whether its dates are relative."""

    unit: Unit
    at: datetime
    key: str
    statement: Statement
    is_relative: bool


def merge(sources: Sequence[Source], likeness: Likeness | None = None) -> Merged:
    """Return one text for several, the same in whatever order they are given.

    Args:
        likeness: finds the sentences that say in other words what another source says, to be left out; without it all
            sentences are kept that are not the same.
    """
    ordered = sorted(sources, key=_longest_first)
    said = [_read(source) for source in ordered]
    disputed, counted = _disputed(said)
    longest = said[0]
    of_one_day = len({source.at.date() for source in sources}) == 1
    is_undated = of_one_day or not any(each.is_relative for each in longest)
    known = {each.key for each in longest}
    again = _said_again(said, disputed, likeness) if likeness is not None else frozenset()
    is_contained = not any(place == 0 for place, _ in again) and all(
        each.key in known or (place, each.key) in again or _is_within(each, longest)
        for place, other in enumerate(said[1:], 1)
        for each in other
    )
    if is_contained and is_undated and not disputed:
        return Merged(ordered[0].text, counted)
    fresh = [[each for each in some if (place, each.key) not in again] for place, some in enumerate(said)]
    return Merged(_together(fresh, disputed, of_one_day=of_one_day), counted)


def contradictions(
    sources: Sequence[Source], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return in what pairs of texts, by id, contradict each other that say nearly the same; others are left out.

    They do where at least half of what the shorter one says contradicts the other.
    """
    texts = {source.id: _read(source) for source in sources}
    found = {}
    for pair in pairs:
        said = [texts[id_] for id_ in pair]
        disputed, counted = _disputed(said, contradiction)
        sizes = [sum(not each.unit.is_heading for each in some) for some in said]
        shorter = sizes.index(min(sizes))
        if disputed and 2 * sum(place == shorter for place, _ in disputed) >= sizes[shorter]:
            found[pair] = counted
    return found


def diff(sources: Sequence[Source], merged: str, name: str) -> str:
    """Return a unified diff from the texts of the sources, one after the other, to the merged text."""
    ordered = sorted(sources, key=_longest_first)
    before = [line for source in ordered for line in source.text.splitlines()]
    named = ", ".join(source.id for source in ordered)
    return "\n".join(unified_diff(before, merged.splitlines(), named, name, lineterm=""))


def _longest_first(source: Source) -> tuple[int, datetime, str]:
    return -len(source.text), source.at, source.id


def _read(source: Source) -> list[_Said]:
    said = []
    for unit in units_of(source.text):
        dates = [(each.since, each.until) for each in mentions(unit.said, now=source.at)]
        elsewhere = [(each.since, each.until) for each in mentions(unit.said, now=_ELSEWHERE)] if dates else []
        # "Yesterday" of another day is another day.
        key = unit.key if dates == elsewhere else f"{unit.key}\n{dates}"
        said.append(_Said(unit, source.at, key, read_statement(unit.said, source.at), dates != elsewhere))
    return said


def _disputed(
    said: Sequence[Sequence[_Said]], judge: Callable[[Statement, Statement], Conflict | None] = conflict
) -> tuple[set[tuple[int, str]], Counter[Doubt]]:
    """Return the units, by source and key, that contradict one of another source, and the kinds of contradiction."""
    found: set[tuple[int, str]] = set()
    counted: Counter[Doubt] = Counter()
    compared = 0
    for (place, some), (behind, more) in combinations(enumerate(said), 2):
        ones, others = _differing(some, more), _differing(more, some)
        compared += len(ones) * len(others)
        if compared > MAX_COMPARED:
            counted["length"] += 1
            break
        for one, other in product(ones, others):
            if (kind := judge(one.statement, other.statement)) is not None:
                counted[kind] += 1
                found |= {(place, one.key), (behind, other.key)}
    return found, counted


def _said_again(
    said: Sequence[Sequence[_Said]], disputed: set[tuple[int, str]], likeness: Likeness
) -> frozenset[tuple[int, str]]:
    """Return the sentences, by source and key, of which another source says everything in other words."""
    units = [
        (place, each)
        for place, some in enumerate(said)
        for each in {each.key: each for each in some}.values()
        if each.unit.is_prose and not each.unit.is_heading and (place, each.key) not in disputed
    ]
    if len({place for place, _ in units}) < 2 or len(units) > _MAX_UNITS:
        return frozenset()
    alike = likeness([each.unit.said for _, each in units])
    kept: list[int] = []
    again: set[int] = set()
    for row, (place, each) in enumerate(units):
        others = [known for known in kept if units[known][0] != place and known not in again]
        if any(_adds_nothing(each, units[known][1], alike[row][known]) for known in others):
            again.add(row)
            continue
        again |= {known for known in others if _adds_nothing(units[known][1], each, alike[row][known])}
        kept.append(row)
    return frozenset((units[row][0], units[row][1].key) for row in again)


def _adds_nothing(each: _Said, other: _Said, similarity: float) -> bool:
    """Return whether a sentence says no more than another one, and nothing else."""
    if similarity < SAID_IN_THE_SAME_WORDS:
        return False
    one, two = each.statement, other.statement
    # The same numbers, names and times, and both or none is negated.
    have_same_marks = (
        (one.numbers, one.times, one.is_negated) == (two.numbers, two.times, two.is_negated)
        and one.names <= two.names.union(two.words)
        and two.names <= one.names.union(one.words)
    )
    if not have_same_marks or conflict(one, two) is not None:
        return False
    own, theirs = one.stems - two.stems, two.stems - one.stems
    if similarity >= SAID_AGAIN:
        return len(own) <= max(1, len(theirs))
    return not own and len(theirs) <= 1


def _differing(some: Sequence[_Said], others: Sequence[_Said]) -> list[_Said]:
    """Return what only one of two sources says, without headings."""
    known = {each.key for each in others}
    return [each for each in some if each.key not in known and not each.unit.is_heading]


def _is_within(each: _Said, longest: Sequence[_Said]) -> bool:
    """Return whether a unit occurs in the same words within one of a text."""
    if not each.unit.is_prose:
        return any(each.key in other.unit.text for other in longest)
    within = re.compile(_BEGIN + re.escape(each.unit.key) + _END)
    return not each.is_relative and any(within.search(other.unit.key) for other in longest)


def _together(said: Sequence[Sequence[_Said]], disputed: set[tuple[int, str]], *, of_one_day: bool) -> str:
    known: set[str] = set()
    written: list[Unit] = []
    for place, units in enumerate(said):
        fresh = list(_fresh(units, known))
        for number, each in enumerate(fresh):
            is_dated = (place, each.key) in disputed or (each.is_relative and not of_one_day)
            unit = each.unit
            if is_dated:
                day, between = each.at.date().isoformat(), " " if unit.is_prose else "\n\n"
                unit = replace(unit, text=f"{unit.text}{between}({day})")
            before = written[-1] if written else None
            if before is None:
                written.append(replace(unit, gap=""))
            elif number == 0:
                written.append(replace(unit, gap="\n" if before.is_item and unit.is_item else "\n\n"))
            else:
                written.append(unit)
    return "".join(unit.gap + unit.text for unit in written)


def _fresh(units: Sequence[_Said], known: set[str]) -> Iterator[_Said]:
    """Yield what is not known yet, with the widest gap of what was skipped before it, and under its heading."""
    gap, heading = "", None
    for each in units:
        gap = max(gap, each.unit.gap, key=lambda space: (space.count("\n"), len(space)))
        if each.unit.is_heading:
            heading = None
            if each.key in known:
                heading, gap = replace(each, unit=replace(each.unit, gap=gap)), ""
        if each.key in known:
            continue
        known.add(each.key)
        if heading is not None:
            yield heading
            heading = None
        yield replace(each, unit=replace(each.unit, gap=gap))
        gap = ""


DOUBTFUL: Final = 0.5
"""The most confidence in a merge of memories that contradict each other: a person is to look at it."""
MAX_GAIN: Final = 0.5
GAINED_EACH: Final = 0.1
"""Of strength: by a merge at most, and by a source at a cohesion of 1."""

_MERGED_IDS: Final = UUID("0d0b6a0e-5a0c-5a4f-9c55-1b1d6e6c7f02")
_LINK_IDS: Final = UUID("9b8f4c4e-3f0d-5c1e-8a37-5d2f0c9e4b11")
"""Namespaces of the UUIDv5 of merged memories and of links; they never change."""


def confidence_of(cohesion: float, size: int, conflicts: Counter[Doubt]) -> float:
    """Return how sure it is that memories are rightly merged."""
    confidence = cohesion * clustering.size_factor(size)
    return min(confidence, DOUBTFUL) if conflicts else confidence


def sources_of(memories: Sequence[StoredMemory]) -> list[Source]:
    """Return memories as what is merged."""
    return [Source(memory.owner.id, memory.record.content, moment_of(memory.at)) for memory in memories]


def merged_id(source_ids: Sequence[str], taken: int = 0) -> str:
    """Return the id of the memory that is made of others, in whatever order; `taken` such ids are another memory's."""
    return str(uuid5(_MERGED_IDS, json.dumps([*sorted(source_ids), *([str(taken)] if taken else [])])))


def link_id(source: str, target: str) -> str:
    """Return the id of the link from a merged memory to one that it was made of."""
    return str(uuid5(_LINK_IDS, json.dumps([source, target])))


def combined(memories: Sequence[StoredMemory], id_: str, text: str, cohesion: float) -> tuple[Owner, MemoryRecord]:
    """Return the memory that is made of others, the same in whatever order they are given.

    It has all tags, entities and files (as they were then), the highest tier, the time when the first was stored and
    that of the last, the uses of all, and the least trust, with the origin of a source that has it. Category and source
    stay where all that have one agree, metadata are joined, of two values the one of the longer text.
    """
    ordered = sorted(memories, key=lambda memory: (-len(memory.record.content), memory.at, memory.owner.id))
    records = [memory.record for memory in ordered]
    least = min(records, key=lambda record: (record.trust, TRUST[record.origin], record.origin))
    strength = max(record.strength for record in records)
    metadata: dict[str, Any] = {}
    for each in reversed(records):
        metadata |= json.loads(each.metadata)
    owner = Owner(
        id=id_,
        kind="memory",
        tags=tuple(sorted({tag for memory in ordered for tag in memory.owner.tags})),
        references=tuple(sorted({reference for memory in ordered for reference in memory.owner.references})),
        at=max(memory.at for memory in ordered),  # what is said again counts from then on
    )
    record = MemoryRecord(
        content=text,
        tier=max((record.tier for record in records), key=TIERS.index),
        category=_agreed(record.category for record in records),
        entities=tuple(sorted({entity for record in records for entity in record.entities})),
        source=_agreed(record.source for record in records),
        origin=least.origin,
        trust=least.trust,
        metadata=json.dumps(metadata, sort_keys=True),
        born_at=min(record.born_at for record in records),
        last_used=max(record.last_used for record in records),
        use_count=sum(record.use_count for record in records),
        strength=min(MAX_STRENGTH, strength + min(MAX_GAIN, cohesion * len(records) * GAINED_EACH)),
        uses=tuple(sorted(use for record in records for use in record.uses)[-RECENT_USES:]),
        review_count=sum(record.review_count for record in records),
        derived_from=tuple(sorted(memory.owner.id for memory in ordered)),
        is_forced=any(record.is_forced for record in records),
    )
    return owner, record


def dates_of(memories: Sequence[StoredMemory]) -> tuple[tuple[float, float], ...]:
    """Return the times that memories speak of, each as seen from its own time."""
    found = {
        (mention.since, mention.until)
        for memory in memories
        for mention in mentions(memory.record.content, now=moment_of(memory.at))
    }
    return tuple(sorted(found))


def _agreed(values: Any) -> str:
    """Return what all say that say something, "" where they do not agree."""
    said = {value for value in values if value}
    return str(said.pop()) if len(said) == 1 else ""
