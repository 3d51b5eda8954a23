"""Load, resolve and write the facts of one key in one transaction.

What is added is resolved with the facts as they are; deletions, merges and splits resolve from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.graph.facts import Assertion, FactKey, assertion_of, fact_of, facts_of, happening, key_among, key_of
from commonplace.graph.names import compare, forms_of
from commonplace.graph.resolver import Effect, FactResolver, Rule, resolve_facts
from commonplace.graph.runtime import GraphRuntime, roots
from commonplace.store.graph import GraphChange
from commonplace.types.graph import GraphFilter, Happening, Mention, Relation

_FEW: Final = 64
"""How many facts are read to find what contains a place."""
_DECIDERS: Final = frozenset({"person", "organization"})
"""Who decides this and that; of anything else, what is decided is about it."""
_LYING_IN: Final = ("LOCATED_IN", "PART_OF")
"""Relations that say where a place is; a new one changes what has been read."""
_STEPS: Final = 4
"""How many times a place is followed to the one that contains it."""


@dataclass(slots=True)
class Changed:
    """What became of facts in one transaction: ids, each once, in order."""

    said: dict[str, None] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    disputed: dict[str, None] = field(default_factory=dict)
    retracted: dict[str, None] = field(default_factory=dict)


class _Places:
    """Which targets contain which.

    Not a part of the facts' own class, which holds a rule that asks this: in a circle, each change of the graph would
    stay in memory until the garbage collector runs.
    """

    def __init__(self, graph: GraphChange) -> None:
        self._graph = graph
        self.read: dict[str, tuple[frozenset[str], set[str]]] = {}

    def compare(self, one: str, other: str) -> str:
        """Return whether one of two targets contains the other, by the graph and by common knowledge."""
        (first, around_first), (second, around_second) = self._place(one), self._place(other)
        if not (first and second):
            return "apart"  # one of them is no place
        return "within" if other in around_first or one in around_second else compare(first, second)

    def _place(self, id_: str) -> tuple[frozenset[str], set[str]]:
        """Return the forms of a target's names, none if it is no place, and the ids of what contains it.

        It is read once, for it is compared with all others of its key.
        """
        if id_ in self.read:
            return self.read[id_]
        forms, around = frozenset[str](), set[str]()
        found = self._graph.entities([id_]).get(id_)
        if found is not None and found.type in ("place", "concept"):
            rim = [id_]
            for _ in range(_STEPS):
                of = self._graph.relations_of(rim, GraphFilter(types=_LYING_IN), limit=_FEW)
                rim = [each.target for one in rim for each in of.get(one, ()) if each.source == one]
                rim = [each for each in dict.fromkeys(rim) if each not in around]
                around.update(rim)
            aliases = self._graph.aliases([id_]).get(id_, ())
            forms = forms_of({found.name, *(alias.name for alias in aliases)})
        self.read[id_] = forms, around
        return self.read[id_]


class FactKeys:
    """The facts of a graph under change, key by key; `changed` is what became of them by what was said."""

    def __init__(self, graph: GraphChange, runtime: GraphRuntime) -> None:
        self._graph = graph
        self._runtime = runtime
        self.changed = Changed()
        self._places = _Places(graph)
        self._runs: dict[tuple[FactKey, bool], tuple[FactResolver, dict[str, Relation]]] = {}

    def say(self, said: Assertion) -> None:
        """Add an assertion, and write what becomes of facts by it."""
        if said.type in _LYING_IN:
            self._places.read.clear()
        key = key_among(self._runtime.kinds, said.source, said.type, said.target, said.aspect)
        rule = self._rule(key, {})
        # The facts of a key are read once for all that is said of them.
        if (key, rule.is_single) not in self._runs:
            stored = facts_of(self._graph, key)
            run = FactResolver(rule, map(fact_of, stored))
            self._runs[key, rule.is_single] = run, {each.id: each for each in stored}
        run, known = self._runs[key, rule.is_single]
        effects = run.take(replace(said, order=run.order + 1))
        for relation in run.changed():
            old = known.get(relation.id)
            if old != relation:
                self._graph.put_relation(relation, self._runtime.texts.of_relation(relation) if old is None else None)
                known[relation.id] = relation
        # From now on it speaks of the fact that it was taken for, whoever said that first.
        self._write(
            [
                replace(each, evidence=replace(each.evidence, home=each.relation)) if each.is_own else each
                for each in effects
            ]
        )
        for each in effects:
            if each.is_own:
                self.changed.said[each.relation] = None
            if each.what in ("ended", "disputed", "retracted"):
                getattr(self.changed, each.what)[each.relation] = None

    def revise(
        self,
        relations: Iterable[Relation],
        change: Callable[[str, Assertion], Assertion | None] = lambda _id, said: said,
    ) -> tuple[Mapping[str, Relation], set[str]]:
        """Resolve the keys of some facts from scratch, from all that is said of them, as it is after a change.

        Facts that nothing is said of any more go, and so does what happened to others because of what is gone.

        Args:
            change: returns what an assertion, given with the id of its fact, is from now on; None where it goes.

        Returns:
            The facts of these keys as they were before, by id, and the ids of those that are no more.
        """
        kinds = self._runtime.kinds
        self._runs.clear()
        keys = list(dict.fromkeys(key_of(each, kinds) for each in relations))
        known = {each.id: each for key in keys for each in facts_of(self._graph, key)}
        said = [new for id_, each in self.said_of(known) if (new := change(id_, each)) is not None]
        now = self._roots(said)

        def key_now(each: Assertion) -> FactKey:
            return key_among(kinds, now[each.source], each.type, now[each.target], each.aspect)

        # What moves to another key meets what is said there.
        others = dict.fromkeys(key for each in said if (key := key_now(each)) not in keys)
        moved_to = {each.id: each for key in others for each in facts_of(self._graph, key)}
        known |= moved_to
        said += [each for _, each in self.said_of(moved_to)]
        now |= self._roots(said)
        by_key: dict[FactKey, list[Assertion]] = {key: [] for key in (*keys, *others)}
        for each in said:
            by_key.setdefault(key_now(each), []).append(each)
        results = [
            resolve_facts([], sorted(some, key=lambda each: (each.at, each.order, each.home)), self._rule(key, now))
            for key, some in by_key.items()
        ]
        resolved = {each.id: each for result in results for each in result.relations}
        gone = [id_ for id_ in known if id_ not in resolved]
        self._graph.erase_relations(gone)
        mentions = self._graph.mentions("relation", list(resolved))
        self._graph.drop_mentions([mention for each in mentions.values() for mention in each])
        for relation in resolved.values():
            old = known.get(relation.id)
            has_text = old is not None and old.fact == relation.fact
            self._graph.put_relation(relation, None if has_text else self._runtime.texts.of_relation(relation))
            self._graph.drop(Happening, kind="relation", subject=relation.id)
        for result in results:
            self._write(result.effects)
        return known, set(gone)

    def said_of(self, relations: Iterable[str]) -> list[tuple[str, Assertion]]:
        """Return what is said of facts, each with the id of its fact."""
        types = {id_: each.type for id_, each in self._graph.relations(list(relations)).items()}
        found = (
            (id_, assertion_of(each, types[id_])) for id_ in types for each in self._graph.happenings("relation", id_)
        )
        return [(id_, said) for id_, said in found if said is not None]

    def _roots(self, said: Iterable[Assertion]) -> dict[str, str]:
        return roots(self._graph, [end for each in said for end in (each.source, each.target)])

    def _rule(self, key: FactKey, now: Mapping[str, str]) -> Rule:
        source = self._graph.entities([key.source]).get(key.source) if key.type == "DECIDED" else None
        is_decider = source is not None and source.type in _DECIDERS
        is_single = bool(key.aspect) or (self._runtime.kinds.is_single(key.type) and not is_decider)
        return Rule(key.type, is_single, self._places.compare, now)

    def _write(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            id_, said = effect.relation, effect.evidence
            if effect.is_own:
                self._graph.put(happening(effect.what, id_, said, effect.reason))
            else:
                self._graph.put(Happening("relation", id_, said.at, effect.what, effect.reason, said.episode))
        own = [each for each in effects if each.is_own and each.evidence.episode]
        self._graph.put(
            *(
                Mention(each.evidence.episode, "relation", each.relation, each.evidence.start, each.evidence.end)
                for each in own
            )
        )
