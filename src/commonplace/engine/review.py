"""What waits for a person, side by side, and their answers.

Contradictions of the graph, memories that newer ones may have overtaken, and proposals of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.views import HistoryEntry, RelationView, View
from commonplace.ledger.rules import GOLDEN
from commonplace.memory.supersession import overtaken
from commonplace.types import HOLDS_BESIDE, SUPERSEDES

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine

ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "contradiction": ("left", "right", "both", "edit"),
    "ending": ("left", "right"),
    "overtaken": ("left", "right", "both", "edit"),
    "merge": ("left", "right", "both", "edit", "accept"),
    "proposal": ("accept", "reject"),
}
"""How a question of each kind may be answered; `later` is no answer."""
MAX_QUESTIONS: Final = 200
MIN_TRUST: Final = 0.5
"""What is trusted less is settled by a person alone."""
MAX_TRUST: Final = 0.8
"""So far an agent is trusted: what a user said is not for it to settle."""


@dataclass(frozen=True, slots=True)
class Side(View):
    """One of the things between which a person chooses.

    Attributes:
        id: of a fact or a memory; "" where an ended fact's other side is that it has ended.
        source: who said it, or where.
        at: when it was said, or since when it holds.
    """

    id: str
    text: str
    source: str = ""
    at: datetime | None = None
    trust: float = 1.0


@dataclass(frozen=True, slots=True)
class Question(View):
    """Something that waits for a person.

    Attributes:
        id: of a dispute of the graph, or of an issue of the ledger; of two memories, both ids.
        kind: "contradiction", "ending" (has a fact ended?), "overtaken" (does a newer memory take the place of an older
            one?), "merge" or "proposal" (what else an agent proposes).
        sides: the first is left, the second right; further ones are named by their ids.
        answers: those that it takes, beside the id of a side.
        command: a command line that settles it.
        why: the reason for which it is asked, "" where none is kept.
    """

    id: str
    kind: str
    question: str
    sides: tuple[Side, ...]
    answers: tuple[str, ...]
    command: str
    since: datetime | None = None
    why: str = ""


def questions(engine: Engine) -> list[Question]:
    """Return what waits: contradictions first, then memories that may be overtaken, surest first, then proposals."""
    return list(islice(_all(engine), MAX_QUESTIONS))


def _all(engine: Engine) -> Iterator[Question]:
    yield from _contradictions(engine)
    yield from _overtaken(engine)
    yield from _proposals(engine)


def _contradictions(engine: Engine) -> Iterator[Question]:
    for dispute in engine.graph.disputes():
        facts = sorted(dispute.relations, key=lambda each: (_since(each), each.created_at, each.uuid))
        sides = tuple(_side_of(engine, each) for each in facts)
        why = next((each.reason for each in engine.graph.history(sides[-1].id).entries[::-1] if _is_dispute(each)), "")
        kind, question = "contradiction", "Which is right?"
        if len(sides) == 1:
            kind, question = "ending", "Does the first still hold, or has it ended?"
            sides = (*sides, _ending_of(engine, sides[0].id))
        command = f"commonplace graph settle {sides[0].id} --reason WHY"
        yield Question(dispute.uuid, kind, question, sides, ANSWERS[kind], command, dispute.since, why)


def _is_dispute(entry: HistoryEntry) -> bool:
    return entry.what == "disputed" and bool(entry.reason)


def _since(fact: RelationView) -> float:
    return 0.0 if fact.valid_from is None else fact.valid_from.timestamp()


def _ending_of(engine: Engine, fact: str) -> Side:
    """Return what says that a fact has ended, as far as it is still known."""
    said = [each for each in engine.graph.history(fact).entries if each.what == "disputed" and each.episode]
    if not said:
        return Side("", "it has ended")
    episode = engine.graph.episode(said[-1].episode)
    source = ", ".join(filter(None, (episode.origin, episode.source_description or episode.name)))
    return Side("", episode.content, source, episode.reference_time, episode.trust)


def _side_of(engine: Engine, fact: RelationView) -> Side:
    source = ""
    if fact.episodes:
        episode = engine.graph.episode(fact.episodes[0])
        source = ", ".join(filter(None, (episode.origin, episode.source_description or episode.name)))
    return Side(fact.uuid, fact.fact, source, fact.valid_from, fact.trust)


def _overtaken(engine: Engine) -> Iterator[Question]:
    runtime = engine._runtime
    for older, newer in overtaken(runtime.store, engine.namespace, runtime.tokens):
        ids = (older.owner.id, newer.owner.id)
        sides = tuple(side for id_ in ids if (side := _memory(engine, id_)) is not None)
        if len(sides) == 2:
            question = "Does the newer one take the place of the older one?"
            command = f"commonplace memory link {ids[1]} {ids[0]} --type {SUPERSEDES}"
            yield Question(":".join(ids), "overtaken", question, sides, ANSWERS["overtaken"], command, sides[1].at)


def _proposals(engine: Engine) -> Iterator[Question]:
    for issue in engine.ledger.query(status="open"):
        if issue["issue_type"] == GOLDEN:
            continue
        sides = tuple(side for id_ in issue["memory_ids"] if (side := _memory(engine, id_)) is not None)
        if not sides:
            continue
        kind = "merge" if issue["agent"] == "merge" and len(sides) == 2 else "proposal"
        command = f"commonplace consolidate process {issue['id']}"
        yield Question(
            issue["id"],
            kind,
            f"{issue['title']}?",
            sides,
            ANSWERS[kind],
            command,
            datetime.fromisoformat(issue["created_at"]),
            str(issue["notes"].get("why", "")),
        )


def _memory(engine: Engine, id_: str) -> Side | None:
    try:
        found = engine.get(id_, touch=False)
    except NotFoundError:
        return None
    source = ", ".join(filter(None, (found.origin, found.source)))
    return Side(found.id, found.content, source, found.at or found.created_at, found.trust)


def answer(engine: Engine, id_: str, given: str, *, reason: str, text: str, by_agent: bool) -> dict[str, Any]:
    """Do what a person, or an agent that may, answers to a question; return what was done."""
    found = next((each for each in _all(engine) if each.id == id_), None)
    if found is None:
        raise NotFoundError(f"no question {id_!r:.80} waits", remedy="see `commonplace review`")
    sides = {each.id: place for place, each in enumerate(found.sides) if each.id}
    if given not in found.answers and given not in sides:
        raise UsageError(f"{given!r:.40} is no answer to it", remedy=f"give {', '.join(found.answers)}, or a side's id")
    if by_agent and any(not MIN_TRUST <= each.trust <= MAX_TRUST for each in found.sides):
        raise UsageError(
            "an agent may not settle what a user said, or what is not trusted",
            remedy="tell the user: `commonplace review` asks them",
        )
    reason = reason or ("an agent decided" if by_agent else "a person decided")
    place = sides[given] if given in sides else {"left": 0, "right": 1}.get(given)
    if found.kind in ("contradiction", "ending"):
        _settle(engine, found, given, place, reason, text)
    elif found.kind == "overtaken":
        _supersede(engine, found, given, place, text)
    else:
        _act(engine, found, given, place, reason, text)
    return {"id": id_, "kind": found.kind, "answer": given, "reason": reason}


def _settle(engine: Engine, found: Question, given: str, place: int | None, reason: str, text: str) -> None:
    first = found.sides[0].id
    if given == "both":
        engine.graph.settle(first, reason=reason, verdict="both")
    elif given == "edit":
        added = engine.graph.add_episode(_written(text), source_description="review", origin="user")
        new = next((each for each in added.relations if each.disputed and each.dispute == found.id), None)
        ended = {each.uuid for each in added.ended}
        if new is not None:
            engine.graph.settle(new.uuid, reason=reason)
        elif not ended.issuperset(each.id for each in found.sides):
            assert added.episode is not None
            engine.graph.delete_episode(added.episode.uuid)
            raise UsageError("the text does not say what is right", remedy="write it as one of the sides is written")
        if any(each.uuid == found.id for each in engine.graph.disputes()):
            engine.graph.settle(found.sides[-1].id, reason=reason)  # of what is past, the newer was right
    elif found.kind == "ending" and place == 1:
        engine.graph.settle(first, reason=reason, verdict="ended")
    else:
        engine.graph.settle(found.sides[place or 0].id, reason=reason)


def _supersede(engine: Engine, found: Question, given: str, place: int | None, text: str) -> None:
    older, newer = (each.id for each in found.sides)
    if given == "edit":
        engine.update(newer, _written(text))
    if given == "both":
        engine.link(newer, older, HOLDS_BESIDE)
    else:
        kept, other = (older, newer) if place == 0 else (newer, older)
        engine.link(kept, other, SUPERSEDES)


def _act(engine: Engine, found: Question, given: str, place: int | None, reason: str, text: str) -> None:
    if given == "accept":
        engine.process_issue(found.id)
        return
    if place is not None or given == "edit":
        kept = found.sides[place or 0].id
        if given == "edit":
            engine.update(kept, _written(text))
        for each in found.sides:
            if each.id != kept:
                engine.archive(each.id)
    engine.ledger.close(found.id, reason)


def _written(text: str) -> str:
    if not text.strip():
        raise UsageError("edit needs the text that is right", remedy="give it")
    return text
