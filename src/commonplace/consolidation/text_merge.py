"""Merge texts of similar memories and detect contradictions between them.

If the longest text contains all others, it is the result. Otherwise what the others add is appended. Sentences that
contradict each other are all kept, each with its date, and so are sentences with relative dates ("yesterday") if the
sources are of different days.

No threshold on cosine separates "deploy on Monday" from "deploy on Friday", or "likes" from "does not like", so
differences are compared word by word. A false conflict asks a person; a missed one mixes true with outdated facts.
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
from commonplace.dates.vocabulary import NUMBERS
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
"""Share of the shorter sentence's content words below which two sentences differ in subject and cannot conflict."""
_MAX_KEY_LENGTH: Final = 3
_MIN_SAME_SHARE: Final = 0.5

_WORD: Final = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")
_NEGATION: Final = re.compile(
    r"\b(?:not?|never|nor|none|nobody|nothing|cannot|without|neither|hardly|stopped|quit|refuses?|avoids?|dislikes?|"
    r"hates?)\b|n't\b"
)
_NUMBER: Final = re.compile(r"(?<![^\W_])[-+]?\d+(?:[.,:]\d+)*")
_NUMERALS: Final = {word: str(number) for word, number in NUMBERS.items()} | {"zero": "0", "hundred": "100"}
del _NUMERALS["one"]  # rarely a number: "one of them"
_ORDINALS: Final = {
    word: f"{number}."
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
}
_OPPOSITES: Final = frozenset(frozenset(pair.split("/")) for pair in entries(Path(__file__).with_name("opposites.txt")))
_NO_NAMES: Final = frozenset("i i'm i've i'll i'd".split())
_LETTERED: Final = re.compile(r"(?<![^\W_])[^\W\d_]{2,}[-_][^\W\d_](?![^\W_])")
"""Name of one of several things that differ by a letter: db-a, node_b."""
_ROLES: Final = frozenset("from to into onto by before after over under above below behind than via".split())
"""Words that give the content word after them a role, wherever in the sentence they occur."""


@dataclass(frozen=True, slots=True)
class SentenceFeatures:
    """The features of a sentence that are compared.

    Attributes:
        words: folded words in order, without those of times.
        stems: stems of the content words, without times, numbers and negations.
        times: the times mentioned, half-open intervals in seconds since the epoch.
        names: capitalised words that do not begin the sentence, and words ending in a hyphen or underscore and letter.
    """

    words: tuple[str, ...]
    stems: frozenset[str]
    times: frozenset[tuple[float, float]]
    numbers: frozenset[str]
    names: frozenset[str]
    is_negated: bool


def features_of(text: str, at: datetime) -> SentenceFeatures:
    """Return the statement of a sentence that was said at an aware time."""
    plain = unified(text)
    dates = mentions(plain, now=at)
    undated = without(plain, dates) if dates else plain
    folded = fold(undated)
    raw_words = [word.removesuffix("'s") for word in _WORD.findall(undated)]
    words = tuple(fold(word) for word in raw_words)
    numbers = frozenset(_NUMBER.findall(undated)) | {
        numerals[w] for w in words for numerals in (_NUMERALS, _ORDINALS) if w in numerals
    }
    names = frozenset(fold(word) for word in raw_words[1:] if word[:1].isupper() and fold(word) not in _NO_NAMES)
    names |= frozenset(map(fold, _LETTERED.findall(undated)))
    stems = frozenset(analyse(_NUMBER.sub(" ", _NEGATION.sub(" ", folded))))
    return SentenceFeatures(
        words=words,
        stems=stems,
        times=frozenset((date.since, date.until) for date in dates),
        numbers=numbers,
        names=names,
        is_negated=len(_NEGATION.findall(folded)) % 2 == 1,
    )


def conflict(left: SentenceFeatures, right: SentenceFeatures) -> Conflict | None:
    """Return how two different sentences contradict each other, None if they do not; symmetric.

    Sentences that share at least half of the content words of the shorter one contradict each other if just one is
    negated; if each has a number, a name or a time that the other lacks (a time that overlaps none of the other's); if
    each has a different content word, or one of two opposites, in the same place among otherwise equal words; or if
    they use the same words with exchanged roles (who does what to whom). What only one of them says is an addition,
    not a contradiction.
    """
    fewest = min(len(left.stems - left.names), len(right.stems - right.names))
    shared = len(left.stems & right.stems)
    if shared < MIN_SHARED * fewest or (not shared and len(left.stems | right.stems) > 1):
        return None
    # The plainest kind comes first.
    if left.is_negated != right.is_negated:
        return "negation"
    if left.numbers - right.numbers and right.numbers - left.numbers:
        return "number"
    if _has_own_time(left.times, right.times) and _has_own_time(right.times, left.times):
        return "time"
    if left.names.difference(right.words, right.names) and right.names.difference(left.words, left.names):
        return "name"
    # Check both ways round: difflib's alignment may depend on which comes first.
    if _is_replaced(left.words, right.words) or _is_replaced(right.words, left.words):
        return "word"
    return "order" if _are_reordered(left, right) else None


def contradiction(left: SentenceFeatures, right: SentenceFeatures) -> Conflict | None:
    """Return as `conflict` how two sentences surely contradict each other: "slices" for "cuts" does not count."""
    kind = conflict(left, right)
    return None if kind == "word" and not _are_opposite(left.words, right.words) else kind


def _has_own_time(times: frozenset[tuple[float, float]], others: frozenset[tuple[float, float]]) -> bool:
    """Return whether one of the times overlaps none of the others; False if there are no others."""
    return bool(others) and any(all(until <= begin or end <= since for begin, end in others) for since, until in times)


def _is_replaced(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    matcher = SequenceMatcher(None, ones, others, autojunk=False)
    if sum(block.size for block in matcher.get_matching_blocks()) < _MIN_SAME_SHARE * max(len(ones), len(others)):
        return False
    for tag, begin, end, first, last in matcher.get_opcodes():
        if tag == "replace" and end - begin <= _MAX_KEY_LENGTH and last - first <= _MAX_KEY_LENGTH:
            mine, theirs = ones[begin:end], others[first:last]
            if _are_opposite(mine, theirs):
                return True
            # Both sides have content words, and none of them occurs anywhere in the other sentence.
            left, right = _stems(mine), _stems(theirs)
            if left and right and left.isdisjoint(_stems(others)) and right.isdisjoint(_stems(ones)):
                return True
    return False


def _are_opposite(ones: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether a word and its opposite are at the same position in the two sequences."""
    return any(frozenset(pair) in _OPPOSITES for pair in zip(ones, others, strict=False))


def _are_reordered(left: SentenceFeatures, right: SentenceFeatures) -> bool:
    """Return whether equal content words are in an order that moving one phrase does not explain."""
    ones, others = _content(left), _content(right)
    if ones == others or sorted(ones) != sorted(others):
        return False
    mine, theirs = _roles(left.words), _roles(right.words)
    if any(mine[role].isdisjoint(theirs[role]) for role in mine.keys() & theirs.keys()):
        return True  # "from Redis to Kafka", "from Kafka to Redis"
    begin = next(index for index, pair in enumerate(zip(ones, others, strict=True)) if pair[0] != pair[1])
    pairs = zip(reversed(ones), reversed(others), strict=True)
    end = len(ones) - next(index for index, pair in enumerate(pairs) if pair[0] != pair[1])
    segment, other_segment = ones[begin:end], others[begin:end]
    return not any(segment[cut:] + segment[:cut] == other_segment for cut in range(1, len(segment)))


def _content(statement: SentenceFeatures) -> list[str]:
    """Return the stems of the content words in order; a name counts even if it is a stop word, such as "A"."""
    return [
        stem
        for word in statement.words
        for stem in ([word] if word in statement.names else [] if word in STOP_WORDS else analyse(word))
    ]


def _roles(words: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the stems of the content words that follow each of the words in `_ROLES`."""
    by_role: dict[str, set[str]] = {}
    role = ""
    for word in words:
        if word in _ROLES:
            role = word
        elif role and (stems := _stems((word,))):
            by_role.setdefault(role, set()).update(stems)
            role = ""
    return by_role


def _stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(analyse(" ".join(word for word in words if word not in STOP_WORDS)))


if TYPE_CHECKING:
    Likeness = Callable[[Sequence[str]], NDArray[Any]]
    """Returns the pairwise similarities of n texts, 0–1, float32, shape (n, n)."""


Doubt = Conflict | Literal["length"]

RESTATED: Final = 0.9
"""Similarity from which a sentence restates another, if it adds at most one content word, or no more than it omits."""
RESTATED_IN_SAME_WORDS: Final = 0.75
"""Similarity from which a sentence restates another that has all its content words and at most one more."""
_MAX_UNITS: Final = 400
"""Number of sentences above which restatements are not looked for: each sentence takes milliseconds to embed."""

MAX_COMPARED: Final = 40_000
"""Maximum number of sentence pairs compared, as of two texts of 200 each; a person reviews merges of longer texts."""

_BEGIN: Final = r"(?<![^\s(\[\"'])"
_END: Final = r"(?![^\s,;:.!?)\]\"'])"
"""Boundaries of a phrase within a text: not after a hyphen, which may be a minus, nor before a percent sign."""
_OTHER_DAY: Final = datetime.fromisoformat("1931-08-19T00:00:00+00:00")
"""Reference date for recognising relative dates ("yesterday"): as of it they mean another day."""


@dataclass(frozen=True, slots=True)
class MergeSource:
    """A text to merge, and when it was said, an aware time."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MergedText:
    """A merged text.

    Attributes:
        conflicts: number of contradicting pairs of sentences by kind; "length" means that the texts are too long for
            all their sentences to be compared.
    """

    text: str
    conflicts: Counter[Doubt]


@dataclass(frozen=True, slots=True)
class _Part:
    unit: Unit
    at: datetime
    key: str
    features: SentenceFeatures
    is_relative: bool


def merge(sources: Sequence[MergeSource], likeness: Likeness | None = None) -> MergedText:
    """Return one text merged from several, independent of their order.

    Args:
        likeness: finds sentences that restate in other words what another source says, which are left out; without it
            only equal sentences are left out.
    """
    ordered = sorted(sources, key=_longest_first)
    texts = [_read(source) for source in ordered]
    disputed, conflicts = _disputed(texts)
    longest = texts[0]
    of_one_day = len({source.at.date() for source in sources}) == 1
    is_undated = of_one_day or not any(part.is_relative for part in longest)
    keys = {part.key for part in longest}
    restated = _restated(texts, disputed, likeness) if likeness is not None else frozenset()
    is_contained = not any(index == 0 for index, _ in restated) and all(
        part.key in keys or (index, part.key) in restated or _is_within(part, longest)
        for index, other in enumerate(texts[1:], 1)
        for part in other
    )
    if is_contained and is_undated and not disputed:
        return MergedText(ordered[0].text, conflicts)
    remaining = [[part for part in text if (index, part.key) not in restated] for index, text in enumerate(texts)]
    return MergedText(_join(remaining, disputed, of_one_day=of_one_day), conflicts)


def contradictions(
    sources: Sequence[MergeSource], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return the pairs of texts, by id, that contradict each other, with the kinds of their contradictions.

    Two texts do if at least half of the sentences of the shorter one surely contradict the other.
    """
    texts = {source.id: _read(source) for source in sources}
    results = {}
    for pair in pairs:
        both = [texts[id_] for id_ in pair]
        disputed, counts = _disputed(both, contradiction)
        sizes = [sum(not part.unit.is_heading for part in parts) for parts in both]
        shorter = sizes.index(min(sizes))
        if disputed and 2 * sum(index == shorter for index, _ in disputed) >= sizes[shorter]:
            results[pair] = counts
    return results


def diff(sources: Sequence[MergeSource], merged: str, name: str) -> str:
    """Return a unified diff from the texts of the sources, one after the other, to the merged text."""
    ordered = sorted(sources, key=_longest_first)
    before = [line for source in ordered for line in source.text.splitlines()]
    label = ", ".join(source.id for source in ordered)
    return "\n".join(unified_diff(before, merged.splitlines(), label, name, lineterm=""))


def _longest_first(source: MergeSource) -> tuple[int, datetime, str]:
    return -len(source.text), source.at, source.id


def _read(source: MergeSource) -> list[_Part]:
    parts = []
    for unit in units_of(source.text):
        dates = [(mention.since, mention.until) for mention in mentions(unit.body, now=source.at)]
        elsewhere = [(mention.since, mention.until) for mention in mentions(unit.body, now=_OTHER_DAY)] if dates else []
        # "Yesterday" said on another day means another day.
        key = unit.key if dates == elsewhere else f"{unit.key}\n{dates}"
        parts.append(_Part(unit, source.at, key, features_of(unit.body, source.at), dates != elsewhere))
    return parts


def _disputed(
    texts: Sequence[Sequence[_Part]], judge: Callable[[SentenceFeatures, SentenceFeatures], Conflict | None] = conflict
) -> tuple[set[tuple[int, str]], Counter[Doubt]]:
    """Return the units, by source and key, that contradict one of another source, and the counts of the kinds."""
    disputed: set[tuple[int, str]] = set()
    counts: Counter[Doubt] = Counter()
    compared = 0
    for (index, text), (other_index, other_text) in combinations(enumerate(texts), 2):
        ones, others = _differing(text, other_text), _differing(other_text, text)
        compared += len(ones) * len(others)
        if compared > MAX_COMPARED:
            counts["length"] += 1
            break
        for one, other in product(ones, others):
            if (kind := judge(one.features, other.features)) is not None:
                counts[kind] += 1
                disputed |= {(index, one.key), (other_index, other.key)}
    return disputed, counts


def _restated(
    texts: Sequence[Sequence[_Part]], disputed: set[tuple[int, str]], likeness: Likeness
) -> frozenset[tuple[int, str]]:
    """Return the sentences, by source and key, that another source restates completely in other words."""
    units = [
        (index, part)
        for index, text in enumerate(texts)
        for part in {part.key: part for part in text}.values()
        if part.unit.is_prose and not part.unit.is_heading and (index, part.key) not in disputed
    ]
    if len({index for index, _ in units}) < 2 or len(units) > _MAX_UNITS:
        return frozenset()
    alike = likeness([part.unit.body for _, part in units])
    kept_rows: list[int] = []
    restated: set[int] = set()
    for row, (index, part) in enumerate(units):
        candidates = [other for other in kept_rows if units[other][0] != index and other not in restated]
        if any(_adds_nothing(part, units[other][1], alike[row][other]) for other in candidates):
            restated.add(row)
            continue
        restated |= {other for other in candidates if _adds_nothing(units[other][1], part, alike[row][other])}
        kept_rows.append(row)
    return frozenset((units[row][0], units[row][1].key) for row in restated)


def _adds_nothing(part: _Part, other: _Part, similarity: float) -> bool:
    """Return whether a sentence says nothing that another one does not say."""
    if similarity < RESTATED_IN_SAME_WORDS:
        return False
    left, right = part.features, other.features
    # Equal numbers, names and times, and both or neither negated.
    have_same_marks = (
        (left.numbers, left.times, left.is_negated) == (right.numbers, right.times, right.is_negated)
        and left.names <= right.names.union(right.words)
        and right.names <= left.names.union(left.words)
    )
    if not have_same_marks or conflict(left, right) is not None:
        return False
    extra, missing = left.stems - right.stems, right.stems - left.stems
    if similarity >= RESTATED:
        return len(extra) <= max(1, len(missing))
    return not extra and len(missing) <= 1


def _differing(parts: Sequence[_Part], others: Sequence[_Part]) -> list[_Part]:
    """Return the units of one source that are not in the other, without headings."""
    keys = {other.key for other in others}
    return [part for part in parts if part.key not in keys and not part.unit.is_heading]


def _is_within(part: _Part, longest: Sequence[_Part]) -> bool:
    """Return whether a unit occurs literally within a unit of a text."""
    if not part.unit.is_prose:
        return any(part.key in other.unit.text for other in longest)
    within = re.compile(_BEGIN + re.escape(part.unit.key) + _END)
    return not part.is_relative and any(within.search(other.unit.key) for other in longest)


def _join(texts: Sequence[Sequence[_Part]], disputed: set[tuple[int, str]], *, of_one_day: bool) -> str:
    keys: set[str] = set()
    output: list[Unit] = []
    for index, parts in enumerate(texts):
        new_parts = list(_new_parts(parts, keys))
        for position, part in enumerate(new_parts):
            is_dated = (index, part.key) in disputed or (part.is_relative and not of_one_day)
            unit = part.unit
            if is_dated:
                day, between = part.at.date().isoformat(), " " if unit.is_prose else "\n\n"
                unit = replace(unit, text=f"{unit.text}{between}({day})")
            before = output[-1] if output else None
            if before is None:
                output.append(replace(unit, gap=""))
            elif position == 0:
                output.append(replace(unit, gap="\n" if before.is_item and unit.is_item else "\n\n"))
            else:
                output.append(unit)
    return "".join(unit.gap + unit.text for unit in output)


def _new_parts(parts: Sequence[_Part], keys: set[str]) -> Iterator[_Part]:
    """Yield the units with new keys, under their headings, each with the widest gap among the units skipped before."""
    gap, heading = "", None
    for part in parts:
        gap = max(gap, part.unit.gap, key=lambda space: (space.count("\n"), len(space)))
        if part.unit.is_heading:
            heading = None
            if part.key in keys:
                heading, gap = replace(part, unit=replace(part.unit, gap=gap)), ""
        if part.key in keys:
            continue
        keys.add(part.key)
        if heading is not None:
            yield heading
            heading = None
        yield replace(part, unit=replace(part.unit, gap=gap))
        gap = ""


DOUBTFUL: Final = 0.5
"""Maximum confidence in a merge of memories that contradict each other, so that a person reviews it."""
MAX_GAIN: Final = 0.5
GAIN_PER_SOURCE: Final = 0.1
"""Gain in strength: the maximum of a merge (`MAX_GAIN`), and that of each source at cohesion 1 (`GAIN_PER_SOURCE`)."""

_MERGED_IDS: Final = UUID("0d0b6a0e-5a0c-5a4f-9c55-1b1d6e6c7f02")
_LINK_IDS: Final = UUID("9b8f4c4e-3f0d-5c1e-8a37-5d2f0c9e4b11")
"""Namespaces of the UUIDv5 of merged memories and of links; they never change."""


def confidence_of(cohesion: float, size: int, conflicts: Counter[Doubt]) -> float:
    """Return the confidence that a group's memories should be merged."""
    confidence = cohesion * clustering.size_factor(size)
    return min(confidence, DOUBTFUL) if conflicts else confidence


def sources_of(memories: Sequence[StoredMemory]) -> list[MergeSource]:
    """Return memories as sources to merge."""
    return [MergeSource(memory.owner.id, memory.record.content, moment_of(memory.at)) for memory in memories]


def merged_id(source_ids: Sequence[str], collisions: int = 0) -> str:
    """Return the id of the memory merged from others, in any order; `collisions` of its ids are taken already."""
    return str(uuid5(_MERGED_IDS, json.dumps([*sorted(source_ids), *([str(collisions)] if collisions else [])])))


def link_id(source: str, target: str) -> str:
    """Return the id of the link from a merged memory to one of its sources."""
    return str(uuid5(_LINK_IDS, json.dumps([source, target])))


def merged_memory(memories: Sequence[StoredMemory], id_: str, text: str, cohesion: float) -> tuple[Owner, MemoryRecord]:
    """Return the memory merged from others, independent of their order.

    It has all tags, entities and file references, the highest tier, the creation time of the oldest and the time of the
    latest, all uses, and the least trust with the origin of a source that has it. Category and source are kept if all
    sources that have one agree. Metadata are merged; of two values that of the longer text is kept.
    """
    ordered = sorted(memories, key=lambda memory: (-len(memory.record.content), memory.at, memory.owner.id))
    records = [memory.record for memory in ordered]
    least_trusted = min(records, key=lambda record: (record.trust, TRUST[record.origin], record.origin))
    strength = max(record.strength for record in records)
    metadata: dict[str, Any] = {}
    for source_record in reversed(records):
        metadata |= json.loads(source_record.metadata)
    owner = Owner(
        id=id_,
        kind="memory",
        tags=tuple(sorted({tag for memory in ordered for tag in memory.owner.tags})),
        references=tuple(sorted({reference for memory in ordered for reference in memory.owner.references})),
        at=max(memory.at for memory in ordered),  # a restatement counts from its own time
    )
    record = MemoryRecord(
        content=text,
        tier=max((record.tier for record in records), key=TIERS.index),
        category=_agreed(record.category for record in records),
        entities=tuple(sorted({entity for record in records for entity in record.entities})),
        source=_agreed(record.source for record in records),
        origin=least_trusted.origin,
        trust=least_trusted.trust,
        metadata=json.dumps(metadata, sort_keys=True),
        born_at=min(record.born_at for record in records),
        last_used=max(record.last_used for record in records),
        use_count=sum(record.use_count for record in records),
        strength=min(MAX_STRENGTH, strength + min(MAX_GAIN, cohesion * len(records) * GAIN_PER_SOURCE)),
        uses=tuple(sorted(use for record in records for use in record.uses)[-RECENT_USES:]),
        review_count=sum(record.review_count for record in records),
        derived_from=tuple(sorted(memory.owner.id for memory in ordered)),
        is_forced=any(record.is_forced for record in records),
    )
    return owner, record


def dates_of(memories: Sequence[StoredMemory]) -> tuple[tuple[float, float], ...]:
    """Return the times that memories mention, relative dates as of each memory's own time."""
    times = {
        (mention.since, mention.until)
        for memory in memories
        for mention in mentions(memory.record.content, now=moment_of(memory.at))
    }
    return tuple(sorted(times))


def _agreed(values: Any) -> str:
    """Return the value that all non-empty values share, "" if they differ or there is none."""
    stated = {value for value in values if value}
    return str(stated.pop()) if len(stated) == 1 else ""
