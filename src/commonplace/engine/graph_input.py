"""What callers give to a graph, checked, with secrets replaced: an episode, a fact.

A skin asks it before a store is made; the graph asks it in any case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import Moment, moment_in_words
from commonplace.errors import AdmissionError, UsageError
from commonplace.formats.fence import unfence
from commonplace.memory.validate import (
    TRUST,
    fraction,
    one_of,
    reject_invalid,
    reject_invalid_id,
    short_text,
)
from commonplace.redaction import cleaned_json, redact
from commonplace.text.characters import MENDED, storable
from commonplace.types import ORIGINS
from commonplace.types.graph import Episode

if TYPE_CHECKING:
    from commonplace.graph.episodes import FactInput
    from commonplace.settings.schema import GraphSettings

SOURCES: Final = ("text", "message", "json")


@dataclass(frozen=True, slots=True)
class EpisodeInput:
    """An episode as it is given, checked.

    Attributes:
        is_timed: whether the caller said when it was; otherwise that is now.
    """

    episode: Episode
    speaker: str = ""
    is_timed: bool = True
    notices: tuple[str, ...] = ()


def checked_episode(content: object, now: float, max_bytes: int, given: Mapping[str, Any]) -> EpisodeInput:
    """Return what a caller gave as an episode.

    Args:
        now: from when times in words are told, seconds since the epoch.
        given: the other arguments of `Graph.add_episode`, those that are not there are as if they were not given.

    Raises:
        AdmissionError: the content is nothing but what was recalled.
        UsageError: a value is of the wrong kind, empty, too large or out of its range.
    """
    from commonplace.graph.runtime import made_id

    uuid, trust = given.get("uuid"), given.get("trust")
    kind = one_of("source", given.get("source", "text"), SOURCES)
    text, notices = _structured(content, max_bytes) if kind == "json" else _said(content, max_bytes)
    if uuid is not None:
        reject_invalid_id(uuid)
    by = one_of("origin", given.get("origin", "agent"), ORIGINS)
    told = _beginning("reference_time", given.get("reference_time"), now)
    episode = Episode(
        id=uuid or made_id(),
        content=text,
        reference_time=now if told is None else told,
        created_at=now,
        name=_redacted("name", given),
        source=kind,  # type: ignore[arg-type] # one of the choices
        source_description=_redacted("source_description", given),
        origin=by,  # type: ignore[arg-type] # likewise
        trust=TRUST[by] if trust is None else fraction("trust", trust),  # type: ignore[index] # one of the origins
        group=short_text("group_id", given.get("group_id", "")),
    )
    return EpisodeInput(episode, _redacted("speaker", given), told is not None, notices)


def checked_fact(
    source: str, relation_type: str, target: str, now: float, settings: GraphSettings, given: Mapping[str, Any]
) -> FactInput:
    """Return what a caller gave as a fact.

    Args:
        now: from when times in words are told, seconds since the epoch.
        given: the other arguments of `Graph.add_triplet`, those that are not there are as if they were not given.

    Raises:
        UsageError: source and target are one, it ends before it begins, or a value is out of its range.
    """
    from commonplace.graph.episodes import FactInput, itself
    from commonplace.graph.kinds import kinds_of
    from commonplace.graph.names import checked, normal

    kinds = kinds_of(settings)
    type_ = kinds.relation("relation_type", relation_type)
    ends = [redact(checked(name, value)).text for name, value in (("source", source), ("target", target))]
    if normal(ends[0]) == normal(ends[1]):
        raise itself(ends[0])
    types = [
        "" if given.get(name) is None else kinds.entity(name, given[name]) for name in ("source_type", "target_type")
    ]
    valid_from, valid_to = given.get("valid_from"), given.get("valid_to")
    begins, stops = _beginning("valid_from", valid_from, now), _beginning("valid_to", valid_to, now)
    if begins is not None and stops is not None and stops <= begins:
        raise UsageError(
            f"valid_to {valid_to!r} is not after valid_from {valid_from!r}",
            remedy="give the later",
            parameters=("valid_to", "valid_from"),
        )
    return FactInput(
        ends[0],
        type_,
        ends[1],
        source_type=types[0],
        target_type=types[1],
        fact="" if given.get("fact") is None else _redacted("fact", given).strip(),
        valid_from=begins,
        valid_to=stops,
        trust=TRUST["agent"],
        group=short_text("group_id", given.get("group_id", "")),
        reason=_redacted("reason", given),
    )


def _redacted(name: str, given: Mapping[str, Any]) -> str:
    return redact(short_text(name, given.get(name, ""))).text


def _beginning(name: str, given: Moment | None, now: float) -> float | None:
    return None if given is None else moment_in_words(name, given, now, is_start=True)


def _said(given: object, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Return a text without secrets and without what was recalled, and what is to be said of that."""
    reject_invalid(given, max_bytes=max_bytes)
    assert isinstance(given, str)
    text = storable(given)
    opened = unfence(text)
    notices: tuple[str, ...] = () if text == given else (MENDED,)
    if opened.recalled:
        if not opened.text.strip():
            raise AdmissionError("the content is nothing but what was recalled", remedy="say what is new")
        notices = (*notices, f"what was recalled from memory was skipped: {len(opened.recalled)}")
    redacted = redact(opened.text)
    return redacted.text, (*notices, *_secrets(redacted.kinds))


def _structured(given: object, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Return JSON without secrets, and what is to be said of that."""
    text = given if isinstance(given, str) else None
    try:
        value = json.loads(text) if text is not None else given
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the content is not JSON: {error}", remedy="give JSON, or keep it as text") from error
    reject_invalid(text, max_bytes=max_bytes)
    kinds: list[str] = []

    def clean(part: str) -> str:
        redacted = redact(part)
        kinds.extend(redacted.kinds)
        return redacted.text

    return json.dumps(cleaned_json(json.loads(text), clean), ensure_ascii=False), _secrets(kinds)


def _secrets(kinds: Sequence[str]) -> tuple[str, ...]:
    named = ", ".join(dict.fromkeys(kinds))
    return (f"what looks like a secret was replaced: {named}",) if kinds else ()
