"""Exports of mem0, whole and broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign import reader, stores
from commonplace.formats.foreign.reader import ForeignData

ENTRY = {
    "id": "m1",
    "memory": "Dev prefers morning meetings",
    "hash": "abc",
    "user_id": "dev",
    "agent_id": None,
    "categories": ["personal_details", "work"],
    "metadata": {"type": "preference", "user_id": "someone"},
    "created_at": "2024-07-01T12:00:00-07:00",
    "updated_at": "2024-07-02T00:00:00Z",
}


def exported(tmp_path: Path, document: object) -> ForeignData:
    file = tmp_path / "export.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return stores.read_mem0(file)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"results": m}, lambda m: {"memories": m}])
def test_every_documented_shape_holds_the_same_memories(tmp_path: Path, wrap: Any) -> None:
    """`get_all`, an export and a saved list differ in what stands around the memories."""
    read = exported(tmp_path, wrap([ENTRY]))
    assert read.problems == ()
    (memory,) = read.memories
    assert (memory.id, memory.content) == ("m1", "Dev prefers morning meetings")
    assert memory.tags == ("personal_details", "work")
    assert memory.created_at == 1719860400.0
    assert memory.updated_at == 1719878400.0
    assert memory.metadata == {"type": "preference", "user_id": "someone", "hash": "abc", "mem0_user_id": "dev"}
    assert memory.source == "mem0"


def test_relations_become_facts_each_once(tmp_path: Path) -> None:
    """mem0's graph memory writes names with underscores, and the other end as target or destination."""
    relations = [
        {"source": "alice_smith", "source_type": "person", "relationship": "works_at", "target": "acme"},
        {"source": "alice_smith", "relation": "likes", "destination": "pizza", "created_at": "2024-07-02T00:00:00Z"},
        {"source": "alice_smith", "relationship": "works_at", "target": "acme"},
    ]
    read = exported(tmp_path, {"results": [ENTRY], "relations": relations})
    assert read.problems == ()
    assert [(each.source, each.type, each.target, each.source_type, each.valid_from) for each in read.facts] == [
        ("alice smith", "works_at", "acme", "person", None),
        ("alice smith", "likes", "pizza", "", 1719878400.0),
    ]


@pytest.mark.parametrize("name", ["memory", "text", "data"])
def test_text_is_found_under_each_of_its_names(tmp_path: Path, name: str) -> None:
    """Versions of mem0 name it differently."""
    assert exported(tmp_path, [{"id": "1", name: "Fact"}]).memories[0].content == "Fact"


def test_memory_without_id_has_the_same_one_at_every_reading(tmp_path: Path) -> None:
    """Importing twice must not double what is there, nor merge two entries that happen to be alike."""
    document = [{"memory": "A"}, {"memory": "A"}, {"memory": "B"}]
    first, second = exported(tmp_path, document), exported(tmp_path, document)
    ids = [memory.id for memory in first.memories]
    assert ids == [memory.id for memory in second.memories]
    assert len(set(ids)) == 3
    assert ids[0] == "2b0f3ae9-c990-50ca-8b2b-975d04ffae3f"


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    """A person must learn what an import left behind."""
    read = exported(
        tmp_path,
        {
            "count": 900,
            "next": "page 2",
            "relations": [{"source": "a", "relationship": "b"}, 7],
            "results": [
                ENTRY,
                ENTRY,
                7,
                {"id": "x"},
                {"id": "y", "memory": "gone", "event": "DELETE"},
                {"id": "z", "memory": "kept", "created_at": "yesterday", "expiration_date": "2030-01-01"},
                {"id": "s", "memory": "a\ud800b\x00", "categories": 5},
                {"id": "n", "memory": 5},
            ],
        },
    )
    assert [memory.id for memory in read.memories] == ["m1", "z", "s"]
    assert read.memories[1].created_at is None
    assert read.memories[2].content == "a\ufffdb\ufffd"
    reasons = [f"{problem.path} {problem.reason}" for problem in read.problems]
    assert reasons == [
        "export.json is one page of 900, with 8 memories; export the others too",
        "export.json:memory 2 has the id 'm1' of a memory before it and was skipped",
        "export.json:memory 3 is not an object and was skipped",
        "export.json:memory 4 has no text under memory, text, data and was skipped",
        "export.json:memory 6 created_at is 'yesterday', no time between the years 1 and 9999, and was skipped",
        "export.json:memory 7 the memory holds characters that no text has, replaced by U+FFFD",
        "export.json:memory 7 categories is not a list and was skipped",
        "export.json:memory 8 has no text under memory, text, data and was skipped",
        "export.json:relation 1 has no source or no target and was skipped",
        "export.json:relation 2 is not an object and was skipped",
    ]
    assert [f"{notice.path} {notice.reason}" for notice in read.notices] == [
        "export.json:memory 5 is marked as deleted and was skipped",
        "export.json:memory 6 expires on 2030-01-01, which is kept in its metadata and not enforced",
    ]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (1719878400, 1719878400.0),
        (1719878400000, 1719878400.0),
        ("1970-01-01", 0.0),
        ("2024-07-02 00:00:00", 1719878400.0),
        ("9999-12-31", 253402214400.0),
    ],
)
def test_times_are_read_in_every_usual_form(tmp_path: Path, value: object, seconds: float) -> None:
    """Without a zone a time is UTC; numbers too large for seconds are milliseconds."""
    assert exported(tmp_path, [{"memory": "A", "created_at": value}]).memories[0].created_at == seconds


@pytest.mark.parametrize("value", [True, [], 1e300, "0000-01-01", {"a": 1}, -1e12 * 1000])
def test_times_that_are_none_are_noted(tmp_path: Path, value: object) -> None:
    """A memory is worth keeping without its date."""
    read = exported(tmp_path, [{"memory": "A", "created_at": value}])
    assert read.memories[0].created_at is None
    assert len(read.problems) == 1


def test_empty_export_is_no_error(tmp_path: Path) -> None:
    """Somebody exported before remembering anything."""
    assert exported(tmp_path, {"results": []}) == ForeignData()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON: Expecting property name"),
        ('{"a": 1}', "neither a list nor an object"),
        ("[NaN]", "NaN is not a number"),
        ("[" * 100 + "]" * 100, "nested too deeply, more than 64 levels"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("[" + "9" * 5000 + "]", "not JSON"),
        ('["only words"]', "is not an object"),
    ],
)
def test_file_of_which_nothing_can_be_read_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    """An import that brings nothing must not look like a success."""
    with pytest.raises(UsageError, match=why):
        exported(tmp_path, text)


def test_files_that_are_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another encoding, a folder, a missing file and one over the limit each have their own remedy."""
    (tmp_path / "latin.json").write_bytes(b'["caf\xe9"]')
    with pytest.raises(UsageError, match="not UTF-8 at byte 5; save it as UTF-8"):
        stores.read_mem0(tmp_path / "latin.json")
    (tmp_path / "export.zip").write_bytes(b"PK\x03\x04\x14\x00\x00\x08\x08\x00\xe9")
    with pytest.raises(UsageError, match="is a ZIP archive; unpack it"):
        stores.read_mem0(tmp_path / "export.zip")
    with pytest.raises(UsageError, match="it is a directory"):
        stores.read_mem0(tmp_path)
    with pytest.raises(NotFoundError, match="there is no file"):
        stores.read_mem0(tmp_path / "none.json")
    monkeypatch.setattr(reader, "MAX_FILE_BYTES", 7)
    with pytest.raises(UsageError, match="more than 7 bytes, the limit; name a file that can be read; split"):
        stores.read_mem0(tmp_path / "latin.json")


def test_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    """Exports pass through editors."""
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf[\r\n{"memory": "A"}\r\n]')
    assert [memory.content for memory in stores.read_mem0(tmp_path / "a.json").memories] == ["A"]
