"""What an import takes in of a graph: checked, secrets replaced, not yet compared with a store.

Episodes come first, then entities, then facts: what one names stands before it, or in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.graph.cleaning import GraphCleaner, refuse_many_names, refuse_odd_detail
from commonplace.graph.entities import merged_into
from commonplace.graph.facts import fact_of
from commonplace.memories.intake import refuse_unfit, refuse_unfit_id, share, short_text
from commonplace.memories.times import seconds
from commonplace.redaction import Secret, find_secrets, redact
from commonplace.redaction.structures import cleaned_json
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation

MOST_OF_A_FACT: Final = 65_536
"""Characters of the sentence that says a fact; one that was given has at most 1,000."""


@dataclass(frozen=True, slots=True)
class EpisodeItem:
    """An episode; `secrets` are the kinds of those that were replaced in it."""

    place: str
    episode: Episode
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity with its names, where it is mentioned, and what happened to it."""

    place: str
    entity: Entity
    aliases: tuple[Alias, ...] = ()
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationItem:
    """A fact with where it is said, and what happened to it."""

    place: str
    relation: Relation
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()
    secrets: tuple[str, ...] = ()


GraphItem = EpisodeItem | EntityItem | RelationItem


@dataclass(slots=True)
class GraphIntake:
    """Checks the parts of one graph, in their order, and replaces the secrets in them.

    Attributes:
        max_bytes: the most bytes of UTF-8 that the content of an episode may have.

    Raises:
        UsageError: of every method: a value is of the wrong kind, too large or out of its range.
    """

    max_bytes: int
    _kinds: list[str] = field(default_factory=list)
    _cleaner: GraphCleaner = field(init=False)

    def __post_init__(self) -> None:
        self._cleaner = GraphCleaner(self._text, partial(_cleaned, self._text), self._find)

    def episode(self, place: str, episode: Episode) -> EpisodeItem:
        """Return an episode that may be stored."""
        refuse_unfit_id(episode.id)
        if not episode.memory or episode.content:
            refuse_unfit(episode.content, max_bytes=self.max_bytes)
        _refuse_long(episode, "name", "source_description", "group")
        _refuse_odd_times(episode, "reference_time", "created_at")
        share("trust", episode.trust)
        return EpisodeItem(place, self._cleaner.episode(episode), self._found())

    def entity(
        self,
        place: str,
        entity: Entity,
        aliases: Iterable[Alias],
        mentions: Iterable[Mention],
        happenings: Iterable[Happening],
    ) -> EntityItem:
        """Return an entity that may be stored."""
        refuse_unfit_id(entity.id)
        _refuse_long(entity, "name", "type", "group")
        _refuse_odd_times(entity, "created_at", "valid_from", "valid_to", "expired_at")
        share("trust", entity.trust)
        if not entity.name.strip() or not entity.type.strip():
            raise UsageError("the entity has no name, or no type", remedy="give both")
        _readable("attributes", _refuse_odd_merged, entity)
        clean = self._cleaner.entity(entity)
        names = tuple(aliases)
        refuse_many_names(names)
        for alias in names:
            _refuse_long(alias, "name", "normal")
            _refuse_odd_times(alias, "created_at")
        return EntityItem(
            place,
            clean,
            self._cleaner.aliases(clean, names),
            self._mentions(mentions),
            self._happenings(happenings),
            self._found(),
        )

    def relation(
        self, place: str, relation: Relation, mentions: Iterable[Mention], happenings: Iterable[Happening]
    ) -> RelationItem:
        """Return a fact that may be stored."""
        for id_ in (relation.id, relation.source, relation.target):
            refuse_unfit_id(id_)
        _refuse_long(relation, "type", "group", "dispute")
        _refuse_odd_times(relation, "created_at", "valid_from", "valid_to", "stated_to", "expired_at", "disputed_at")
        share("trust", relation.trust)
        share("confidence", relation.confidence)
        if not relation.type.strip() or len(relation.fact) > MOST_OF_A_FACT:
            raise UsageError(
                f"the fact has no type, or {len(relation.fact):,} characters",
                remedy=f"give its type, and a sentence of at most {MOST_OF_A_FACT:,} characters",
            )
        _readable("attributes", fact_of, relation)
        return RelationItem(
            place,
            self._cleaner.relation(relation),
            self._mentions(mentions),
            self._happenings(happenings),
            self._found(),
        )

    def _mentions(self, mentions: Iterable[Mention]) -> tuple[Mention, ...]:
        given = tuple(mentions)
        for each in given:
            refuse_unfit_id(each.episode)
            _refuse_long(each, "name")
            if not 0 <= each.start <= each.end:
                raise UsageError(f"a mention is of the characters {each.start}-{each.end}", remedy="count from 0")
        return self._cleaner.mentions(given)

    def _happenings(self, happenings: Iterable[Happening]) -> tuple[Happening, ...]:
        given = tuple(happenings)
        for each in given:
            _refuse_odd_times(each, "at")
            _refuse_long(each, "what", "reason")
            _readable("detail", refuse_odd_detail, each)
        return self._cleaner.happenings(given)

    def _text(self, text: str) -> str:
        redacted = redact(text)
        self._kinds += redacted.kinds
        return redacted.text

    def _find(self, text: str) -> tuple[Secret, ...]:
        secrets = find_secrets(text)
        self._kinds += (each.kind for each in secrets)
        return secrets

    def _found(self) -> tuple[str, ...]:
        """Return the kinds of secrets that were replaced since the last time."""
        kinds, self._kinds[:] = tuple(self._kinds), []
        return kinds


def _cleaned(clean: Callable[[str], str], value: Any) -> Any:
    return cleaned_json(value, clean)


def _refuse_odd_merged(entity: Entity) -> None:
    if not all(isinstance(each, str) for each in merged_into(entity)):
        raise TypeError("what was merged into it is named otherwise than by ids")


def _refuse_long(what: object, *names: str) -> None:
    for name in names:
        short_text(name, getattr(what, name))


def _refuse_odd_times(what: object, *names: str) -> None:
    for name in names:
        value = getattr(what, name)
        if value is not None:
            seconds(name, value)


def _readable(name: str, read: Callable[[Any], Any], what: object) -> Any:
    """Return what is read from a JSON text that follows rules of ours.

    Raises:
        UsageError: it does not follow them.
    """
    try:
        return read(what)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise UsageError(f"{name} cannot be read: {error!s:.80}", remedy="export again") from error
