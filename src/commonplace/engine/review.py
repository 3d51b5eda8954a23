"""What waits for a person, side by side, and their answers.

Contradictions of the graph, memories that newer ones may have overtaken, and proposals of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from itertools import combinations, product
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.service import denial_of
from commonplace.graph.views import EpisodeView, RelationView, View
from commonplace.ledger.rules import GOLDEN
from commonplace.memory.supersession import disputes_of, overtaken
from commonplace.types import HOLDS_BESIDE, SUPERSEDES

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine
    from commonplace.memory.view import Memory

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
    """Something that waits for a decision.

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


def questions(engine: Engine) -> Iterator[Question]:
    """Yield open questions: contradictions, then possibly superseded memories, surest first, then proposals."""
    yield from _contradictions(engine)
    runtime = engine._runtime
    for older, newer, is_sure, disputes in overtaken(runtime.store, engine.namespace):
        if is_sure or disputes:
            continue  # which are questions themselves
        sides = tuple(_memory_side(runtime.seen(each)) for each in (older, newer))
        ids, asked = (older.owner.id, newer.owner.id), "Does the newer one take the place of the older one?"
        command = f"commonplace memory link {quote(ids[1])} {quote(ids[0])} --type {SUPERSEDES}"
        yield Question(":".join(ids), "overtaken", asked, sides, ANSWERS["overtaken"], command, sides[1].at)
    for issue in engine.ledger.query(status="open"):
        if issue["issue_type"] == GOLDEN:
            continue
        found = []
        for id_ in issue["memory_ids"]:
            with suppress(NotFoundError):
                found.append(_memory_side(engine.get(id_, touch=False)))
        if found:
            kind = "merge" if issue["agent"] == "merge" and len(found) == 2 else "proposal"
            command, why = f"commonplace consolidate process {issue['id']}", str(issue["notes"].get("why", ""))
            asked, since = f"{issue['title']}?", datetime.fromisoformat(issue["created_at"])
            yield Question(issue["id"], kind, asked, tuple(found), ANSWERS[kind], command, since, why)


def _contradictions(engine: Engine) -> Iterator[Question]:
    graph = engine.graph
    for dispute in graph.disputes():
        facts = sorted(dispute.relations, key=lambda each: (_since(each), each.created_at, each.uuid))
        sides = []
        for each in facts:
            source = _source(graph.episode(each.episodes[0])) if each.episodes else ""
            sides.append(Side(each.uuid, each.fact, source, each.valid_from, each.trust))
        disputed = [each for each in graph.history(sides[-1].id).entries if each.what == "disputed"]
        why = next((each.reason for each in reversed(disputed) if each.reason), "")
        kind, question = "contradiction", "Which is right?"
        if len(sides) == 1:
            kind, question = "ending", "Does the first still hold, or has it ended?"
            said = [each.episode for each in disputed if each.episode]
            ends = graph.episode(said[-1]) if said else None
            ended = Side("", "it has ended")
            if ends is not None:  # what says so is still known
                ended = Side("", ends.content, _source(ends), ends.reference_time, ends.trust)
            sides.append(ended)
        command = f"commonplace graph settle {sides[0].id} --reason WHY"
        yield Question(dispute.uuid, kind, question, tuple(sides), ANSWERS[kind], command, dispute.since, why)


def _since(fact: RelationView) -> float:
    return 0.0 if fact.valid_from is None else fact.valid_from.timestamp()


def _source(episode: EpisodeView) -> str:
    return ", ".join(filter(None, (episode.origin, episode.source_description or episode.name)))


def _memory_side(memory: Memory) -> Side:
    source = ", ".join(filter(None, (memory.origin, memory.source)))
    return Side(memory.id, memory.content, source, memory.at or memory.created_at, memory.trust)


def answer(engine: Engine, id_: str, given: str, *, reason: str, text: str, by_agent: bool) -> dict[str, Any]:
    """Apply an answer to a question; return what was done."""
    found = next((each for each in questions(engine) if each.id == id_), None)
    if found is None:
        raise NotFoundError(f"no question {id_!r:.80} waits", remedy="see `commonplace review`")
    sides = {each.id: place for place, each in enumerate(found.sides) if each.id}
    if given not in found.answers and given not in sides:
        said = f"{given!r:.40} is no answer to it" if given else "it needs an answer"
        raise UsageError(said, remedy=f"give {', '.join(found.answers)}, or a side's id")
    if by_agent:
        refuse_agent(each.trust for each in found.sides)
    reason = reason or ("an agent decided" if by_agent else "a person decided")
    place = sides[given] if given in sides else {"left": 0, "right": 1}.get(given)
    if found.kind in ("contradiction", "ending"):
        _settle(engine, found, given, place, reason, text)
    elif found.kind == "overtaken":
        ids = [each.id for each in found.sides[::-1]]
        _supersede(engine, ids, {ids[place == 0]}, given, text, reason)
    elif given == "accept":
        engine.process_issue(id_)
    else:
        if place is not None or given == "edit":
            kept = found.sides[place or 0].id
            if given == "edit":
                engine.update(kept, _written(text))
            for each in found.sides:
                if each.id != kept:
                    engine.archive(each.id)
        engine.ledger.close(id_, reason)
    return {"id": id_, "kind": found.kind, "answer": given, "reason": reason}


def refuse_agent(trusts: Iterable[float]) -> None:
    """Raise a UsageError if something has a trust on which no agent may decide."""
    if any(not MIN_TRUST <= each <= MAX_TRUST for each in trusts):
        raise UsageError(
            "an agent may not settle what a user said, or what is not trusted",
            remedy="tell the user: `commonplace review` asks them",
        )


def _settle(engine: Engine, found: Question, given: str, place: int | None, reason: str, text: str) -> None:
    runtime, first = engine._runtime, found.sides[0].id
    said = disputes_of(runtime.store, engine.namespace).get(found.id, {})
    pairs = [each for each in overtaken(runtime.store, engine.namespace) if found.id in each.disputes]
    if given == "edit":
        _correct(engine, found, reason, text, is_kept=not pairs)
    elif given == "both":
        engine.graph.settle(first, reason=reason, verdict="both")
    elif found.kind == "ending" and place == 1:
        engine.graph.settle(first, reason=reason, verdict="ended")
    else:
        engine.graph.settle(found.sides[place or 0].id, reason=reason)
    times = {each.owner.id: each.owner.at or each.record.born_at for pair in pairs for each in pair[:2]}
    older = {pair.older.owner.id for pair in pairs}
    ids = sorted(times, key=lambda id_: (id_ in older, -times[id_]))
    kept = set(ids[:1])
    if found.kind == "ending":
        graph = runtime.store.graph(engine.namespace)
        denial = denial_of(graph, first)
        ends = {each.memory for each in graph.episodes([denial.episode] if denial else ()).values()}
        kept = {id_ for id_ in ids if (id_ in ends) == (place == 1)}
    elif place is not None:
        kept = {id_ for id_ in ids if found.sides[place].id in said[id_]}
    _supersede(engine, ids, kept, given, text, reason)
    asked = {each.id for each in found.sides}
    for dispute in engine.graph.disputes() if given == "edit" else ():
        if asked.issuperset(each.uuid for each in dispute.relations):  # of what is past, the newer was right
            newest = max(dispute.relations, key=lambda each: (_since(each), each.created_at))
            engine.graph.settle(newest.uuid, reason=reason)


def _correct(engine: Engine, found: Question, reason: str, text: str, *, is_kept: bool) -> None:
    """End the facts of a dispute by a new text, which is kept only if no memory will hold it."""
    added = engine.graph.add_episode(_written(text), source_description="review", origin="user")
    new = next((each for each in added.relations if each.disputed and each.dispute == found.id), None)
    is_right = new is not None or {each.uuid for each in added.ended}.issuperset(each.id for each in found.sides)
    if not (is_right and is_kept):
        assert added.episode is not None
        engine.graph.delete_episode(added.episode.uuid)
    if not is_right:
        raise UsageError("the text does not say what is right", remedy="write it as one of the sides is written")
    if is_kept and new is not None:
        engine.graph.settle(new.uuid, reason=reason)


def _supersede(engine: Engine, ids: Sequence[str], chosen: Set[str], given: str, text: str, reason: str) -> None:
    if given == "edit" and ids:
        engine.update(ids[0], _written(text))
    others = [id_ for id_ in ids if id_ not in chosen]
    for kept, other in combinations(ids, 2) if given == "both" else product(sorted(chosen), others):
        engine.link(kept, other, HOLDS_BESIDE if given == "both" else SUPERSEDES)
        for said in disputes_of(engine._runtime.store, engine.namespace).values():
            if said.keys() >= {kept, other} and said[kept] - said[other]:
                verdict = "both" if given == "both" else "right"
                engine.graph.settle(min(said[kept] - said[other]), reason=reason, verdict=verdict)


def _written(text: str) -> str:
    if not text.strip():
        raise UsageError("edit needs the text that is right", remedy="give it with text='TEXT'")
    return text
