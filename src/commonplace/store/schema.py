"""The only list of what is stored: tables, columns and their roles.

The tables of a new database are made from it, rows and records are turned into each other by it, and export, import,
erasure, the search for secrets and the checks of integrity are loops over it. To store one thing more, add a column
here and a field of that name to the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from commonplace.dataclasses import dataclass, fields
from commonplace.types import Chunk, FileStamp, JournalBlock, JournalPage, Link, MemoryRecord, Note, Owner
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord
from commonplace.types.ledger import Issue, IssueEvent, Reversal

VERSION: Final = 13
"""The version of this schema. Versions up to 12 were never released, and no program reads them any more."""

Role = Literal[
    "key", "id", "ids", "label", "labels", "text", "texts", "json", "word", "digest", "time", "times", "number", "real",
    "flag", "bytes",
]  # fmt: skip
"""What a column holds.

* `key`: a number of ours that joins rows; see `numbers_after`.
* `id`, `ids`: a name that cannot be changed without making it another thing: ids, paths, sessions, names of agents.
* `label`, `labels`: a short text by which things are chosen: tags, sources, groups.
* `text`, `texts`: words of a user. `json`: a JSON text with words of a user. `word`: one of a list of ours.
* `digest`: a hexadecimal sum. `bytes`: a vector or token ids.
* `time`, `times`: seconds since the epoch. `number`, `real`, `flag`: an integer, a float, a truth.

`ids`, `labels`, `texts` and `times` are JSON lists, "" for an empty one.
"""

_NAMES: Final = frozenset({"id", "ids"})
_CLEANED: Final = frozenset({"label", "labels", "text", "texts", "json"})
_TEXTS: Final = _NAMES | _CLEANED | {"word", "digest"}
_LISTS: Final = frozenset({"ids", "labels", "texts", "times"})


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column.

    Attributes:
        is_optional: NULL says that there is none.
        may_be_empty: "" says that it names no row.
        refers: the table whose row it names; `KINDS` where the column `kind` says which.
        is_enforced: the database itself refuses a row that names none.
        is_derived: made anew from other columns, so that it is in no export.
        is_placed: empty where the columns `place` and `length` say where in the memory's content it stands.
    """

    name: str
    role: Role
    is_optional: bool = False
    refers: str = ""
    is_enforced: bool = False
    is_derived: bool = False
    may_be_empty: bool = False
    is_placed: bool = False

    @property
    def is_erased(self) -> bool:
        """True where what it held is looked for after it was forgotten."""
        return self.role in _TEXTS or self.role == "bytes"

    @property
    def is_cleaned(self) -> bool:
        """True where a secret in it is replaced."""
        return self.role in _CLEANED

    @property
    def is_name(self) -> bool:
        """True where a secret in it can only be reported; neither NUL nor a lone surrogate may be in it."""
        return self.role in _NAMES

    @property
    def is_text(self) -> bool:
        """True where it holds a text, be it that of a list or of JSON."""
        return self.role in _TEXTS or self.is_list

    @property
    def is_list(self) -> bool:
        """True where it holds a JSON list."""
        return self.role in _LISTS


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table.

    Attributes:
        about: what a reader of the database must know; the columns are listed beside it.
        key: the columns that tell its rows apart, the namespace first where it has one.
        unique: other columns that do, where there are any: a record that is put takes the place of one that has them.
        record: the dataclass whose fields it holds, in columns of the same names.
        is_exported: the columns that hold fields are in an export, but for those that are derived or in `told`.
        is_sequenced: a change number is taken where a record of it is written or deleted by itself.
        told: fields that the line of an export tells in which the row stands, as the entity of a name.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    about: str
    record: type | None = None
    is_exported: bool = False
    is_sequenced: bool = False
    told: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def has_namespace(self) -> bool:
        """False where it is of the whole store."""
        return any(column.name == "namespace" for column in self.columns)

    @property
    def is_numbered(self) -> bool:
        """True where one number tells its rows apart."""
        return self[self.key[-1]].role == "key" and {*self.key[:-1]} <= {"namespace"}

    @property
    def record_columns(self) -> tuple[Column, ...]:
        """The columns that hold the fields of the record, in the order of the fields."""
        names = [field.name for field in fields(self.record)] if self.record else []
        known = {column.name: column for column in self.columns}
        return tuple(known[name] for name in names if name in known)

    @property
    def exported(self) -> tuple[Column, ...]:
        """The columns that are in an export."""
        if not self.is_exported:
            return ()
        return tuple(each for each in self.record_columns if not each.is_derived and each.name not in self.told)


KINDS: Final = "kind"
TABLE_OF_KIND: Final[Mapping[str, str]] = {"entity": "entities", "relation": "relations"}
"""The table that a column with `refers=KINDS` names, by what the column `kind` holds."""


def _columns(role: Role, *names: str, is_optional: bool = False, refers: str = "") -> Iterator[Column]:
    return (Column(name, role, is_optional=is_optional, refers=refers) for name in names)


COUNTERS: Final = ("next_owner", "next_passage", "next_row")
"""What a change counts in its namespace: owners, passages, and rows of the graph."""
_SHIFT: Final = 32


def numbers_after(namespace: int) -> int:
    """Return what all numbers of rows of a namespace are greater than, up to that of the next namespace.

    They are counted in each namespace by itself, and their upper half tells which it is: where all rows are in one
    place, what finds one by its number needs no other key.
    """
    return namespace - 1 << _SHIFT


def namespace_of_row(number: int) -> int:
    """Return the number of the namespace that a row is of."""
    return (number >> _SHIFT) + 1


_NAMESPACE: Final = Column("namespace", "key", refers="namespaces")
_ENFORCED: Final = Column("namespace", "key", refers="namespaces", is_enforced=True)
_NUMBER: Final = Column("number", "key")
_OWNER: Final = Column("owner", "key", refers="owners", is_enforced=True)
_ID: Final = Column("id", "id")
_KIND: Final = Column("kind", "word")

TABLES: Final = (
    Table(
        "meta",
        (Column("key", "word"), Column("value", "label")),
        ("key",),
        "`store_id`, which backups keep; `embedder`, `embedder_version`, `dimensions` of memories;"
        " `embedders_of_kinds`, JSON `[kind, [name, version, dimensions]]` of other kinds; the same with `next_` during"
        " a change of embedder. In PostgreSQL `recall`, the version of what its searches read.",
    ),
    Table(
        "schema_versions",
        (Column("version", "key"), Column("name", "word")),
        ("version",),
        "one row for each migration, written in its transaction; the first is of the version that made the store.",
    ),
    Table(
        "namespaces",
        (_NUMBER, Column("name", "id")),
        ("number",),
        "names that begin with U+001F are reserved: U+001F, `entity` or `relation`, U+001F and a namespace hold that"
        " namespace's graph texts. A number is never given to another one.",
    ),
    Table(
        "changes",
        (_NAMESPACE, Column("number", "number"), *_columns("key", *COUNTERS), Column("token", "digest")),
        ("namespace", "number"),
        "the change sequence of each namespace, from 1 without a gap, with the numbers that the next owner, passage and"
        " row of the graph get after it: they ascend and are never reused. The passages of change *c* have numbers from"
        " `next_passage` of *c* − 1 up to, excluding, that of *c*. `token` is sixteen random digits, by which a"
        " restored store differs.",
    ),
    Table(
        "counts",
        (_ENFORCED, _KIND, *(Column(name, "number") for name in ("owners", "passages", "text_bytes"))),
        ("namespace", "kind"),
        "maintained by every change.",
    ),
    Table(
        "owners",
        (
            _NUMBER,
            _ENFORCED,
            _KIND,
            Column("change", "key"),
            _ID,
            *_columns("label", "type", "phase"),
            *_columns("id", "path", "root", "session"),
            Column("position", "number"),
            Column("at", "time", is_optional=True),
            Column("title", "text"),
            Column("tags", "labels"),
            Column("references", "texts"),
            Column("summary", "text"),
            Column("created_at", "time"),
            Column("expired_at", "time", is_optional=True),
        ),
        ("namespace", "number"),
        "what is split into passages. `kind` is `artifact`, `memory`, `knowledge`, or in reserved namespaces `entity`,"
        " `relation` (`title` is then an entity's name, the only tag its group, `at` a relation's `valid_from`). Live"
        " owners are unique by (namespace, kind, id) and by (namespace, kind, path). `change` is the last that wrote"
        " it. A replaced artifact keeps its number; each version of a memory has its own. A row with `expired_at` is"
        " **past**: readable by number and as of its time, but in no list, count or index.",
        record=Owner,
        is_exported=True,
    ),
    Table(
        "file_stamps",
        (
            _OWNER,
            _NAMESPACE,
            Column("sha256", "digest"),
            *_columns("number", "size", "mtime_ns"),
            Column("recipe", "text"),
        ),
        ("namespace", "owner"),
        "whether a file changed; `recipe` names how it was cut and embedded, and ends in `/asked` where only globs let"
        " it in. Takes no change number.",
        record=FileStamp,
        is_exported=True,
    ),
    Table(
        "owner_tags",
        (_NAMESPACE, Column("tag", "label"), Column("owner", "key", refers="owners")),
        ("namespace", "tag", "owner"),
        "for filters.",
    ),
    Table(
        "passages",
        (
            _NUMBER,
            _NAMESPACE,
            _OWNER,
            Column("ordinal", "number"),
            _ID,
            *_columns("number", "start_line", "end_line"),
            Column("heading", "text"),
            Column("text", "text", is_placed=True),
            *_columns("number", "place", "length"),
        ),
        ("namespace", "number"),
        "`ordinal` from 0; lines from 1, inclusive. Replacing an owner renumbers its passages. Where `length` is not 0,"
        " `text` is empty: it is so many characters of the memory's `content` from `place`, counted from 1.",
        record=Chunk,
        is_exported=True,
    ),
    Table(
        "passage_vectors",
        (
            Column("number", "key", refers="passages", is_enforced=True),
            _NAMESPACE,
            Column("owner", "key", refers="owners"),
            *_columns("bytes", "token_ids", "vector"),
            Column("is_past", "flag"),
        ),
        ("namespace", "number"),
        "`token_ids` is uint16 little-endian; `vector` int8, empty until made. When a live passage gets its vector,"
        " all passages of the owner get new numbers in one change.",
    ),
    Table(
        "next_vectors",
        (Column("number", "key", refers="passages", is_enforced=True), _NAMESPACE, Column("vector", "bytes")),
        ("namespace", "number"),
        "vectors of the next embedder. When none is missing, one change writes the new stamp and `switched_from`,"
        " `switched_to` (and `…_knowledge`) to `meta`; from then on these vectors, and the new stamp in"
        " `file_stamps.recipe` and `knowledge_items.embedder`, count. Short transactions then move them and delete"
        " these rows.",
    ),
    Table(
        "deletions",
        (_NAMESPACE, Column("change", "key"), _NUMBER),
        ("namespace", "change", "number"),
        "passages that a change removed, replaced or made past.",
    ),
    Table(
        "memories",
        (
            _OWNER,
            _NAMESPACE,
            _ID,
            Column("is_latest", "flag"),
            Column("digest", "digest"),
            Column("at", "time", is_derived=True),
            Column("content", "text"),
            *_columns("word", "tier", "status"),
            Column("category", "label"),
            Column("entities", "texts"),
            Column("source", "label"),
            Column("origin", "word"),
            Column("trust", "real"),
            Column("metadata", "json"),
            Column("version", "number"),
            *_columns("time", "born_at", "last_used"),
            Column("use_count", "number"),
            Column("strength", "real"),
            Column("uses", "times"),
            Column("review_count", "number"),
            Column("derived_from", "ids"),
            Column("is_forced", "flag"),
            Column("promoted_at", "time", is_optional=True),
            Column("vault_path", "id"),
        ),
        ("namespace", "owner"),
        "one row for each version, beside `owners`. One version of an id has `is_latest` 1; a memory is archived if"
        " that one is past. `digest` is the SHA-256 of the normalised content, empty for turns; `metadata` a JSON"
        " object; `uses` a JSON array or empty.",
        record=MemoryRecord,
        is_exported=True,
    ),
    Table(
        "memory_bands",
        (_NAMESPACE, Column("band", "number"), Column("owner", "key", refers="owners")),
        ("namespace", "band", "owner"),
        "63-bit sums shared by nearly equal live texts.",
    ),
    Table(
        "memory_dates",
        (_NAMESPACE, Column("owner", "key", refers="memories"), Column("since", "time"), Column("until", "time")),
        ("namespace", "since", "until", "owner"),
        "periods that a text mentions, half-open.",
    ),
    Table(
        "links",
        (
            _NAMESPACE,
            *_columns("id", "source", "target"),
            Column("type", "label"),
            Column("strength", "real"),
            Column("created_at", "time"),
        ),
        ("namespace", "source", "target", "type"),
        "by memory ids.",
        record=Link,
        is_exported=True,
    ),
    Table("mirror_due", (_NAMESPACE, _ID), ("namespace", "id"), "memories whose Markdown is due."),
    Table(
        "mirror_blocks",
        (_NAMESPACE, _ID, Column("page", "id"), Column("digest", "digest")),
        ("namespace", "id"),
        "what the store and a page of Markdown last agreed on.",
        record=JournalBlock,
    ),
    Table(
        "mirror_pages",
        (
            _NAMESPACE,
            Column("page", "id"),
            *_columns("number", "size", "mtime_ns"),
            Column("sha256", "digest"),
        ),
        ("namespace", "page"),
        "the pages then.",
        record=JournalPage,
    ),
    Table(
        "notes",
        (_NAMESPACE, Column("kind", "word"), _ID, Column("at", "time"), Column("body", "json")),
        ("namespace", "kind", "id"),
        "records of the store about itself, JSON objects: receipts, backups, replaced stores, what the last indexing"
        " run left out, and of the kind `injected` what [hooks](../coding-agent.md#hooks) injected within a day. The"
        ' namespace "" is the whole store.',
        record=Note,
    ),
    Table(
        "episodes",
        (
            _NUMBER,
            _ENFORCED,
            _ID,
            Column("content", "text"),
            *_columns("time", "reference_time", "created_at"),
            Column("name", "text"),
            Column("source", "word"),
            Column("source_description", "text"),
            Column("origin", "word"),
            Column("trust", "real"),
            Column("group", "label"),
            Column("memory", "id"),
            Column("version", "number"),
        ),
        ("namespace", "number"),
        "`content` is empty where `memory` and `version` hold the text.",
        record=Episode,
        is_exported=True,
        is_sequenced=True,
        unique=("namespace", "id"),
    ),
    Table(
        "entities",
        (
            _NUMBER,
            _ENFORCED,
            _ID,
            Column("name", "text"),
            Column("type", "label"),
            Column("created_at", "time"),
            Column("summary", "text"),
            Column("attributes", "json"),
            Column("trust", "real"),
            Column("group", "label"),
            *_columns("time", "valid_from", "valid_to", "expired_at", is_optional=True),
            Column("merged_into", "id", refers="entities", may_be_empty=True),
        ),
        ("namespace", "number"),
        "`attributes` is a JSON object. A merged entity has `expired_at` and `merged_into`.",
        record=Entity,
        is_exported=True,
        is_sequenced=True,
        unique=("namespace", "id"),
    ),
    Table(
        "aliases",
        (
            _NAMESPACE,
            Column("normal", "label"),
            Column("entity", "id", refers="entities"),
            Column("name", "text"),
            Column("created_at", "time"),
            Column("episode", "id"),
        ),
        ("namespace", "normal", "entity"),
        "names by normal form, with the episode that used each first.",
        record=Alias,
        is_exported=True,
        is_sequenced=True,
        told=("entity",),
    ),
    Table(
        "relations",
        (
            _NUMBER,
            _ENFORCED,
            _ID,
            *_columns("id", "source", "target", refers="entities"),
            Column("type", "label"),
            Column("fact", "text"),
            Column("created_at", "time"),
            *_columns("time", "valid_from", "valid_to", "stated_to", "expired_at", is_optional=True),
            Column("is_retracted", "flag"),
            Column("dispute", "id"),
            Column("disputed_at", "time", is_optional=True),
            *_columns("real", "confidence", "trust"),
            Column("group", "label"),
            Column("attributes", "json"),
            Column("stage", "number", is_derived=True),
        ),
        ("namespace", "number"),
        "facts. `stage` is 2 if expired or retracted, else 1 if `valid_to` is set, else 0.",
        record=Relation,
        is_exported=True,
        is_sequenced=True,
        unique=("namespace", "id"),
    ),
    Table(
        "mentions",
        (
            _NAMESPACE,
            _KIND,
            Column("subject", "id", refers=KINDS),
            Column("episode", "id", refers="episodes"),
            *_columns("number", "start", "end"),
            Column("name", "text"),
        ),
        ("namespace", "kind", "subject", "episode", "start", "end", "name"),
        "where an episode names an entity or states a fact, in characters, half-open.",
        record=Mention,
        is_exported=True,
        is_sequenced=True,
        told=("kind", "subject"),
    ),
    Table(
        "happenings",
        (
            _NUMBER,
            _NAMESPACE,
            _KIND,
            Column("subject", "id", refers=KINDS),
            Column("at", "time"),
            Column("what", "word"),
            Column("reason", "text"),
            Column("episode", "id"),
            Column("detail", "json"),
        ),
        ("namespace", "number"),
        "history of entities and relations; `detail` is JSON that can undo it. Ids in graph tables have no foreign"
        " keys; `doctor` checks them.",
        record=Happening,
        is_exported=True,
        is_sequenced=True,
        told=("kind", "subject"),
    ),
    Table(
        "knowledge_items",
        (
            _OWNER,
            _NAMESPACE,
            Column("agent", "id"),
            Column("content", "text", is_derived=True),
            Column("metadata", "json"),
            Column("digest", "digest", is_derived=True),
            Column("embedder", "label", is_derived=True),
            Column("vector", "bytes", is_derived=True),
            Column("updated_at", "time"),
        ),
        ("namespace", "owner"),
        "a map of an agent's knowledge. `content` is its text, `metadata` the map, `digest` the SHA-256 of agent and"
        " map; `embedder` is empty where words alone find it, `vector` int8 of the service's own embedder, else empty."
        " A `knowledge` owner without a row is a document.",
        record=KnowledgeRecord,
        is_exported=True,
    ),
    Table(
        "agent_contexts",
        (
            _NAMESPACE,
            Column("name", "id"),
            Column("last_cursor", "number"),
            Column("metadata", "json"),
            Column("updated_at", "time"),
        ),
        ("namespace", "name"),
        "takes no change number.",
        record=ContextRecord,
        is_exported=True,
    ),
    Table(
        "issues",
        (
            _NAMESPACE,
            _ID,
            Column("title", "text"),
            Column("agent", "id"),
            Column("memory_ids", "ids"),
            *_columns("text", "description", "notes"),
            Column("status", "label"),
            Column("priority", "number"),
            Column("issue_type", "label"),
            Column("labels", "labels"),
            *_columns("json", "dependencies", "comments", "rest"),
            *_columns("time", "created_at", "updated_at"),
            Column("closed_at", "time", is_optional=True),
            Column("close_reason", "text"),
            Column("retries", "number"),
            Column("retry_at", "time", is_optional=True),
            Column("claimed_by", "id"),
            *_columns("time", "claimed_at", "escalated_at", is_optional=True),
        ),
        ("namespace", "id"),
        "the ledger. `rest` has what an imported issue had beside these. The ledger takes no change numbers.",
        record=Issue,
        is_exported=True,
    ),
    Table(
        "issue_memories",
        (_NAMESPACE, Column("memory", "id"), Column("issue", "id", refers="issues")),
        ("namespace", "memory", "issue"),
        "which issues name a memory.",
    ),
    Table(
        "issue_events",
        (
            _NUMBER,
            _NAMESPACE,
            Column("issue", "id"),
            Column("at", "time"),
            Column("actor", "id"),
            Column("act", "word"),
            Column("why", "text"),
        ),
        ("namespace", "number"),
        "what was done on an issue.",
        record=IssueEvent,
        is_exported=True,
        told=("issue",),
    ),
    Table(
        "reversals",
        (
            _NAMESPACE,
            Column("number", "number"),
            *_columns("id", "issue", "run"),
            Column("at", "time"),
            Column("memory_ids", "ids"),
            Column("steps", "json"),
            Column("undone_at", "time", is_optional=True),
        ),
        ("namespace", "number"),
        "what undoes a change, without words of memories.",
        record=Reversal,
        is_exported=True,
        told=("issue",),
    ),
    Table(
        "reversal_memories",
        (_NAMESPACE, Column("memory", "id"), Column("issue", "id", refers="reversals")),
        ("namespace", "memory", "issue"),
        "which reversals name a memory.",
    ),
    Table(
        "operations",
        (Column("at", "time"), Column("count", "number")),
        ("at",),
        "for the rate limit, of the whole store.",
    ),
)

SCHEMA: Final[Mapping[str, Table]] = {table.name: table for table in TABLES}
"""The tables by name, in the order in which they are made."""


def table_of(record: type) -> Table:
    """Return the table that holds records of a class."""
    return next(table for table in TABLES if table.record is record)
