"""Load, resolve and write the facts of one key in one transaction.

New assertions are resolved against the stored facts. Deletions, merges and splits, and assertions that were made before
others of their key, resolve it from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.graph.facts import Assertion, FactKey, assertion_of, fact_of, facts_of, happening, key_among, key_of
from commonplace.graph.names import compare, forms_of
from commonplace.graph.resolver import Effect, FactResolver, Rule, chronological, resolve_facts
from commonplace.graph.runtime import GraphRuntime, roots
from commonplace.store.graph import GraphChange
from commonplace.types.graph import GraphFilter, Happening, Mention, Relation

_FEW: Final = 64
"""Maximum number of facts read per place to find the places that contain it."""
_DECIDERS: Final = frozenset({"person", "organization"})
"""Types whose entities may have several DECIDED facts at a time; any other source has one."""
_LYING_IN: Final = ("LOCATED_IN", "PART_OF")
"""Relations that say where a place is; a new one invalidates what `_Places` has read."""
_STEPS: Final = 4
"""Maximum number of levels of containing places."""


@dataclass(slots=True)
class Changed:
    """Ids of the facts that one transaction stated, ended, disputed or retracted; each once, in order."""

    said: dict[str, None] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    disputed: dict[str, None] = field(default_factory=dict)
    retracted: dict[str, None] = field(default_factory=dict)


class _Places:
    """Decides whether one target contains another.

    Separate from `FactKeys`, whose rules refer to it: a reference cycle would keep every change of the graph in memory
    until the garbage collector runs.
    """

    def __init__(self, graph: GraphChange) -> None:
        self._graph = graph
        self.read: dict[str, tuple[frozenset[str], set[str]]] = {}

    def compare(self, left: str, right: str) -> str:
        """Return how two targets relate, by the graph and common knowledge; the values are those of `names.compare`."""
        (first, around_first), (second, around_second) = self._place(left), self._place(right)
        if not (first and second):
            return "apart"  # one of them is no place
        return "within" if right in around_first or left in around_second else compare(first, second)

    def _place(self, id_: str) -> tuple[frozenset[str], set[str]]:
        """Return the forms of a target's names, empty if it is no place, and the ids of the places that contain it."""
        if id_ in self.read:
            return self.read[id_]
        forms, around = frozenset[str](), set[str]()
        entity = self._graph.entities([id_]).get(id_)
        if entity is not None and entity.type in ("place", "concept"):
            rim = [id_]
            for _ in range(_STEPS):
                containing = self._graph.relations_of(rim, GraphFilter(types=_LYING_IN), limit=_FEW)
                rim = [fact.target for inner in rim for fact in containing.get(inner, ()) if fact.source == inner]
                rim = [outer for outer in dict.fromkeys(rim) if outer not in around]
                around.update(rim)
            aliases = self._graph.aliases([id_]).get(id_, ())
            forms = forms_of({entity.name, *(alias.name for alias in aliases)})
        self.read[id_] = forms, around
        return self.read[id_]


class FactKeys:
    """Changes the facts of a graph, key by key; `finish` returns the effects of all calls to `say`."""

    def __init__(self, graph: GraphChange, runtime: GraphRuntime) -> None:
        self._graph = graph
        self._runtime = runtime
        self._changed = Changed()
        self._late: dict[str, None] = {}
        self._places = _Places(graph)
        self._runs: dict[tuple[FactKey, bool], tuple[FactResolver, dict[str, Relation]]] = {}

    def say(self, assertion: Assertion) -> None:
        """Add an assertion and write its effects on facts."""
        if assertion.type in _LYING_IN:
            self._places.read.clear()
        key = key_among(self._runtime.kinds, assertion.source, assertion.type, assertion.target, assertion.aspect)
        rule = self._rule(key, {})
        # The facts of a key are read once for all of its assertions.
        if (key, rule.is_single) not in self._runs:
            stored = facts_of(self._graph, key)
            resolver = FactResolver(rule, map(fact_of, stored))
            self._runs[key, rule.is_single] = resolver, {fact.id: fact for fact in stored}
        resolver, relations = self._runs[key, rule.is_single]
        is_late = assertion.told < resolver.last_told
        effects = resolver.take(replace(assertion, order=resolver.order + 1))
        for relation in resolver.changed():
            old = relations.get(relation.id)
            if old != relation:
                self._graph.put_relation(relation, self._runtime.texts.of_relation(relation) if old is None else None)
                relations[relation.id] = relation
        # The home of the assertion becomes the fact that it was resolved to.
        homes = [replace(one.evidence, home=one.relation) if one.is_own else one.evidence for one in effects]
        self._write([replace(one, evidence=evidence) for one, evidence in zip(effects, homes, strict=True)])
        for effect in effects:
            if effect.is_own:
                self._changed.said[effect.relation] = None
                self._late.update({effect.relation: None} if is_late else {})
            if effect.what in ("ended", "disputed", "retracted"):
                getattr(self._changed, effect.what)[effect.relation] = None

    def finish(self) -> Changed:
        """Return the effects of all calls, after resolving again the keys with an assertion that was made earlier."""
        changed, late = self._changed, self._graph.relations(list(self._late))
        self._changed, self._late = Changed(), {}
        if not late:
            return changed
        self.revise(late.values())
        now = self._graph.relations([*changed.said, *changed.ended, *changed.disputed])
        changed.said = {id_: None for id_ in changed.said if id_ in now}
        changed.ended = {id_: None for id_ in (*changed.ended, *changed.disputed) if id_ in now and now[id_].expired_at}
        changed.disputed = {id_: None for id_ in changed.disputed if id_ in now and now[id_].dispute}
        return changed

    def revise(
        self,
        relations: Iterable[Relation],
        change: Callable[[str, Assertion], Assertion | None] = lambda _id, said: said,
    ) -> tuple[Mapping[str, Relation], set[str]]:
        """Resolve the keys of facts from scratch, from all of their assertions after a change.

        Facts without assertions are erased, and the happenings of the others are written anew. Return the facts of the
        keys as they were before, by id, and the ids of the facts erased.

        Args:
            change: takes the id of a fact and an assertion of it; returns the changed assertion, None to delete it.
        """
        kinds = self._runtime.kinds
        self._runs.clear()
        keys = list(dict.fromkeys(key_of(fact, kinds) for fact in relations))
        stored = {fact.id: fact for key in keys for fact in facts_of(self._graph, key)}
        assertions = [revised for id_, item in self.said_of(stored) if (revised := change(id_, item)) is not None]
        root = self._roots(assertions)

        def key_now(item: Assertion) -> FactKey:
            return key_among(kinds, root[item.source], item.type, root[item.target], item.aspect)

        # An assertion that moves to another key is resolved with the assertions of that key.
        new_keys = dict.fromkeys(key for item in assertions if (key := key_now(item)) not in keys)
        moved_to = {fact.id: fact for key in new_keys for fact in facts_of(self._graph, key)}
        stored |= moved_to
        assertions += [item for _, item in self.said_of(moved_to)]
        root |= self._roots(assertions)
        by_key: dict[FactKey, list[Assertion]] = {key: [] for key in (*keys, *new_keys)}
        for item in assertions:
            by_key.setdefault(key_now(item), []).append(item)
        results = [resolve_facts([], chronological(group), self._rule(key, root)) for key, group in by_key.items()]
        resolved = {fact.id: fact for result in results for fact in result.relations}
        erased = [id_ for id_ in stored if id_ not in resolved]
        self._graph.erase_relations(erased)
        effects: dict[str, list[Effect]] = {id_: [] for id_ in resolved}
        for effect in (effect for result in results for effect in result.effects):
            effects[effect.relation].append(effect)
        mentions = self._graph.mentions("relation", list(resolved))
        for id_, relation in resolved.items():
            old, mentioned = stored.get(id_), mentions.get(id_, [])
            if relation != old:
                has_text = old is not None and old.fact == relation.fact
                self._graph.put_relation(relation, None if has_text else self._runtime.texts.of_relation(relation))
            is_same = [*map(_happening, effects[id_])] == self._graph.happenings("relation", id_)
            if not (is_same and {*_mentions(effects[id_])} == {*mentioned}):
                self._graph.drop_mentions(mentioned)
                self._graph.drop(Happening, kind="relation", subject=id_)
                self._write(effects[id_])
        return stored, set(erased)

    def said_of(self, relations: Iterable[str]) -> list[tuple[str, Assertion]]:
        """Return the assertions of facts, each with the id of its fact."""
        stored = self._graph.relations(list(relations))
        rows = (
            (id_, fact.type, row) for id_, fact in stored.items() for row in self._graph.happenings("relation", id_)
        )
        return [(id_, said) for id_, type_, row in rows if (said := assertion_of(row, type_)) is not None]

    def _roots(self, assertions: Iterable[Assertion]) -> dict[str, str]:
        return roots(self._graph, [end for assertion in assertions for end in (assertion.source, assertion.target)])

    def _rule(self, key: FactKey, root_of: Mapping[str, str]) -> Rule:
        source = self._graph.entities([key.source]).get(key.source) if key.type == "DECIDED" else None
        is_decider = source is not None and source.type in _DECIDERS
        is_single = bool(key.aspect) or (self._runtime.kinds.is_single(key.type) and not is_decider)
        return Rule(key.type, is_single, self._places.compare, root_of)

    def _write(self, effects: Sequence[Effect]) -> None:
        self._graph.put(*map(_happening, effects))
        self._graph.put(*_mentions(effects))


def _happening(effect: Effect) -> Happening:
    id_, evidence = effect.relation, effect.evidence
    if effect.is_own:
        return happening(effect.what, id_, evidence, effect.reason)
    return Happening("relation", id_, evidence.at, effect.what, effect.reason, evidence.episode)


def _mentions(effects: Iterable[Effect]) -> list[Mention]:
    own = ((effect.relation, effect.evidence) for effect in effects if effect.is_own and effect.evidence.episode)
    return [Mention(said.episode, "relation", id_, said.start, said.end) for id_, said in own]
