"""The JSON Lines of cortexgraph, whole and broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign import stores
from commonplace.types import Link

LINE = {
    "id": "mem-1",
    "content": "User prefers TypeScript",
    "meta": {"tags": ["preferences", "typescript"], "source": "chat", "context": "setup", "extra": {"a": 1}},
    "entities": ["TypeScript"],
    "created_at": 1700000000,
    "last_used": 1700000500,
    "use_count": 5,
    "strength": 1.2,
    "status": "promoted",
    "promoted_at": 1700000400,
    "promoted_to": "vault/ts.md",
    "review_priority": 0.25,
}


def folder_with(tmp_path: Path, memories: list[object], relations: list[object] | None = None) -> Path:
    """Write both files; what is text already is written as it is."""
    for name, lines in (("memories.jsonl", memories), ("relations.jsonl", relations)):
        if lines is not None:
            written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
            (tmp_path / name).write_text("\n".join(written), encoding="utf-8")
    return tmp_path


def test_every_documented_field_has_its_place(tmp_path: Path) -> None:
    """What retention is made of must survive the move."""
    read = stores.read_cortexgraph(folder_with(tmp_path, [LINE]))
    (memory,) = read.memories
    assert read.problems == ()
    assert (memory.id, memory.content, memory.status, memory.source) == (
        "mem-1",
        "User prefers TypeScript",
        "promoted",
        "chat",
    )
    assert (memory.tags, memory.entities) == (("preferences", "typescript"), ("TypeScript",))
    assert (memory.created_at, memory.last_used, memory.use_count, memory.strength) == (1.7e9, 1700000500.0, 5, 1.2)
    assert memory.metadata == {
        "context": "setup",
        "a": 1,
        "promoted_at": 1700000400,
        "promoted_to": "vault/ts.md",
        "review_priority": 0.25,
    }


def test_last_line_of_an_id_counts_and_deleted_ones_are_gone(tmp_path: Path) -> None:
    """The file is a log; bringing back what somebody deleted would be worse than losing it."""
    lines = [
        {"id": "a", "content": "old"},
        {"id": "b", "content": "stays"},
        {"id": "c", "content": "goes"},
        {"id": "d", "content": "goes too"},
        {"id": "e", "content": "comes back"},
        {"id": "e", "deleted": True},
        {"id": "a", "content": "new"},
        {"id": "c", "_deleted": True},
        {"id": "d", "status": "deleted"},
        {"id": "e", "content": "came back"},
    ]
    read = stores.read_cortexgraph(folder_with(tmp_path, list(lines)))
    assert [(memory.id, memory.content) for memory in read.memories] == [
        ("a", "new"),
        ("b", "stays"),
        ("e", "came back"),
    ]
    assert read.problems == ()


def test_relations_become_links_between_what_is_there(tmp_path: Path) -> None:
    """A link to nothing cannot be kept, and is named."""
    relation = {"id": "r1", "from_memory_id": "a", "to_memory_id": "b", "relation_type": "causes", "strength": 0.8}
    read = stores.read_cortexgraph(
        folder_with(
            tmp_path,
            [{"id": "a", "content": "A"}, {"id": "b", "content": "B"}],
            [
                relation,
                {**relation, "id": "r2", "to_memory_id": "gone"},
                {**relation, "id": "r3", "relation_type": None, "strength": 7, "metadata": {"why": "x"}},
                {**relation, "id": "r4", "deleted": True},
                "{broken",
            ],
        )
    )
    assert read.links == (Link("a", "b", "causes", 0.8), Link("a", "b", "related", 1.0))
    assert [(problem.path, problem.reason) for problem in read.problems] == [
        (
            "relations.jsonl:5",
            "not JSON: Expecting property name enclosed in double quotes in line 1, column 2",
        ),
        ("relations.jsonl:2", "links the memory 'gone', which is not there, and was skipped"),
        ("relations.jsonl:3", "its metadata was skipped: links have none"),
    ]


def test_broken_lines_are_problems_with_their_numbers(tmp_path: Path) -> None:
    """A crash in the middle of a write leaves half a line; the others are whole."""
    lines = [
        "",
        LINE,
        '{"id": "half',
        "[1]",
        {"content": "no id"},
        {"id": "e", "content": "  "},
        {"id": "s", "content": "odd", "status": "sleeping", "use_count": -3, "strength": "much", "meta": 5},
        {"id": "v", "content": "vector", "embedding": [0.1]},
    ]
    read = stores.read_cortexgraph(folder_with(tmp_path, list(lines)))
    assert [memory.id for memory in read.memories] == ["mem-1", "s", "v"]
    odd = read.memories[1]
    assert (odd.status, odd.use_count, odd.strength) == ("active", 0, 1.0)
    assert [problem.path for problem in read.problems] == [
        "memories.jsonl:3",
        "memories.jsonl:4",
        "memories.jsonl:5",
        "memories.jsonl:6",
        *["memories.jsonl:7"] * 4,
    ]
    assert [(notice.path, notice.reason) for notice in read.notices] == [
        ("memories.jsonl:8", "its embedding was skipped: a new one is made")
    ]
    assert "embedding" not in read.memories[2].metadata


def test_file_itself_may_be_named(tmp_path: Path) -> None:
    """The relations lie beside it."""
    folder_with(tmp_path, [LINE], [])
    assert stores.read_cortexgraph(tmp_path / "memories.jsonl") == stores.read_cortexgraph(tmp_path)


def test_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A folder that somebody sent must not make us read another file as memories."""
    (tmp_path / "outside").mkdir()
    folder_with(tmp_path / "outside", [LINE], [{"id": "r"}])
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "memories.jsonl").symlink_to(tmp_path / "outside" / "memories.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        stores.read_cortexgraph(tmp_path / "sent")
    (tmp_path / "sent" / "memories.jsonl").unlink()
    folder_with(tmp_path / "sent", [LINE])
    (tmp_path / "sent" / "relations.jsonl").symlink_to(tmp_path / "outside" / "relations.jsonl")
    read = stores.read_cortexgraph(tmp_path / "sent")
    assert [problem.path for problem in read.problems] == ["relations.jsonl"]
    assert len(read.memories) == 1


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    """An import that brings nothing must not look like a success."""
    with pytest.raises(NotFoundError):
        stores.read_cortexgraph(tmp_path)
    with pytest.raises(UsageError, match=r"memories\.jsonl:1: not JSON.*and 1 more problem"):
        stores.read_cortexgraph(folder_with(tmp_path, ["{", "}"]))
