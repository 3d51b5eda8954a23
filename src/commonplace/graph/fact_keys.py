"""Load, resolve and write the facts of one key in one transaction.

What is added is resolved with the facts as they are; deletions, merges and splits resolve from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.graph.facts import Assertion, FactKey, assertion_of, fact_of, facts_of, happening, key_among, key_of
from commonplace.graph.kinds import PER_TOPIC
from commonplace.graph.names import compare, forms_of
from commonplace.graph.resolver import Effect, FactResolver, ResolvedFacts, Rule, resolve_facts
from commonplace.graph.runtime import GraphRuntime, roots
from commonplace.store.graph import GraphChange
from commonplace.types.graph import GraphFilter, Happening, Mention, Relation

MAX_KEYS: Final = 1_000
"""So many slots are kept at hand while an episode is taken in."""
_FEW: Final = 64
"""So many facts tell what a place lies in."""
_DECIDERS: Final = frozenset({"person", "organization"})
"""Who decides this and that; of anything else, its decisions are about it."""
_LYING_IN: Final = ("LOCATED_IN", "PART_OF")
"""What tells where a place lies; whoever says more of it changes what has been read."""
_STEPS: Final = 4
"""So many times a place is followed to the one that it lies in."""


@dataclass(slots=True)
class Changed:
    """What became of facts in one transaction: ids, each once, in order."""

    said: dict[str, None] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    disputed: dict[str, None] = field(default_factory=dict)
    retracted: dict[str, None] = field(default_factory=dict)

    def take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if effect.is_own:
                self.said[effect.relation] = None
            noted = {"ended": self.ended, "disputed": self.disputed, "retracted": self.retracted}.get(effect.what)
            if noted is not None:
                noted[effect.relation] = None


@dataclass(frozen=True, slots=True)
class Revision:
    """Facts as they were before they were resolved from scratch, by id, and the ids of those that are no more."""

    before: Mapping[str, Relation]
    erased: Mapping[str, None]


@dataclass(frozen=True, slots=True)
class _End:
    """The forms of the names of a target that may be a place, and what it lies in."""

    forms: frozenset[str] = frozenset()
    around: set[str] = field(default_factory=set)


class _Places:
    """Which targets lie in which.

    Not a part of the facts' own class, which holds a rule that asks this: in a circle, each change of the graph would
    stay in memory until the garbage collector runs.
    """

    def __init__(self, graph: GraphChange) -> None:
        self._graph = graph
        self.ends: dict[str, _End] = {}

    def compare(self, one: str, other: str) -> str:
        """Return whether of two targets one lies in the other, as far as the graph and common knowledge tell."""
        first, second = self._end(one), self._end(other)
        if not (first.forms and second.forms):
            return "apart"  # one of them is no place
        is_within = other in first.around or one in second.around
        return "within" if is_within else compare(first.forms, second.forms)

    def _end(self, id_: str) -> _End:
        """Return what counts of a target, read once: it is compared with all others of its slot."""
        if id_ in self.ends:
            return self.ends[id_]
        found, around, rim = self._graph.entities([id_]).get(id_), set[str](), [id_]
        if found is None or found.type not in ("place", "concept"):
            return self.ends.setdefault(id_, _End())
        for _ in range(_STEPS):
            of = self._graph.relations_of(rim, GraphFilter(types=_LYING_IN), limit=_FEW)
            rim = [each.target for one in rim for each in of.get(one, ()) if each.source == one]
            rim = [each for each in dict.fromkeys(rim) if each not in around]
            around.update(rim)
        names = {found.name, *(alias.name for alias in self._graph.aliases([id_]).get(id_, ()))}
        return self.ends.setdefault(id_, _End(forms_of(names), around))


class FactKeys:
    """The facts of a graph under change, slot by slot."""

    def __init__(self, graph: GraphChange, ground: GraphRuntime) -> None:
        self._graph = graph
        self._ground = ground
        self._places = _Places(graph)
        self._runs: dict[tuple[FactKey, bool], tuple[FactResolver, dict[str, Relation]]] = {}

    def say(self, evidence: Assertion, changed: Changed) -> None:
        if evidence.type in _LYING_IN:
            self._places.ends.clear()
        run, known = self._reckoning(self._key(evidence.source, evidence.type, evidence.target, evidence.aspect))
        told = run.take(replace(evidence, order=run.order + 1))
        for relation in run.changed():
            old = known.get(relation.id)
            if old != relation:
                self._graph.put_relation(relation, self._ground.texts.of_relation(relation) if old is None else None)
                known[relation.id] = relation
        # From now on it speaks of the fact that it was taken for, whoever said that first.
        effects = [
            replace(each, evidence=replace(each.evidence, home=each.relation)) if each.is_own else each for each in told
        ]
        self._write(effects)
        changed.take(effects)

    def revise(self, relations: Iterable[Relation], change: Callable[[str, Assertion], Assertion | None]) -> Revision:
        """Resolve the keys of some facts from scratch, from all that is said of them, as it is after a change.

        Facts that nothing is said of any more go, and so does what happened to others because of what is gone.

        Args:
            change: returns what an assertion, given with the id of its fact, is from now on; None where it goes.
        """
        self._runs.clear()
        keys = list(dict.fromkeys(key_of(each, self._ground.kinds) for each in relations))
        known = {each.id: each for key in keys for each in facts_of(self._graph, key)}
        said = [new for id_, each in self.said_of(known) if (new := change(id_, each)) is not None]
        now = self._now(said)
        # What moves to another key meets what is said there.
        others = dict.fromkeys(key for each in said if (key := self._key_of(each, now)) not in keys)
        moved_to = {each.id: each for key in others for each in facts_of(self._graph, key)}
        known |= moved_to
        said += [each for _, each in self.said_of(moved_to)]
        now |= self._now(said)
        sayings: dict[FactKey, list[Assertion]] = {key: [] for key in (*keys, *others)}
        for each in said:
            sayings.setdefault(self._key_of(each, now), []).append(each)
        results = []
        for key, some in sayings.items():
            some.sort(key=lambda each: (each.at, each.order, each.home))
            results.append(resolve_facts([], some, self._rule(key, now)))
        return Revision(known, self._write_again(known, results))

    def _write_again(self, known: Mapping[str, Relation], results: Sequence[ResolvedFacts]) -> dict[str, None]:
        """Write facts that were resolved from scratch in place of those that are known; return what is no more."""
        new = {each.id: each for result in results for each in result.relations}
        gone = dict.fromkeys(id_ for id_ in known if id_ not in new)
        self._graph.erase_relations(list(gone))
        mentions = self._graph.mentions("relation", list(new))
        self._graph.drop_mentions([mention for each in mentions.values() for mention in each])
        for relation in new.values():
            old = known.get(relation.id)
            has_text = old is not None and old.fact == relation.fact
            self._graph.put_relation(relation, None if has_text else self._ground.texts.of_relation(relation))
            self._graph.drop(Happening, kind="relation", subject=relation.id)
        for result in results:
            self._write(result.effects)
        return gone

    def said_of(self, relations: Iterable[str]) -> list[tuple[str, Assertion]]:
        """Return what is said of facts, each with the id of its fact."""
        types = {id_: each.type for id_, each in self._graph.relations(list(relations)).items()}
        found = (
            (id_, assertion_of(each, types[id_])) for id_ in types for each in self._graph.happenings("relation", id_)
        )
        return [(id_, said) for id_, said in found if said is not None]

    def _key_of(self, said: Assertion, now: Mapping[str, str]) -> FactKey:
        return self._key(now[said.source], said.type, now[said.target], said.aspect)

    def _key(self, source: str, type_: str, target: str, aspect: str) -> FactKey:
        return key_among(self._ground.kinds, source, type_, target, aspect)

    def _now(self, said: Iterable[Assertion]) -> dict[str, str]:
        return roots(self._graph, [end for each in said for end in (each.source, each.target)])

    def _reckoning(self, slot: FactKey) -> tuple[FactResolver, dict[str, Relation]]:
        """Return the facts of a slot, read once for all that is said of them, and the same as they are stored."""
        rule = self._rule(slot, {})
        if (slot, rule.is_topic) not in self._runs:
            if len(self._runs) >= MAX_KEYS:
                self._runs.clear()
            known = facts_of(self._graph, slot)
            run = FactResolver(rule, map(fact_of, known))
            self._runs[slot, rule.is_topic] = run, {each.id: each for each in known}
        return self._runs[slot, rule.is_topic]

    def _rule(self, slot: FactKey, now: Mapping[str, str]) -> Rule:
        source = self._graph.entities([slot.source]).get(slot.source) if slot.type in PER_TOPIC else None
        is_topic = source is not None and source.type not in _DECIDERS
        is_single = bool(slot.aspect) or self._ground.kinds.is_single(slot.type)
        return Rule(slot.type, is_single, self._places.compare, now, is_topic)

    def _write(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            said = effect.evidence
            if effect.is_own:
                self._graph.put(happening(effect.what, effect.relation, said, effect.reason))
            else:
                self._graph.put(
                    Happening("relation", effect.relation, said.at, effect.what, effect.reason, said.episode)
                )
        self._graph.put(
            *(
                Mention(each.evidence.episode, "relation", each.relation, each.evidence.start, each.evidence.end)
                for each in effects
                if each.is_own and each.evidence.episode
            )
        )
