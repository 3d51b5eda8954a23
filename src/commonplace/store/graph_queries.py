"""The SQL about the graph of the SQLite store. The orders of columns are those that `graph_rows` unpacks.

`:space` is the number of the namespace. Types and groups come as JSON lists of hexadecimal digits, like the values of
`queries.MATCHING`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.store.graph_rules import MEANT, PAST, STAGES, STANDING, is_of_open, reaches_past

if TYPE_CHECKING:
    from commonplace.types.graph import GraphFilter

_EPISODE = """
    e.id, e.content, e.reference_time, e.created_at, e.name, e.source, e.source_description, e.origin, e.trust,
    e."group", e.memory, e.version
"""

_ENTITY = """
    x.id, x.name, x.type, x.created_at, x.summary, x.attributes, x.trust, x."group", x.valid_from, x.valid_to,
    x.expired_at, x.merged_into
"""

_RELATION = """
    r.id, r.source, r.target, r.type, r.fact, r.created_at, r.valid_from, r.valid_to, r.stated_to, r.expired_at,
    r.is_retracted, r.dispute, r.disputed_at, r.confidence, r.trust, r."group", r.attributes
"""

IDS_AT_ONCE = 32
_IDS = ", ".join(f":id{place}" for place in range(IDS_AT_ONCE))
"""So many ids a statement takes, some of them more than once where there are fewer."""

EPISODE = f"SELECT {_EPISODE} FROM episodes e WHERE e.namespace = :space AND e.id IN ({_IDS})"

# Without a hint SQLite reads the times of all episodes, which stand in an index.
REFERENCE_TIMES = f"""
    SELECT id, reference_time FROM episodes INDEXED BY episodes_by_id WHERE namespace = :space AND id IN ({_IDS})
"""

EPISODES_OF_MEMORY = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.memory = :memory AND e.memory != ''
    ORDER BY e.version, e.id
"""

EPISODES = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.created_at <= :known_at
        AND (:groups IS NULL OR hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
    ORDER BY e.reference_time DESC, e.id
    LIMIT :limit OFFSET :offset
"""

ENTITY = f"SELECT {_ENTITY} FROM entities x WHERE x.namespace = :space AND x.id IN ({_IDS})"

NAMED = f"""
    SELECT {_ENTITY}
    FROM aliases a CROSS JOIN entities x ON x.namespace = a.namespace AND x.id = a.entity
    WHERE a.namespace = :space AND a.normal = :normal AND x.expired_at IS NULL
    ORDER BY a.entity
    LIMIT :limit
"""

ENTITIES = f"""
    SELECT {_ENTITY} FROM entities x
    WHERE x.namespace = :space
        AND (:is_all OR (x.created_at <= :known_at AND (x.expired_at IS NULL OR x.expired_at > :known_at)))
        AND (:types IS NULL OR hex(CAST(x.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
        AND (
            :groups IS NULL
            OR hex(CAST(x."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            OR EXISTS (
                SELECT 1
                FROM mentions m CROSS JOIN episodes e ON e.namespace = m.namespace AND e.id = m.episode
                WHERE m.namespace = x.namespace AND m.kind = 'entity' AND m.subject = x.id
                    AND hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            )
        )
    ORDER BY x.name, x.id
    LIMIT :limit OFFSET :offset
"""

# Without a hint SQLite takes the primary key, of which one column fits, and reads every name of the namespace.
ALIASES = f"""
    SELECT entity, name, normal, created_at, episode FROM aliases INDEXED BY aliases_by_entity
    WHERE namespace = :space AND entity IN ({_IDS})
    ORDER BY created_at, normal
"""

RELATION = f"SELECT {_RELATION} FROM relations r WHERE r.namespace = :space AND r.id IN ({_IDS})"

_CHOSEN = f"""
    {MEANT}
    AND (:types IS NULL OR hex(CAST(r.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
    AND (:groups IS NULL OR hex(CAST(r."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
"""

_OF_FACT = f"""
    SELECT {_RELATION} FROM relations r INDEXED BY relations_by_fact
    WHERE r.namespace = :space AND r.source = :source AND r.type = :type
"""
_OLDEST = "ORDER BY r.created_at, r.id"

FACTS = f"{_OF_FACT} {_OLDEST}"
FACTS_TO = f"{_OF_FACT} AND r.target = :target {_OLDEST}"

_EDGE = "r.id, r.source, r.target, r.created_at, r.confidence, r.dispute != ''"


@dataclass(frozen=True, slots=True)
class ByStage:
    """A question about relations, asked of each stage that a filter may mean; each answer is in order.

    Attributes:
        stages: of each stage, which is its place.
        ending: what has an end, or is past, and holds after the time `:after`.
    """

    stages: tuple[str, ...]
    ending: str

    def parts(self, wanted: GraphFilter) -> tuple[str, ...]:
        """Return the statements whose answers together are that of the filter."""
        if is_of_open(wanted):
            return self.stages[STANDING], self.ending
        return self.stages if reaches_past(wanted) else self.stages[:PAST]


def _by_stage(columns: str, index: str, by: str) -> ByStage:
    """Return a question for the newest relations of those that a condition chooses, which an index serves."""

    def asked(suffix: str, condition: str) -> str:
        return f"""
            SELECT {columns} FROM relations r INDEXED BY relations_{suffix}
            WHERE r.namespace = :space AND {by} AND {condition} AND {_CHOSEN}
            ORDER BY r.created_at DESC, r.id
            LIMIT :limit
        """

    ending = "ending" if index == "by_time" else f"ending_{index}"
    return ByStage(
        tuple(asked(index, f"r.stage = {stage}") for stage in range(STAGES)),
        asked(ending, "r.stage > 0 AND ifnull(r.valid_to, '') > :after"),
    )


_FROM = "by_source", "r.source = :entity"
_TO = "by_target", "r.target = :entity AND r.source != r.target"

RELATIONS_FROM = _by_stage(_RELATION, *_FROM)
RELATIONS_TO = _by_stage(_RELATION, *_TO)
RELATIONS = _by_stage(_RELATION, "by_time", "1")
_EDGES_FROM = _by_stage(_EDGE, *_FROM)
_EDGES_TO = _by_stage(_EDGE, *_TO)


def _both(first: str, second: str) -> str:
    return f"SELECT * FROM ({first}) UNION ALL SELECT * FROM ({second})"


EDGES = ByStage(
    tuple(map(_both, _EDGES_FROM.stages, _EDGES_TO.stages)),
    _both(_EDGES_FROM.ending, _EDGES_TO.ending),
)
"""The newest edges from an entity, then those to it; to ask for both at once takes half the time."""

PAIRS = f"""
    SELECT r.number, r.id, r.source, r.target FROM relations r NOT INDEXED
    WHERE r.number > :after AND r.namespace = :space AND r.stage < :stages AND {_CHOSEN}
    ORDER BY r.number
    LIMIT :limit
"""

DISPUTED = f"""
    SELECT {_RELATION} FROM relations r
    WHERE r.namespace = :space AND r.dispute != ''
    ORDER BY r.dispute, r.created_at, r.id
"""

MENTIONS = f"""
    SELECT subject, episode, kind, start, "end", name FROM mentions
    WHERE namespace = :space AND kind = :kind AND subject IN ({_IDS})
    ORDER BY subject, episode, start, "end", name
"""

MENTIONED = f"""
    SELECT episode, kind, subject, start, "end", name FROM mentions INDEXED BY mentions_by_episode
    WHERE namespace = :space AND episode IN ({_IDS})
    ORDER BY start, "end", kind, subject, name
"""

HAPPENINGS = """
    SELECT kind, subject, at, what, reason, episode, detail FROM happenings
    WHERE namespace = :space AND kind = :kind AND subject = :id
    ORDER BY number
"""

COUNTS = """
    SELECT
        (SELECT count(*) FROM episodes WHERE namespace = :space),
        (SELECT count(*) FROM entities INDEXED BY entities_by_id WHERE namespace = :space)
            - (
                SELECT count(*) FROM entities INDEXED BY entities_past
                WHERE namespace = :space AND expired_at IS NOT NULL
            ),
        (SELECT count(*) FROM relations WHERE namespace = :space),
        (SELECT count(*) FROM relations WHERE namespace = :space AND dispute != '')
"""

PUT_EPISODE = """
    INSERT INTO episodes (
        namespace, id, content, reference_time, created_at, name, source, source_description, origin, trust, "group",
        memory, version
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        content = excluded.content, reference_time = excluded.reference_time, created_at = excluded.created_at,
        name = excluded.name, source = excluded.source, source_description = excluded.source_description,
        origin = excluded.origin, trust = excluded.trust, "group" = excluded."group", memory = excluded.memory,
        version = excluded.version
"""

PUT_ENTITY = """
    INSERT INTO entities (
        namespace, id, name, type, created_at, summary, attributes, trust, "group", valid_from, valid_to, expired_at,
        merged_into
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        name = excluded.name, type = excluded.type, created_at = excluded.created_at, summary = excluded.summary,
        attributes = excluded.attributes, trust = excluded.trust, "group" = excluded."group",
        valid_from = excluded.valid_from, valid_to = excluded.valid_to, expired_at = excluded.expired_at,
        merged_into = excluded.merged_into
"""

PUT_RELATION = """
    INSERT INTO relations (
        namespace, id, source, target, type, fact, created_at, valid_from, valid_to, stated_to, expired_at,
        is_retracted, dispute, disputed_at, confidence, trust, "group", attributes, stage
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        source = excluded.source, target = excluded.target, type = excluded.type, fact = excluded.fact,
        created_at = excluded.created_at, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
        stated_to = excluded.stated_to, expired_at = excluded.expired_at, is_retracted = excluded.is_retracted,
        dispute = excluded.dispute, disputed_at = excluded.disputed_at, confidence = excluded.confidence,
        trust = excluded.trust, "group" = excluded."group", attributes = excluded.attributes,
        stage = excluded.stage
"""

PUT_ALIAS = (
    "INSERT OR REPLACE INTO aliases (namespace, entity, name, normal, created_at, episode) VALUES (?, ?, ?, ?, ?, ?)"
)

PUT_MENTION = """
    INSERT OR IGNORE INTO mentions (namespace, episode, kind, subject, start, "end", name)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""

DROP_MENTION = """
    DELETE FROM mentions
    WHERE namespace = ? AND episode = ? AND kind = ? AND subject = ? AND start = ? AND "end" = ? AND name = ?
"""

PUT_HAPPENING = """
    INSERT INTO happenings (namespace, kind, subject, at, what, reason, episode, detail)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
