"""A column that is added to the schema is exported, erased, looked for, cleaned and checked without another line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import commonplace
from commonplace.erasure import scan
from commonplace.erasure.scan import Collector
from commonplace.erasure.select import Plan, add_rows
from commonplace.erasure.verify import still_stored
from commonplace.exchange.codec import build, decode_line, encode_line
from commonplace.redaction import redact
from commonplace.store import check, dialect, memories, schema
from commonplace.store.rows import cleaned, form_of
from commonplace.store.schema import SCHEMA, Column, Table
from commonplace.types import Link, Owner

TOKEN = "ghp" + "_" + "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEa"
NOTE = "Quillfeather is the name of the buyer"

Use = Callable[[Table], None]


@dataclass(frozen=True, slots=True)
class NotedLink(Link):
    """A link of which somebody said something."""

    note: str = ""


NotedLink.__name__ = Link.__name__  # as the lines of exports call it


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Put a table in the place of the one of its name, wherever the list of tables is read."""

    def put(table: Table) -> None:
        tables = tuple(table if each.name == table.name else each for each in schema.TABLES)
        monkeypatch.setitem(SCHEMA, table.name, table)  # type: ignore[arg-type] # a dict
        for module in (schema, check, dialect, memories, scan):
            monkeypatch.setattr(module, "TABLES", tables)

    return put


def with_column(name: str, column: Column) -> Table:
    return replace(SCHEMA[name], columns=(*SCHEMA[name].columns, column))


def test_it_is_exported_and_read_again(use: Use) -> None:
    use(replace(with_column("links", Column("note", "text")), record=NotedLink))
    link = NotedLink("a", "b", note=NOTE)
    line = decode_line(encode_line({"type": "link", "link": link}))
    assert line["link"]["note"] == NOTE
    assert build(NotedLink, line["link"]) == link


def test_it_goes_from_store_to_store_and_the_search_for_secrets_finds_it(
    use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record alone has a field more; what reads, writes, exports, imports and cleans it has no line more."""
    use(replace(with_column("links", Column("note", "text")), record=NotedLink))
    before, after = form_of(Link).names(), form_of(NotedLink).names()
    monkeypatch.setattr(memories, "_LINK", form_of(NotedLink))
    for name in ("all_links", "links"):  # which may have been read from their file before
        monkeypatch.setitem(memories.SQL._found, name, memories.SQL[name].replace(before, after))
    cleaned_note = "It is [redacted: github token]"
    with (
        commonplace.open(tmp_path / "here", embedder="hashing") as here,
        commonplace.open(tmp_path / "there", embedder="hashing") as there,
    ):
        for id_ in "ab":
            here.remember(f"The kettle of {id_}", id=id_)
        with here._runtime.store.change_memories("default") as change:
            change.link(NotedLink("a", "b", note=f"It is {TOKEN}"))
        here.export(tmp_path / "e.jsonl")
        assert TOKEN in (tmp_path / "e.jsonl").read_text()
        assert there.import_(tmp_path / "e.jsonl").links.added == 1
        assert there._runtime.store.links("default") == [NotedLink("a", "b", note=cleaned_note)]
        finding, *_ = here.doctor(secrets=True).findings
        assert finding.mended and finding.problem.startswith("link from 'a' to 'b'")
        assert here._runtime.store.links("default") == [NotedLink("a", "b", note=cleaned_note)]
        assert TOKEN.encode() not in (tmp_path / "here" / "store.db").read_bytes()


@pytest.mark.parametrize(("role", "is_replaced"), [("text", True), ("label", True), ("id", False), ("word", False)])
def test_a_secret_in_it_is_replaced_where_it_holds_words(use: Use, role: schema.Role, is_replaced: bool) -> None:
    use(replace(with_column("links", Column("note", role)), record=NotedLink))
    link = cleaned(NotedLink("a", "b", note=f"It is {TOKEN}"), lambda text: redact(text).text, lambda value: value)
    assert (TOKEN not in link.note) == is_replaced


def test_what_it_held_is_erased_and_looked_for(use: Use, tmp_path: Path) -> None:
    use(with_column("memories", Column("note", "text", is_optional=True)))
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        for id_ in ("sold", "kept"):
            book.remember(f"The house was {id_}", id=id_)
        with closing(sqlite3.connect(tmp_path / "store" / "store.db")) as db, db:
            db.execute("UPDATE memories SET note = ? WHERE id = 'sold'", (NOTE,))
        store = book._runtime.store
        patterns = Collector()
        patterns.add_content(NOTE)
        assert still_stored(store, patterns.patterns()) >= {NOTE.encode()}
        plan = Plan(("sold",))
        add_rows(plan, store, "default")
        assert NOTE.encode() in set(plan.traces.patterns())
        (tmp_path / "store" / "left.txt").write_text(NOTE)
        receipt = book.forget("sold")
        assert ("left.txt", "words of it") in receipt.found
        assert still_stored(store, patterns.patterns()) == set()
        assert NOTE.encode() not in (tmp_path / "store" / "store.db").read_bytes()


def test_what_it_names_is_checked(use: Use, tmp_path: Path) -> None:
    use(with_column("memories", Column("about", "id", is_optional=True, refers="entities", may_be_empty=True)))
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("The kettle whistles", id="kettle")
        assert book.doctor().is_healthy
        with closing(sqlite3.connect(tmp_path / "store" / "store.db")) as db, db:
            db.execute("UPDATE memories SET about = 'nobody'")
        assert any("memories whose about is gone" in each.problem for each in book.doctor().findings)


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        (("a.md", "b.md", "a.md"), ("a.md", "b.md", "a.md")),
        ((f"x {TOKEN}", "b.md", f"x {TOKEN[:-1]}q"), ("x [redacted: github token]", "b.md")),
    ],
)
def test_texts_of_a_list_that_occur_twice_stay_unless_a_secret_made_them_one(
    given: tuple[str, ...], clean: tuple[str, ...]
) -> None:
    owner = Owner("m", "memory", references=given)
    assert cleaned(owner, lambda text: redact(text).text, lambda value: value).references == clean
