"""The schema of the store: tables, columns and their roles, defined once.

It creates the tables of a new database and maps records to rows. Export, import, erasure, the search for secrets and
the integrity checks are loops over it. To store another value, add a column here and a field of that name to the
record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

from commonplace.dataclasses import dataclass, fields
from commonplace.types import Chunk, FileStamp, JournalBlock, JournalPage, Link, MemoryRecord, Note, Owner
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation, Subject
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord
from commonplace.types.ledger import Issue, IssueEvent, Reversal

VERSION: Final = 13
"""The version of this schema. Versions up to 12 were never released and are not supported."""

Role = Literal[
    "key", "id", "ids", "label", "labels", "text", "texts", "json", "word", "digest", "time", "times", "number", "real",
    "flag", "bytes",
]  # fmt: skip
"""What a column holds.

* `key`: an internal number that joins rows; see `numbers_after`.
* `id`, `ids`: a name that identifies something and cannot change: ids, paths, sessions, names of agents.
* `label`, `labels`: a short text to filter by: tags, sources, groups.
* `text`, `texts`: a user's text. `json`: JSON with a user's texts. `word`: a value from a fixed list.
* `digest`: a hexadecimal hash. `bytes`: a vector or token ids.
* `time`, `times`: seconds since the epoch. `number`, `real`, `flag`: an integer, a float, a boolean.

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
        is_optional: it may be NULL.
        may_be_empty: it may be "", which refers to no row.
        refers: the table that it refers to; `KINDS` if the column `kind` names the table.
        is_enforced: a foreign key of the database enforces the reference.
        is_derived: it is computed from other columns and not exported.
        is_placed: it is empty if the columns `place` and `length` give its position in the memory's content.
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
        """True if verification searches for its values after they were erased."""
        return self.role in _TEXTS or self.role == "bytes"

    @property
    def is_cleaned(self) -> bool:
        """True if secrets in it are replaced."""
        return self.role in _CLEANED

    @property
    def is_name(self) -> bool:
        """True if secrets in it are only reported; it may contain neither NUL nor a lone surrogate."""
        return self.role in _NAMES

    @property
    def is_text(self) -> bool:
        """True if it holds text, including that of JSON or a list."""
        return self.role in _TEXTS or self.is_list

    @property
    def is_list(self) -> bool:
        """True if it holds a JSON list."""
        return self.role in _LISTS

    @property
    def is_coded(self) -> bool:
        """True if the field and the column have different types: for a list or a flag."""
        return self.is_list or self.role == "flag"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table.

    Attributes:
        about: the description in the manual, which also lists the columns.
        key: the columns of the primary key, beginning with the namespace if there is one.
        unique: other columns that identify a row, if any: a new record replaces the one with the same values.
        record: the dataclass whose fields it holds, in columns of the same names.
        is_exported: exports contain the columns of fields, except those that are derived or in `told`.
        is_sequenced: writing or deleting one of its records by itself takes a change number.
        told: fields that an exported row omits because the enclosing line has them, such as the entity of a name.
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
        """False if its rows belong to the whole store."""
        return any(column.name == "namespace" for column in self.columns)

    @property
    def is_numbered(self) -> bool:
        """True if one number identifies a row."""
        return self[self.key[-1]].role == "key" and {*self.key[:-1]} <= {"namespace"}

    @property
    def record_columns(self) -> tuple[Column, ...]:
        """The columns that hold the fields of the record, in the order of the fields."""
        names = [field.name for field in fields(self.record)] if self.record else []
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in names if name in by_name)

    @property
    def exported(self) -> tuple[Column, ...]:
        """The columns that an export contains."""
        if not self.is_exported:
            return ()
        return tuple(column for column in self.record_columns if not column.is_derived and column.name not in self.told)


KINDS: Final = "kind"
TABLE_OF_KIND: Final[Mapping[str, str]] = {"entity": "entities", "relation": "relations"}
"""The table that a column with `refers=KINDS` refers to, by the value of the column `kind`."""


def _columns(*specs: str | Column) -> tuple[Column, ...]:
    """Parse the columns of a table.

    Args:
        specs: columns, or texts of roles, each with the names of its columns: `id source target | time at?`. A name may
            be followed by `?` if the column is optional, by `~` if it is derived, and by `->` and the table that it
            refers to, or by `=>` and the table if the database enforces the reference.
    """
    columns: list[Column] = []
    for spec in specs:
        if isinstance(spec, Column):
            columns.append(spec)
            continue
        for group in spec.split(" | "):
            role, *words = group.split()
            for word in words:
                reference = word.rstrip("?~")
                name, arrow, refers = reference.partition("=>") if "=>" in reference else reference.partition("->")
                is_optional, is_enforced, is_derived = "?" in word, arrow == "=>", "~" in word
                columns.append(Column(name, cast("Role", role), is_optional, refers, is_enforced, is_derived))
    return tuple(columns)


COUNTERS: Final = ("next_owner", "next_passage", "next_row")
"""The counters of a namespace that each change records: of owners, passages, and rows of the graph."""
_SHIFT: Final = 32


def numbers_after(namespace: int) -> int:
    """Return the exclusive lower bound of the row numbers of a namespace.

    Each namespace counts its rows separately, and the upper 32 bits of a row's number encode the namespace. Where all
    namespaces share a table, the number alone finds a row.
    """
    return namespace - 1 << _SHIFT


def namespace_of_row(number: int) -> int:
    """Return the number of the namespace that a row belongs to."""
    return (number >> _SHIFT) + 1


WHOLE_STORE: Final = ""
"""The namespace of notes about the store as a whole; it holds nothing else, and users cannot open it."""
_RESERVED: Final = "\x1f"


def texts_of(namespace: str, kind: Subject) -> str:
    """Return the namespace that holds the texts of a namespace's entities or relations; no user can name it.

    Entities and facts are found by these texts, which are owners with passages: searches in the namespace itself never
    return them, and the index covers them like all others.
    """
    return f"{_RESERVED}{kind}{_RESERVED}{namespace}"


def namespace_of(texts: str) -> str:
    """Return the namespace whose texts a reserved namespace holds; return any other name unchanged."""
    return texts.split(_RESERVED, 2)[2] if is_reserved(texts) else texts


def is_reserved(namespace: str) -> bool:
    """Return whether a namespace holds the texts of another one's graph."""
    return namespace.startswith(_RESERVED)


TABLES: Final = (
    Table(
        "meta",
        _columns("word key | label value"),
        ("key",),
        "`store_id`, which backups keep; `embedder`, `embedder_version`, `dimensions` of memories;"
        " `embedders_of_kinds`, JSON `[kind, [name, version, dimensions]]` of other kinds; the same with `next_`"
        " during a change of embedder. In PostgreSQL `recall`, the version of what its searches read.",
    ),
    Table(
        "schema_versions",
        _columns("key version | word name"),
        ("version",),
        "one row for each migration, written in its transaction; the first is of the version that made the store.",
    ),
    Table(
        "namespaces",
        _columns("key number | id name"),
        ("number",),
        "names that begin with U+001F are reserved: U+001F, `entity` or `relation`, U+001F and a namespace hold that"
        " namespace's graph texts. A number is never given to another one.",
    ),
    Table(
        "changes",
        _columns("key namespace->namespaces | number number | key next_owner next_passage next_row | digest token"),
        ("namespace", "number"),
        "the change sequence of each namespace, from 1 without a gap, with the numbers that the next owner, passage"
        " and row of the graph get after it: they ascend and are never reused. The passages of change *c* have"
        " numbers from `next_passage` of *c* − 1 up to, excluding, that of *c*. `token` is sixteen random digits, by"
        " which a restored store differs.",
    ),
    Table(
        "counts",
        _columns("key namespace=>namespaces | word kind | number owners passages text_bytes"),
        ("namespace", "kind"),
        "maintained by every change.",
    ),
    Table(
        "owners",
        _columns(
            "key number namespace=>namespaces | word kind | key change | id id | label type phase | "
            "id path root session | number position | time at? | text title | labels tags | texts references | "
            "text summary | time created_at expired_at?"
        ),
        ("namespace", "number"),
        "what is split into passages. `kind` is `artifact`, `memory`, `knowledge`, or in reserved namespaces"
        " `entity`, `relation` (`title` is then an entity's name, the only tag its group, `at` a relation's"
        " `valid_from`). Live owners are unique by (namespace, kind, id) and by (namespace, kind, path). `change` is"
        " the last that wrote it. A replaced artifact keeps its number; each version of a memory has its own. A row"
        " with `expired_at` is **past**: readable by number and as of its time, but in no list, count or index.",
        record=Owner,
        is_exported=True,
    ),
    Table(
        "file_stamps",
        _columns("key owner=>owners namespace->namespaces | digest sha256 | number size mtime_ns | text recipe"),
        ("namespace", "owner"),
        "whether a file changed; `recipe` names how it was cut and embedded, and ends in `/asked` where only globs"
        " let it in. Takes no change number.",
        record=FileStamp,
        is_exported=True,
    ),
    Table(
        "owner_tags",
        _columns("key namespace->namespaces | label tag | key owner->owners"),
        ("namespace", "tag", "owner"),
        "for filters.",
    ),
    Table(
        "passages",
        _columns(
            "key number namespace->namespaces owner=>owners | number ordinal | id id | "
            "number start_line end_line | text heading",
            Column("text", "text", is_placed=True),
            "number place length",
        ),
        ("namespace", "number"),
        "`ordinal` from 0; lines from 1, inclusive. Replacing an owner renumbers its passages. Where `length` is not"
        " 0, `text` is empty: it is so many characters of the memory's `content` from `place`, counted from 1.",
        record=Chunk,
        is_exported=True,
    ),
    Table(
        "passage_vectors",
        _columns("key number=>passages namespace->namespaces owner->owners | bytes token_ids vector | flag is_past"),
        ("namespace", "number"),
        "`token_ids` is uint16 little-endian; `vector` int8, empty until made. When a live passage gets its vector,"
        " all passages of the owner get new numbers in one change.",
    ),
    Table(
        "next_vectors",
        _columns("key number=>passages namespace->namespaces | bytes vector"),
        ("namespace", "number"),
        "vectors of the next embedder. When none is missing, one change moves them to `passage_vectors` and writes the"
        " new stamp, also in `file_stamps.recipe` and `knowledge_items.embedder`.",
    ),
    Table(
        "deletions",
        _columns("key namespace->namespaces change number"),
        ("namespace", "change", "number"),
        "passages that a change removed, replaced or made past.",
    ),
    Table(
        "memories",
        _columns(
            "key owner=>owners namespace->namespaces | id id | flag is_latest | digest digest | time at~ | "
            "text content | word tier status | label category | texts entities | label source | word origin | "
            "real trust | json metadata | number version | time born_at last_used | number use_count | "
            "real strength | times uses | number review_count | ids derived_from | flag is_forced | "
            "time promoted_at? | id vault_path"
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
        _columns("key namespace->namespaces | number band | key owner->owners"),
        ("namespace", "band", "owner"),
        "63-bit sums shared by nearly equal live texts.",
    ),
    Table(
        "memory_dates",
        _columns("key namespace->namespaces owner->memories | time since until"),
        ("namespace", "since", "until", "owner"),
        "periods that a text mentions, half-open.",
    ),
    Table(
        "links",
        _columns(
            "key namespace->namespaces | id source target | label type origin | real strength | "
            "time created_at expired_at? | text reason"
        ),
        ("namespace", "source", "target", "type"),
        "by memory ids; `origin` is `rule` where one was judged, `expired_at` where that was taken back.",
        record=Link,
        is_exported=True,
    ),
    Table(
        "mirror_due",
        _columns("key namespace->namespaces | id id"),
        ("namespace", "id"),
        "memories whose Markdown is due.",
    ),
    Table(
        "mirror_blocks",
        _columns("key namespace->namespaces | id id page | digest digest"),
        ("namespace", "id"),
        "what the store and a page of Markdown last agreed on.",
        record=JournalBlock,
    ),
    Table(
        "mirror_pages",
        _columns("key namespace->namespaces | id page | number size mtime_ns | digest sha256"),
        ("namespace", "page"),
        "the pages then.",
        record=JournalPage,
    ),
    Table(
        "notes",
        _columns("key namespace->namespaces | word kind | id id | time at | json body"),
        ("namespace", "kind", "id"),
        "records of the store about itself, JSON objects: receipts, backups, replaced stores, what the last indexing"
        " run left out, and of the kind `injected` what [hooks](../coding-agent.md#hooks) injected within a day. The"
        ' namespace "" is the whole store.',
        record=Note,
    ),
    Table(
        "episodes",
        _columns(
            "key number namespace=>namespaces | id id | text content | time reference_time created_at | "
            "text name | word source | text source_description | word origin | real trust | label group | "
            "id memory | number version"
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
        _columns(
            "key number namespace=>namespaces | id id | text name | label type | time created_at | "
            "text summary | json attributes | real trust | label group | "
            "time valid_from? valid_to? expired_at?",
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
        _columns(
            "key namespace->namespaces | label normal | id entity->entities | text name | time created_at | id episode"
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
        _columns(
            "key number namespace=>namespaces | id id source->entities target->entities | label type | "
            "text fact | time created_at valid_from? valid_to? stated_to? expired_at? | flag is_retracted | "
            "id dispute | time disputed_at? | real confidence trust | label group | json attributes | "
            "number stage~"
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
        _columns(
            "key namespace->namespaces | word kind | id subject->kind episode->episodes | number start end | text name"
        ),
        ("namespace", "kind", "subject", "episode", "start", "end", "name"),
        "where an episode names an entity, each name first, or states a fact, in characters, half-open.",
        record=Mention,
        is_exported=True,
        is_sequenced=True,
        told=("kind", "subject"),
    ),
    Table(
        "happenings",
        _columns(
            "key number namespace->namespaces | word kind | id subject->kind | time at | word what | "
            "text reason | id episode | json detail"
        ),
        ("namespace", "number"),
        "history of relations, and of entities but for their creation; `detail` is JSON that can undo it. Ids in graph"
        " tables have no foreign keys; `doctor` checks them.",
        record=Happening,
        is_exported=True,
        is_sequenced=True,
        told=("kind", "subject"),
    ),
    Table(
        "knowledge_items",
        _columns(
            "key owner=>owners namespace->namespaces | id agent | text content~ | json metadata | "
            "digest digest~ | label embedder~ | bytes vector~ | time updated_at"
        ),
        ("namespace", "owner"),
        "a map of an agent's knowledge. `content` is its text, `metadata` the map, `digest` the SHA-256 of agent and"
        " map; `embedder` is empty where words alone find it, `vector` int8 of the service's own embedder, else"
        " empty. A `knowledge` owner without a row is a document.",
        record=KnowledgeRecord,
        is_exported=True,
    ),
    Table(
        "agent_contexts",
        _columns("key namespace->namespaces | id name | number last_cursor | json metadata | time updated_at"),
        ("namespace", "name"),
        "takes no change number.",
        record=ContextRecord,
        is_exported=True,
    ),
    Table(
        "issues",
        _columns(
            "key namespace->namespaces | id id | text title | id agent | ids memory_ids | "
            "text description notes | label status | number priority | label issue_type | labels labels | "
            "json dependencies comments rest | time created_at updated_at closed_at? | text close_reason | "
            "number retries | time retry_at? | id claimed_by | time claimed_at? escalated_at?"
        ),
        ("namespace", "id"),
        "the ledger. `rest` has what an imported issue had beside these. The ledger takes no change numbers.",
        record=Issue,
        is_exported=True,
    ),
    Table(
        "issue_memories",
        _columns("key namespace->namespaces | id memory issue->issues"),
        ("namespace", "memory", "issue"),
        "which issues name a memory.",
    ),
    Table(
        "issue_events",
        _columns("key number namespace->namespaces | id issue | time at | id actor | word act | text why"),
        ("namespace", "number"),
        "what was done on an issue.",
        record=IssueEvent,
        is_exported=True,
        told=("issue",),
    ),
    Table(
        "reversals",
        _columns(
            "key namespace->namespaces | number number | id issue run | time at | ids memory_ids | json steps | "
            "time undone_at?"
        ),
        ("namespace", "number"),
        "what undoes a change, without words of memories.",
        record=Reversal,
        is_exported=True,
        told=("issue",),
    ),
    Table(
        "reversal_memories",
        _columns("key namespace->namespaces | id memory issue->reversals"),
        ("namespace", "memory", "issue"),
        "which reversals name a memory.",
    ),
    Table(
        "operations",
        _columns("time at | number count"),
        ("at",),
        "for the rate limit, of the whole store.",
    ),
)

SCHEMA: Final[Mapping[str, Table]] = {table.name: table for table in TABLES}
"""The tables by name, in the order in which they are created."""


def table_of(record: type) -> Table:
    """Return the table that holds records of a class."""
    return next(table for table in TABLES if table.record is record)
