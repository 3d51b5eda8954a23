"""Exports: one line for each version, link and owner, exact, from one state, and a last line that tells of all."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.contract.memories import add, expire, update, written
from tests.contract.stores import BACKENDS, file

import commonplace
from commonplace.errors import StoreDamagedError, StoreError
from commonplace.exchange.export import ExportReport, export
from commonplace.store.store import Store
from commonplace.types import Chunk, Kind, Link, NewPassage, Owner, OwnerWrite


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An empty store of each backend."""
    made = BACKENDS[request.param](tmp_path)
    yield made
    made.close()


def exported(store: Store, *kinds: Kind) -> tuple[ExportReport, list[dict[str, Any]], str]:
    """Return the report, the lines and the text of an export of namespace "n"."""
    stream = io.StringIO()
    report = export(store, "n", stream, kinds=kinds)
    text = stream.getvalue()
    return report, [json.loads(line) for line in text.splitlines()], text


def test_every_field_of_a_memory_is_in_its_line(store: Store) -> None:
    add(
        store,
        written("m", "Ünï\ue000\x01", tags=("t",), at=1.5, metadata='{"a": [1]}'),
        at=0.1,
        until=0.30000000000000004,
    )
    report, lines, text = exported(store)
    assert text.isascii()
    assert lines[1] == {
        "type": "memory",
        "created_at": 0.1,
        "expired_at": 0.30000000000000004,
        "owner": {
            "id": "m",
            "kind": "memory",
            "title": "",
            "summary": "",
            "tags": ["t"],
            "type": "",
            "phase": "",
            "references": [],
            "path": "",
            "root": "",
            "session": "",
            "position": 0,
            "at": 1.5,
            "stamp": None,
        },
        "record": {
            "content": "Ünï\ue000\x01",
            "tier": "short",
            "status": "active",
            "category": "",
            "entities": [],
            "source": "",
            "origin": "agent",
            "trust": 1.0,
            "metadata": {"a": [1]},
            "version": 1,
            "born_at": 0.0,
            "last_used": 0.0,
            "use_count": 0,
            "strength": 1.0,
            "uses": [],
            "review_count": 0,
            "derived_from": [],
            "is_forced": False,
            "promoted_at": None,
            "vault_path": "",
        },
    }
    assert (report.memories, report.versions, report.lines, report.size) == (1, 1, 2, len(text))


def test_first_and_last_line_tell_of_those_between(store: Store) -> None:
    """So a file that was cut off or changed is noticed."""
    add(store, written("b", "two"), written("a", "one"))
    update(store, written("a", "one", "more", version=2), 20.0)
    expire(store, "b", 30.0)
    with store.change_memories("n") as change:
        change.link(Link("b", "a", "related", 0.5, 3.0))
    store.put_owners("n", [file("f", "a.py", "x")])
    report, lines, text = exported(store)
    assert lines[0] == {
        "format": "commonplace-export",
        "version": 2,
        "commonplace": commonplace.__version__,
        "namespace": "n",
        "kinds": ["artifact", "memory", "knowledge", "graph", "ledger"],
        "counts": {
            "memories": 2,
            "links": 1,
            "owners": 1,
            "knowledge": 0,
            "contexts": 0,
            "episodes": 0,
            "entities": 0,
            "relations": 0,
            "issues": 0,
        },
    }
    body = text.rpartition("\n{")[0] + "\n"
    assert lines[-1] == {"type": "end", "lines": 6, "sha256": sha256(body.encode()).hexdigest()}
    assert report.sha256 == lines[-1]["sha256"]
    assert (report.memories, report.versions, report.links, report.owners, report.lines) == (2, 3, 1, 1, 6)
    told = [(line["owner"]["id"], line["record"]["version"], line["expired_at"]) for line in lines[1:4]]
    assert told == [("a", 1, 20.0), ("a", 2, None), ("b", 1, 30.0)]
    assert lines[4] == {
        "type": "link",
        "link": {
            "source": "b",
            "target": "a",
            "type": "related",
            "strength": 0.5,
            "created_at": 3.0,
            "origin": "",
            "reason": "",
            "expired_at": None,
        },
    }


def test_owners_come_with_what_they_were_cut_into(store: Store) -> None:
    """A document of the kind memory is no memory: it has no record."""
    pieces = [
        NewPassage(f"p{number}", Chunk(text, number, 9, "h"), b"", b"\0" * 4) for number, text in ((1, "x"), (2, ""))
    ]
    store.put_owners("n", [OwnerWrite(Owner("turn", "memory", session="s", position=3), tuple(pieces))])
    store.put_owners("n", [file("f", "a.py", "x"), OwnerWrite(Owner("k", "knowledge"), ())])
    _, lines, _ = exported(store)
    assert [(line["type"], line["owner"]["kind"], line["owner"]["id"]) for line in lines[1:-1]] == [
        ("owner", "artifact", "f"),
        ("owner", "memory", "turn"),
        ("owner", "knowledge", "k"),
    ]
    assert lines[1]["owner"]["stamp"] == {
        "sha256": "ab" * 32,
        "size": 10,
        "mtime_ns": 1_700_000_000_123_456_789,
        "recipe": "1/512/50",
    }
    assert lines[2]["passages"] == [
        {"text": "x", "start_line": 1, "end_line": 9, "heading": "h"},
        {"text": "", "start_line": 2, "end_line": 9, "heading": "h"},
    ]


def test_only_the_chosen_kinds_are_exported(store: Store) -> None:
    add(store, written("a", "one"))
    store.put_owners("n", [file("f", "a.py", "x"), OwnerWrite(Owner("k", "knowledge"), ())])
    _, lines, _ = exported(store, "knowledge", "artifact")
    assert [line["owner"]["id"] for line in lines[1:-1]] == ["f", "k"]
    assert lines[0]["kinds"] == ["artifact", "knowledge"]
    _, lines, _ = exported(store, "memory")
    assert [line["owner"]["id"] for line in lines[1:-1]] == ["a"]


def test_what_json_cannot_say_is_said_otherwise(store: Store) -> None:
    """JSON knows no infinite time."""
    store.put_owners("n", [OwnerWrite(Owner("d", "artifact", at=float("-inf")), ())])
    _, lines, _ = exported(store)
    assert lines[1]["owner"]["at"] == "-inf"


def test_other_namespaces_are_left_out(store: Store) -> None:
    add(store, written("a", "one"), name="other")
    assert [line.get("type") for line in exported(store)[1]] == [None, "end"]


def test_an_export_shows_one_state(store: Store, tmp_path: Path) -> None:
    """Others write while it goes on; half of a change would be a state that never was."""

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if not self.tell() and isinstance(other, type(store)):
                add(other, written("z", "late"))
            return super().write(text)

    add(store, written("a", "one"))
    other = BACKENDS["sqlite"](tmp_path) if (tmp_path / "store.db").exists() else None
    stream = Interrupted()
    assert export(store, "n", stream).memories == 1
    if other is not None:
        assert export(store, "n", io.StringIO()).memories == 2
        other.close()


def test_a_file_is_there_only_when_it_is_whole(store: Store, tmp_path: Path) -> None:
    add(store, written("a", "one"))
    target = tmp_path / "out" / "e.jsonl"
    (tmp_path / "out").write_text("a file where a directory should be")
    with pytest.raises(StoreError, match=r"cannot write .*e\.jsonl: "):
        export(store, "n", target)
    (tmp_path / "out").unlink()
    with pytest.raises(StoreError, match=r"deep is no directory; make it, or name another one"):
        export(store, "n", tmp_path / "new" / "deep" / "e.jsonl")
    assert not (tmp_path / "new").exists(), "a path that was mistyped leaves nothing behind"
    target.parent.mkdir()
    add(store, written("b", "two", metadata='{"a": NaN}'))
    with pytest.raises(StoreDamagedError, match="the metadata of memory 'b' is not a JSON object"):
        export(store, "n", target)
    assert list(target.parent.iterdir()) == []


def test_an_export_replaces_nothing(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "e.jsonl"
    report = export(store, "n", target)
    assert report.path == target
    before = target.read_bytes()
    with pytest.raises(StoreError, match="exists already; name a file that does not exist yet"):
        export(store, "n", target)
    assert target.read_bytes() == before == exported(store)[2].encode()
