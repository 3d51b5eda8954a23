"""Questions that wait for a person, with their sides, and what an answer does.

They are contradictions of the graph, memories that newer ones may have overtaken, and proposals of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from itertools import combinations, product
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.service import denial_of
from commonplace.graph.views import EpisodeView, RelationView, View
from commonplace.ledger.rules import GOLDEN
from commonplace.memory.supersession import disputes_of, overtaken
from commonplace.types import HOLDS_BESIDE, RULE, SUPERSEDES, Link, Selection

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
"""Answers that each kind of question takes; `later` is not one."""
MAX_QUESTIONS: Final = 200
MIN_TRUST: Final = 0.5
"""Trust below which only a person may settle something."""
MAX_TRUST: Final = 0.8
"""Trust above which only a person may settle something, such as what a user said."""


@dataclass(frozen=True, slots=True)
class Side(View):
    """One of the alternatives of a question.

    Attributes:
        id: the id of a fact or a memory; "" for the side that a fact has ended.
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
        id: the id of a dispute of the graph or an issue of the ledger; for two memories, both ids, the older first.
        kind: "contradiction", "ending" (has a fact ended?), "overtaken" (does a newer memory take the place of an older
            one?), "merge" or "proposal" (what else an agent proposes).
        sides: the first is left, the second right; further ones are named by their ids.
        answers: the answers that it takes, besides the id of a side.
        command: a command line that settles it.
        why: why it is asked, or "" if no reason is kept.
    """

    id: str
    kind: str
    question: str
    sides: tuple[Side, ...]
    answers: tuple[str, ...]
    command: str
    since: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RuleLink(View):
    """A link by which the rule of search holds one memory for newer than another.

    Attributes:
        source: the newer memory; `target`, the older one.
        ended_at: None while it is in effect.
        ended_by: "answer" if a link of a person or an agent took its place, "rule" if a change of a memory did.
    """

    source: str
    target: str
    type: str
    strength: float
    why: str
    at: datetime
    ended_at: datetime | None
    ended_by: str


def rule_links(engine: Engine, limit: int) -> list[RuleLink]:
    """Return the links of the rule, the latest first, also those that have ended."""
    links = engine._runtime.store.links(engine.namespace, past=True)
    answers = {(frozenset((each.source, each.target)), each.created_at) for each in links if each.origin != RULE}

    def view(link: Link) -> RuleLink:
        at, ended_at = moment_of(link.created_at), None if link.expired_at is None else moment_of(link.expired_at)
        is_answered = (frozenset((link.source, link.target)), link.expired_at) in answers
        ended_by = "answer" if is_answered else "rule" if ended_at else ""
        return RuleLink(link.source, link.target, link.type, link.strength, link.reason, at, ended_at, ended_by)

    made = [link for link in links if link.origin == RULE]
    return [view(link) for link in sorted(made, key=lambda link: -link.created_at)[:limit]]


def questions(engine: Engine) -> Iterator[Question]:
    """Yield open questions: contradictions, then possibly superseded memories, surest first, then proposals."""
    yield from _contradictions(engine)
    runtime = engine._runtime
    for older, newer, is_sure, disputes in overtaken(runtime.store, engine.namespace):
        if is_sure or disputes:
            continue  # disputes are questions themselves
        sides = tuple(_memory_side(runtime.view(memory)) for memory in (older, newer))
        ids, question = (older.owner.id, newer.owner.id), "Which holds now, the older (left) or the newer one (right)?"
        command = f"commonplace memory link {quote(ids[1])} {quote(ids[0])} --type {SUPERSEDES}"
        yield Question(":".join(ids), "overtaken", question, sides, ANSWERS["overtaken"], command, sides[1].at)
    for issue in engine.ledger.query(status="open"):
        if issue["issue_type"] == GOLDEN:
            continue
        sides_found = []
        for id_ in issue["memory_ids"]:
            with suppress(NotFoundError):
                sides_found.append(_memory_side(engine.get(id_, touch=False)))
        if sides_found:
            kind = "merge" if issue["agent"] == "merge" and len(sides_found) == 2 else "proposal"
            command, reason = f"commonplace consolidate process {issue['id']}", str(issue["notes"].get("why", ""))
            question, since = f"{issue['title']}?", datetime.fromisoformat(issue["created_at"])
            yield Question(issue["id"], kind, question, tuple(sides_found), ANSWERS[kind], command, since, reason)


def _contradictions(engine: Engine) -> Iterator[Question]:
    graph = engine.graph
    for dispute in graph.disputes():
        facts = sorted(dispute.relations, key=lambda fact: (_since(fact), fact.created_at, fact.uuid))
        sides = []
        for fact in facts:
            source = _source(graph.episode(fact.episodes[0])) if fact.episodes else ""
            sides.append(Side(fact.uuid, fact.fact, source, fact.valid_from, fact.trust))
        disputed = [entry for entry in graph.history(sides[-1].id).entries if entry.what == "disputed"]
        reason = next((entry.reason for entry in reversed(disputed) if entry.reason), "")
        kind, question = "contradiction", "Which is right?"
        if len(sides) == 1:
            kind, question = "ending", "Does it still hold (left), or has it ended (right)?"
            denials = [entry.episode for entry in disputed if entry.episode]
            ends = graph.episode(denials[-1]) if denials else None
            ended = Side("", "it has ended")
            if ends is not None:  # the episode that says so is still stored
                ended = Side("", ends.content, _source(ends), ends.reference_time, ends.trust)
            sides.append(ended)
        command = f"commonplace graph settle {sides[0].id} --reason WHY"
        yield Question(dispute.uuid, kind, question, tuple(sides), ANSWERS[kind], command, dispute.since, reason)


def _since(fact: RelationView) -> float:
    return 0.0 if fact.valid_from is None else fact.valid_from.timestamp()


def _source(episode: EpisodeView) -> str:
    return ", ".join(filter(None, (episode.origin, episode.source_description or episode.name)))


def _memory_side(memory: Memory) -> Side:
    source = ", ".join(filter(None, (memory.origin, memory.source)))
    return Side(memory.id, memory.content, source, memory.at or memory.created_at, memory.trust)


def answer(engine: Engine, id_: str, choice: str, *, reason: str, text: str, by_agent: bool) -> dict[str, Any]:
    """Apply an answer to a question; return what was done."""
    question = next((waiting for waiting in questions(engine) if waiting.id == id_), None)
    if question is None:
        raise NotFoundError(f"there is no open question {id_!r:.80}", remedy="see `commonplace review`")
    sides = {side.id: index for index, side in enumerate(question.sides) if side.id}
    if choice not in question.answers and choice not in sides:
        problem = f"{choice!r:.40} is no answer to it" if choice else "it needs an answer"
        raise UsageError(problem, remedy=f"give {', '.join(question.answers)}, or a side's id")
    if by_agent:
        refuse_agent(trusts_of(engine, question))
    reason = reason or ("an agent decided" if by_agent else "a person decided")
    position = sides[choice] if choice in sides else {"left": 0, "right": 1}.get(choice)
    if question.kind in ("contradiction", "ending"):
        _settle(engine, question, choice, position, reason, text)
    elif question.kind == "overtaken":
        ids = [side.id for side in question.sides[::-1]]
        _supersede(engine, ids, {ids[position == 0]}, choice, text, reason)
    elif choice == "accept":
        engine.process_issue(id_)
    else:
        if position is not None or choice == "edit":
            kept_id = question.sides[position or 0].id
            if choice == "edit":
                engine.update(kept_id, _written(text))
            archived = [side.id for side in question.sides if side.id != kept_id]
            for other_id in archived:
                engine.archive(other_id)
            reason += f"; archived, until `commonplace memory restore` brings it back: {', '.join(archived)}"
        engine.ledger.close(id_, reason)
    return {"id": id_, "kind": question.kind, "answer": choice, "reason": reason}


def trusts_of(engine: Engine, question: Question) -> list[float]:
    """Return the trust in the sides of a question and in all that states its facts; a side shows the first of these."""
    trusts = [side.trust for side in question.sides]
    if question.kind not in ("contradiction", "ending"):
        return trusts
    graph = engine._runtime.store.graph(engine.namespace)
    mentions = graph.mentions("relation", [side.id for side in question.sides if side.id])
    stating = graph.episodes([*{mention.episode for rows in mentions.values() for mention in rows}])
    return trusts + [episode.trust for episode in stating.values()]


def is_for_agents(trusts: Iterable[float]) -> bool:
    """Return whether every trust is in the range in which an agent may decide."""
    return all(MIN_TRUST <= trust <= MAX_TRUST for trust in trusts)


def refuse_agent(trusts: Iterable[float]) -> None:
    """Raise a `UsageError` if an agent may not decide."""
    if not is_for_agents(trusts):
        raise UsageError(
            "an agent may not settle what a user said, or what is not trusted",
            remedy="tell the user: `commonplace review` asks them",
        )


def _settle(engine: Engine, question: Question, choice: str, position: int | None, reason: str, text: str) -> None:
    runtime, first = engine._runtime, question.sides[0].id
    statements = disputes_of(runtime.store, engine.namespace).get(question.id, {})
    chosen = Selection(ids=tuple(statements), statuses=("active", "promoted"), sessions=("",))
    memories = runtime.store.memories(engine.namespace, chosen) if statements else []
    ids = [each.owner.id for each in sorted(memories, key=lambda each: (each.at, each.created_at), reverse=True)]
    if choice == "edit":
        _correct(engine, question, reason, text, is_kept=not ids)
    elif choice == "both":
        engine.graph.settle(first, reason=reason, verdict="both")
    elif question.kind == "ending" and position == 1:
        engine.graph.settle(first, reason=reason, verdict="ended")
    else:
        engine.graph.settle(question.sides[position or 0].id, reason=reason)
    winners = set(ids[:1])
    if question.kind == "ending":
        graph = runtime.store.graph(engine.namespace)
        denial = denial_of(graph, first)
        ends = {episode.memory for episode in graph.episodes([denial.episode] if denial else ()).values()}
        winners = {id_ for id_ in ids if (id_ in ends) == (position == 1)}
    elif position is not None:
        winners = {id_ for id_ in ids if question.sides[position].id in statements[id_]}
    _supersede(engine, ids, winners, choice, text, reason)
    side_ids = {side.id for side in question.sides}
    for _ in question.sides if question.kind == "contradiction" else ():
        for dispute in engine.graph.disputes():
            if side_ids.issuperset(fact.uuid for fact in dispute.relations):  # among past facts, the newest was right
                newest = max(dispute.relations, key=lambda fact: (_since(fact), fact.created_at))
                engine.graph.settle(newest.uuid, reason=reason)


def _correct(engine: Engine, question: Question, reason: str, text: str, *, is_kept: bool) -> None:
    """Settle a dispute by a new text, which is kept as an episode only if no memory will hold it."""
    added = engine.graph.add_episode(_written(text), source_description="review", origin="user")
    fact = next((view for view in added.relations if view.disputed and view.dispute == question.id), None)
    is_right = fact is not None or {view.uuid for view in added.ended}.issuperset(side.id for side in question.sides)
    if not (is_right and is_kept):
        assert added.episode is not None
        engine.graph.delete_episode(added.episode.uuid)
    if not is_right:
        raise UsageError("the text does not say what is right", remedy="write it as one of the sides is written")
    if is_kept and fact is not None:
        engine.graph.settle(fact.uuid, reason=reason)


def _supersede(engine: Engine, ids: Sequence[str], winners: Set[str], choice: str, text: str, reason: str) -> None:
    if choice == "edit" and ids:
        engine.update(ids[0], _written(text))
    losers = [id_ for id_ in ids if id_ not in winners]
    for source, target in combinations(ids, 2) if choice == "both" else product(sorted(winners), losers):
        engine.link(source, target, HOLDS_BESIDE if choice == "both" else SUPERSEDES)
        for statements in disputes_of(engine._runtime.store, engine.namespace).values():
            if statements.keys() >= {source, target} and statements[source] - statements[target]:
                verdict = "both" if choice == "both" else "right"
                engine.graph.settle(min(statements[source] - statements[target]), reason=reason, verdict=verdict)


def _written(text: str) -> str:
    if not text.strip():
        raise UsageError("edit needs the text that is right", remedy="give it with text='TEXT'")
    return text
