"""Examine the memories of a namespace and collect findings."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import Final, Literal, get_args

from commonplace.dataclasses import dataclass
from commonplace.formats.json_values import View
from commonplace.graph.service import denial_of
from commonplace.health.golden import GoldenAnswer
from commonplace.memory.admission import what_became
from commonplace.memory.supersession import overtaken
from commonplace.retention import RetentionPolicy
from commonplace.store.graph import GraphReading
from commonplace.store.store import Store
from commonplace.text.similarity import is_near_duplicate
from commonplace.types import STATUSES, TIERS, Selection, StoredMemory

Kind = Literal["duplicate", "contradiction", "overtaken", "stale", "orphan", "junk"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_COMMANDS: Final[Mapping[Kind, str]] = {
    "duplicate": "commonplace memory archive {}",
    "contradiction": "commonplace review",
    "overtaken": "commonplace review",
    "junk": "commonplace memory archive {}",
}

BANDS: tuple[float, ...] = (0.05, 0.10, 0.25, 0.35, 0.65, 1.0)
"""Upper ends of the bands in which retention is counted."""


@dataclass(frozen=True, slots=True)
class Finding(View):
    """Something that a person may want to look at.

    Attributes:
        ids: ids of memories, or for a contradiction of facts of the graph.
        why: one sentence.
        command: a command line that settles it, or "" if that takes more than a choice.
    """

    kind: Kind
    ids: tuple[str, ...]
    why: str
    command: str


@dataclass(frozen=True, slots=True)
class Health(View):
    """The health of a namespace.

    Attributes:
        counts: number of findings of each kind.
        tiers, statuses: number of memories of each; archived ones count in `statuses` alone.
        retention: number of active memories in each band of retention, by the upper end of the band.
        findings: by kind, then by id.
        golden: what the golden queries find, if any were asked.
    """

    namespace: str
    memories: int
    tiers: Mapping[str, int]
    statuses: Mapping[str, int]
    retention: Mapping[str, int]
    pending: Mapping[str, int]
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    golden: tuple[GoldenAnswer, ...] = ()

    @property
    def failed(self) -> tuple[GoldenAnswer, ...]:
        """The golden queries that miss a relevant result, or show an irrelevant one."""
        return tuple(answer for answer in self.golden if not answer.is_whole)


_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_SPOKEN: Final = re.compile(r"[\w']+(?:/\w+)*")
_PLEASANTRIES: Final = frozenset(
    "ok okay yes no sure thanks thank you great done hi hello hey bye good morning night job lol test testing todo n/a"
    " na none null undefined asdf got it will do sounds please you're welcome so much very all right alright cool nice"
    " foo bar baz qwerty".split()
)
_LOG_LINE: Final = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d"
    r"|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE)\b|at \S+\(|File \"|\s*\|)"
)
_MAX_INSPECTED: Final = 20_000


def suspicion(text: str) -> str:
    """Return why a text may be junk, or ""."""
    head = text[:_MAX_INSPECTED].strip()
    first_words, words = _SPOKEN.findall(head[:200].lower()), _WORD.findall(head.lower())
    lines = [line for line in head.splitlines() if line.strip()]
    letters, characters = sum(map(str.isalpha, head)), len("".join(head.split()))
    logged = sum(bool(_LOG_LINE.match(line)) for line in lines)
    reasons = {
        "it is a pleasantry or a placeholder": 0 < len(first_words) <= 6 and _PLEASANTRIES.issuperset(first_words),
        "it is a placeholder": first_words[:2] == ["lorem", "ipsum"],
        "it has no words": not letters,
        "most of it is neither letters nor words": characters >= 40 and letters < 0.3 * characters,
        "it repeats the same words": len(words) >= 20 and len(set(words)) < 0.2 * len(words),
        "it looks like a log or a traceback": len(lines) >= 5 and logged > 0.5 * len(lines),
        "it repeats the same lines": len(lines) >= 5 and len(set(lines)) < 0.5 * len(lines),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


_MAX_IN_BAND: Final = 50
"""Maximum memories of a band whose pairs are compared: what more of them have in common tells nothing."""


def examine(
    store: Store,
    namespace: str,
    golden: Sequence[GoldenAnswer] = (),
    *,
    project: Path | None,
    retention: RetentionPolicy,
    now: float,
    notes: Mapping[str, str],
    issues: Mapping[str, Mapping[str, int]],
) -> Health:
    """Examine the memories of a namespace.

    Args:
        project: the directory that the paths of files are relative to, or None outside a project.
        notes: the notes in the vault: the memory's id by the note's path, written as in `vault_path`.
        issues: number of issues by agent, then by status.
    """
    with store.snapshot():
        versions = store.memories(namespace, Selection(order="id"))
        live = [memory for memory in versions if memory.expired_at is None]
        findings = [*_duplicates(store, namespace, live), *_contradictions(store.graph(namespace))]
        for older, newer, is_sure, disputes in overtaken(store, namespace):
            if not is_sure and not disputes:  # disputes are findings themselves
                reason = "the second may take the place of the first"
                findings.append(_finding("overtaken", (older.owner.id, newer.owner.id), reason))
        findings += [*_stale(project, live), *_orphans(notes, versions), *_junk(live)]
    active_records = (memory.record for memory in live if memory.record.status == "active")
    bands = Counter(BANDS[bisect_left(BANDS, retention.retention(memory, now))] for memory in active_records)
    return Health(
        namespace=namespace,
        memories=len(live),
        tiers={tier: sum(memory.record.tier == tier for memory in live) for tier in TIERS[1:]},
        statuses={status: sum(memory.record.status == status for memory in versions) for status in STATUSES},
        retention={f"{end:.2f}": bands[end] for end in BANDS},
        pending={agent: count["open"] for agent, count in issues.items() if agent and count.get("open")},
        counts={kind: sum(finding.kind == kind for finding in findings) for kind in KINDS},
        findings=tuple(sorted(findings, key=lambda finding: (KINDS.index(finding.kind), finding.ids))),
        golden=tuple(golden),
    )


def _finding(kind: Kind, ids: tuple[str, ...], reason: str) -> Finding:
    return Finding(kind, ids, reason, _COMMANDS.get(kind, "").format(quote(ids[-1])))


def _duplicates(store: Store, namespace: str, live: Iterable[StoredMemory]) -> Iterator[Finding]:
    """Find memories with the same words, or nearly; turns of a conversation, which may repeat, have no digest."""
    memories = {memory.number: memory for memory in live}
    digests = {number: digest for number, _, digest in store.memory_digests(namespace) if digest}
    ids_by_digest: dict[str, list[str]] = defaultdict(list)
    for number in memories.keys() & digests.keys():
        ids_by_digest[digests[number]].append(memories[number].owner.id)
    for ids in ids_by_digest.values():
        if len(ids) > 1:
            yield _finding("duplicate", tuple(sorted(ids)), "duplicates")
    shared_bands = groupby(store.shared_bands(namespace, _MAX_IN_BAND), itemgetter(0))
    pairs = {pair for _, rows in shared_bands for pair in combinations([number for _, number in rows], 2)}
    for left, right in pairs:
        first, second = memories[left], memories[right]
        if digests[left] != digests[right] and is_near_duplicate(first.record.content, second.record.content):
            yield _finding("duplicate", tuple(sorted((first.owner.id, second.owner.id))), "they say nearly the same")


def _contradictions(graph: GraphReading) -> Iterator[Finding]:
    disputes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for relation in graph.disputed():
        disputes[relation.dispute].append((relation.id, relation.fact))
    for facts in disputes.values():
        denial = denial_of(graph, facts[0][0]) if len(facts) == 1 else None
        statements = " / ".join([*(fact for _, fact in facts), *([denial.text] if denial else ())])
        yield _finding("contradiction", tuple(id_ for id_, _ in facts), f"these facts cannot all be true: {statements}")


def _stale(project: Path | None, live: Iterable[StoredMemory]) -> Iterator[Finding]:
    if project is None:
        return
    change_of: dict[str, str] = {}
    for memory in live:
        for reference in memory.owner.references:
            if reference not in change_of:
                change_of[reference] = what_became(reference, project)
        if changes := list(filter(None, map(change_of.get, memory.owner.references))):
            yield _finding("stale", (memory.owner.id,), f"{', '.join(changes)} since it was written")


def _orphans(notes: Mapping[str, str], versions: Sequence[StoredMemory]) -> Iterator[Finding]:
    by_id = {stored.owner.id: stored for stored in versions}
    for stored in versions:
        path = stored.record.vault_path
        if stored.expired_at is None and path and path not in notes:
            yield _finding("orphan", (stored.owner.id,), f"its note {path} is not in the vault")
    for path, id_ in notes.items():
        memory = by_id.get(id_)
        if memory is None or memory.expired_at is not None or memory.record.vault_path != path:
            yield _finding("orphan", (id_,), f"the note {path} is of no promoted memory")


def _junk(live: Iterable[StoredMemory]) -> Iterator[Finding]:
    """Find unused memories that look like junk; turns of conversations are exempt."""
    for memory in live:
        if memory.owner.session or memory.record.use_count or memory.record.status == "promoted":
            continue
        if reason := suspicion(memory.record.content):
            yield _finding("junk", (memory.owner.id,), reason)
