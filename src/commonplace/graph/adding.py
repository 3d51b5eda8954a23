"""Bring an episode into a graph under change. What it says, others have found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commonplace.extract.result import Cancellation
from commonplace.graph.called_off import TakenBack
from commonplace.graph.deleting import take_out
from commonplace.graph.entities import Entities
from commonplace.graph.evidence import Evidence
from commonplace.graph.ground import Texts, fact_text, names_text
from commonplace.graph.naming import MAX_NAME_CHARACTERS, cleaned
from commonplace.graph.slots import Changed, Slots
from commonplace.types.graph import Entity, Episode, Mention

if TYPE_CHECKING:
    from commonplace.extract.result import Claim, Extraction, Found
    from commonplace.graph.ground import Ground
    from commonplace.graph.views import AdditionOutcome
    from commonplace.store.graph_contract import GraphChange

MOST_MENTIONS: Final = 50
"""So often an episode is recorded to mention a thing; further mentions where they call it otherwise."""


@dataclass(frozen=True, slots=True)
class Added:
    """What came into a graph, by ids in the order of the text."""

    episode: Episode
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    outcome: AdditionOutcome = "added"
    notices: tuple[str, ...] = ()


def prepare(texts: Texts, extraction: Extraction) -> None:
    """Embed what an extraction will most likely write, before a transaction begins."""
    texts.prepare(
        [fact_text(claim.fact, claim.type) for claim in extraction.claims]
        + [names_text(cleaned(found.name)[:MAX_NAME_CHARACTERS], found.aliases) for found in extraction.entities]
    )


def add_episode(
    graph: GraphChange,
    ground: Ground,
    texts: Texts,
    episode: Episode,
    extraction: Extraction,
    content: str = "",
    *,
    is_new: bool = False,
) -> Added:
    """Write an episode with all that it says.

    What an episode of the same id had brought goes first; the same episode, word for word, changes nothing.

    Args:
        content: the text that the extraction is of, where the episode itself holds none.
        is_new: its id was made for it, so that there is none of it.
    """
    known = None if is_new else graph.episodes([episode.id]).get(episode.id)
    if known is not None:
        if replace(known, created_at=episode.created_at) == episode:
            mentioned = graph.mentioned([episode.id]).get(episode.id, [])
            of_kind = {
                kind: tuple(dict.fromkeys(each.subject for each in mentioned if each.kind == kind))
                for kind in ("entity", "relation")
            }
            return Added(known, of_kind["entity"], of_kind["relation"], outcome="unchanged")
        take_out(graph, ground, texts, [episode.id])
    graph.put_episode(episode)
    run = _Adding(graph, ground, texts, episode, content or episode.content)
    entities = [run.entity(found) for found in extraction.entities]
    sayings: list[Claim | Cancellation] = [*extraction.claims, *extraction.cancellations]
    for each in sorted(sayings, key=lambda saying: saying.span[0]):
        if isinstance(each, Cancellation):
            run.cancel(each, entities)
        else:
            run.claim(each, entities)
    return Added(
        episode,
        tuple(dict.fromkeys(entity.id for entity in entities)),
        tuple(id_ for id_ in run.changed.said if id_ not in run.changed.erased),
        tuple(run.changed.ended),
        tuple(run.changed.disputed),
        "added" if known is None else "replaced",
        tuple(dict.fromkeys(run.notices)),
    )


class _Adding:
    """One episode on its way in."""

    def __init__(self, graph: GraphChange, ground: Ground, texts: Texts, episode: Episode, content: str) -> None:
        self.changed = Changed()
        self.notices: list[str] = []
        self._graph = graph
        self._ground = ground
        self._episode = episode
        self._content = content
        self._entities = Entities(graph, ground, texts)
        self._slots = Slots(graph, ground, texts)
        self._taken_back = TakenBack(graph)

    def entity(self, found: Found) -> Entity:
        """Return the entity that is meant, and record where it is mentioned."""
        type_ = found.type if self._ground.kinds.has_entity(found.type) else "concept"
        entity = self._entities.of_name(found.name, type_, self._episode, found.aliases)
        # One that stands nowhere as it is called is still mentioned, or nothing would tell who supports it.
        mentions = [self._mention(entity, start, end) for start, end in found.spans or ((0, 0),)]
        called = {each.name: each for each in reversed(mentions)}
        further = [each for each in mentions[MOST_MENTIONS:] if called[each.name] is each]
        self._graph.put_mentions([*mentions[:MOST_MENTIONS], *further])
        return entity

    def claim(self, claim: Claim, entities: Sequence[Entity]) -> None:
        """Take in a fact."""
        source, target = entities[claim.source], entities[claim.target]
        if source.id == target.id:
            self.notices.append(f"what is said of {source.name!r:.80} and itself is no fact")
            return
        if not self._ground.kinds.has_relation(claim.type):
            self.notices.append(f"facts of the type {claim.type!r:.80} are not known, and were left out")
            return
        evidence = Evidence(
            home=self._ground.new_id(),
            source=source.id,
            target=target.id,
            saying="denied" if claim.is_end else "once" if claim.is_former else "said",
            text=claim.fact,
            at=self._episode.created_at,
            told=self._episode.reference_time,
            valid_from=claim.valid_from,
            valid_to=claim.valid_to,
            trust=self._episode.trust,
            confidence=claim.confidence,
            group=self._episode.group,
            episode=self._episode.id,
            start=claim.span[0],
            end=claim.span[1],
        )
        self._slots.say(evidence, claim.type, self.changed)

    def cancel(self, called_off: Cancellation, entities: Sequence[Entity]) -> None:
        """Take in that something never came about: of what is known, the fact that is most likely meant."""
        found = self._taken_back.find(called_off, entities, list(self.changed.said), self._episode)
        if found is None:
            return
        evidence = Evidence(
            home=found.relation.id,
            source=found.relation.source,
            target=found.relation.target,
            saying="cancelled",
            text=called_off.fact,
            at=self._episode.created_at,
            told=self._episode.reference_time,
            trust=self._episode.trust,
            confidence=found.confidence,
            group=self._episode.group,
            episode=self._episode.id,
            start=called_off.span[0],
            end=called_off.span[1],
        )
        known = {*self.changed.retracted}
        self._slots.say(evidence, found.relation.type, self.changed)
        is_gone = found.relation.id in self.changed.retracted and found.relation.id not in known
        became = "is retracted, and what it had ended goes on" if is_gone else "is disputed"
        self.notices.append(f"{called_off.fact!r:.120}: {found.relation.fact!r:.120} {became}")

    def _mention(self, entity: Entity, start: int, end: int) -> Mention:
        name = cleaned(self._content[start:end])[:MAX_NAME_CHARACTERS]
        return Mention(self._episode.id, "entity", entity.id, start, end, name)
