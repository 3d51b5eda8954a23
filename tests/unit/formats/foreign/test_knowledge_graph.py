"""The reference MCP memory server's file, whole and broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import UsageError
from commonplace.formats.foreign import stores
from commonplace.formats.foreign.reader import ForeignData

WHOLE = """{"type":"entity","name":"John_Smith","entityType":"person","observations":["Likes tea","John Smith is tall"]}
{"type":"entity","name":"Anthropic","entityType":"organization","observations":[]}
{"type":"relation","from":"John_Smith","to":"Anthropic","relationType":"works_at"}
"""


def read(tmp_path: Path, text: str) -> ForeignData:
    file = tmp_path / "memory.jsonl"
    file.write_text(text, encoding="utf-8")
    return stores.read_mcp_memory(file)


def test_observations_become_memories_and_relations_facts(tmp_path: Path) -> None:
    """An observation is nothing without whom it is about."""
    found = read(tmp_path, WHOLE)
    assert (found.problems, found.notices) == ((), ())
    assert [each.content for each in found.memories] == ["John Smith: Likes tea", "John Smith is tall"]
    assert found.memories[0].entities == ("John Smith",)
    assert found.memories[0].metadata == {"entity": "John_Smith", "entity_type": "person"}
    [fact] = found.facts
    assert (fact.source, fact.type, fact.target) == ("John Smith", "works_at", "Anthropic")
    assert (fact.source_type, fact.target_type) == ("person", "organization")


def test_ids_stay_when_other_lines_move(tmp_path: Path) -> None:
    """The server writes its file anew at each change; importing it again must not double what is there."""
    lines = WHOLE.splitlines(keepends=True)
    first, second = read(tmp_path, WHOLE), read(tmp_path, "".join(reversed(lines)))
    assert {each.id for each in first.memories} == {each.id for each in second.memories}


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    """A person must learn what an import left behind."""
    found = read(
        tmp_path,
        WHOLE
        + '{"type":"entity","name":"","observations":["x"]}\n{"type":"relation","from":"A","to":""}\n{"type":"x"}\n{\n'
        + '{"type":"entity","name":"Lone"}\n{"type":"entity","name":"B","observations":"words"}\n',
    )
    assert [each.path for each in found.problems] == [f"memory.jsonl:{number}" for number in (4, 5, 6, 7, 9)]
    assert [each.path for each in found.notices] == ["memory.jsonl:8", "memory.jsonl:9"]


def test_a_file_of_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    """An import that brings nothing must not look like a success."""
    with pytest.raises(UsageError, match="neither an entity nor a relation"):
        read(tmp_path, '{"type":"x"}\n')
