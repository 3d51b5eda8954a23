"""The public value of a memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from commonplace.dataclasses import dataclass
from commonplace.dates.time import moment_of
from commonplace.formats.json_values import View
from commonplace.redaction import cleaned_json, redact
from commonplace.retention import RetentionPolicy
from commonplace.types import Origin, Status, StoredMemory, Tier

_MIN_LENGTH: Final = 8
"""Length of the shortest text in which a secret is recognised: `a://:b@c`."""
Outcome = Literal["added", "touched", "reviewed", "updated", "unchanged", "archived", "restored", "read"]


@dataclass(frozen=True, slots=True)
class Memory(View):
    """One version of a memory. Times are aware, in UTC.

    Attributes:
        id: as given, or a generated UUID.
        content: the text, with placeholders for secrets.
        at: when it happened or was said.
        created_at: when the first version was stored; `updated_at`: when this version was.
        expired_at: when this version was replaced or archived; None while it is live.
        retention: 0–1, how present the memory is now; it fades with time and rises with use.
        retention_raw: `retention` before it is clamped to 1.
        version: from 1 on.
        review_count: how often a person reviewed it and found it right.
        vault_path: path of its note in the vault, relative to the store's directory; "" unless it was promoted.
        outcome: what the call that returned it did.
        notices: one sentence each, for people: what was redacted, merged or recognised when it was stored.
    """

    id: str
    namespace: str
    content: str
    tier: Tier
    status: Status
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    category: str
    source: str
    origin: Origin
    trust: float
    metadata: Mapping[str, Any]
    session: str
    position: int
    at: datetime
    created_at: datetime
    updated_at: datetime
    expired_at: datetime | None
    last_used: datetime
    use_count: int
    strength: float
    retention: float
    retention_raw: float
    version: int
    derived_from: tuple[str, ...]
    is_forced: bool
    review_count: int = 0
    vault_path: str = ""
    outcome: Outcome = "read"
    notices: tuple[str, ...] = ()


_RECORD_FIELDS: Final = """
tier status category origin trust use_count strength version derived_from is_forced review_count
""".split()


def _clean(text: str) -> str:
    return text if len(text) < _MIN_LENGTH else redact(text).text


def memory_view(
    stored: StoredMemory,
    namespace: str,
    now: float,
    policy: RetentionPolicy,
    *,
    outcome: Outcome = "read",
    notices: tuple[str, ...] = (),
) -> Memory:
    """Return a stored version as callers see it, with placeholders for secrets that an older release may have kept."""
    owner, record = stored.owner, stored.record
    raw = policy.raw(record, now)
    return Memory(
        id=owner.id,
        namespace=namespace,
        content=_clean(record.content),
        tags=tuple(map(_clean, owner.tags)),
        entities=tuple(map(_clean, record.entities)),
        source=_clean(record.source),
        metadata=cleaned_json(json.loads(record.metadata), _clean),
        session=owner.session,
        position=owner.position,
        at=moment_of(stored.at),
        created_at=moment_of(record.born_at),
        updated_at=moment_of(stored.created_at),
        expired_at=None if stored.expired_at is None else moment_of(stored.expired_at),
        last_used=moment_of(record.last_used),
        retention=min(1.0, raw),
        retention_raw=raw,
        vault_path=_clean(record.vault_path),
        outcome=outcome,
        notices=notices,
        **{name: getattr(record, name) for name in _RECORD_FIELDS},
    )
