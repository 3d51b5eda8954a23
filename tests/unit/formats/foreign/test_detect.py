"""Whose memories lie at a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign.detect import READERS, detect


@pytest.mark.parametrize(
    ("files", "named", "found"),
    [
        ({"a.json": '[{"memory": "A"}]'}, "a.json", "mem0"),
        ({"a.json": '{"results": []}'}, "a.json", "mem0"),
        ({"dump.jsonl": '\n{"id": "1", "content": "A"}\n'}, "dump.jsonl", "cortexgraph"),
        ({"memories.jsonl": "", "MEMORY.md": ""}, "", "cortexgraph"),
        ({"MEMORY.md": "- A"}, "", "openclaw"),
        ({"memory/2024-03-01.md": "- A"}, "", "openclaw"),
        ({"a.md": "---\npermalink: a\n---\n"}, "", "basic-memory"),
        ({"z/a.md": "# A\n- [fact] It is so\n"}, "", "basic-memory"),
        ({"a.md": "- requires [[B]]\n"}, "", "basic-memory"),
        ({"a.md": "- requires [[B]]\n", ".obsidian/app.json": "{}"}, "", "markdown"),
        ({"a.md": "# Just\n- a list\n- [x] with a task\n"}, "", "markdown"),
        ({"a.json": '[{"id": "1", "title": "T", "mapping": {}}]'}, "a.json", "chatgpt"),
        ({"a.json": '[{"uuid": "1", "name": "T", "chat_messages": []}]'}, "a.json", "claude"),
        ({"a.jsonl": '{"role": "user", "content": "A"}\n'}, "a.jsonl", "chat"),
        ({"a.jsonl": '{"messages": [{"role": "user", "content": "A"}]}\n{"messages": []}\n'}, "a.jsonl", "chat"),
        ({"a.jsonl": '{"type": "user", "message": {"role": "user", "content": "A"}}\n'}, "a.jsonl", "chat"),
        ({"a.json": '{"messages": [{"role": "user", "content": "A"}]}'}, "a.json", "chat"),
        ({"memory.jsonl": '{"type": "entity", "name": "A", "entityType": "x"}\n'}, "memory.jsonl", "mcp-memory"),
        ({"memory.json": '{"type": "entity", "name": "A"}\n{"type": "relation"}\n'}, "memory.json", "mcp-memory"),
    ],
)
def test_each_format_is_known_by_what_only_it_has(
    tmp_path: Path, files: dict[str, str], named: str, found: str
) -> None:
    """A person names a path; which program wrote it they may not know."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert detect(tmp_path / named) == found
    assert found in READERS


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.txt": "groceries"},
        {"a.json": "{}"},
        {"a.json": '[{"name": "A"}]'},
        {"a.jsonl": '{"x": 1}'},
    ],
)
def test_unknown_form_is_refused_with_what_was_looked_for(tmp_path: Path, files: dict[str, str]) -> None:
    """Guessing would import somebody's grocery list as facts."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    named = tmp_path / next((name for name in files if not name.endswith(".md")), "")
    with pytest.raises(UsageError, match="looked for a JSON file with a list of memories") as caught:
        detect(named)
    assert all(name in str(caught.value) for name in READERS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"title": "Trip", "mapping": {"a', "not JSON: Unterminated string starting at in line 1, column 32"),
        ('[\n {"memory": NaN}\n]', "not JSON: NaN is not a number"),
        ("", "it is empty"),
        (" \n", "it is empty"),
    ],
)
def test_file_that_is_cut_off_or_empty_is_told_from_an_unknown_form(tmp_path: Path, text: str, said: str) -> None:
    """A person whose download broke off would look for another format, which there is not."""
    file = tmp_path / "conversations.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        detect(file)
    assert f"{file} cannot be read: {said}" in str(caught.value)


def test_folder_of_an_unpacked_export_is_refused_with_the_file_to_name(tmp_path: Path) -> None:
    """ChatGPT's and Claude's exports unpack to a folder with pages, pictures and this one file."""
    (tmp_path / "conversations.json").write_text("[]")
    (tmp_path / "chat.html").write_text("")
    with pytest.raises(UsageError) as caught:
        detect(tmp_path)
    assert str(caught.value).endswith(f"name the file: {tmp_path / 'conversations.json'}")


def test_missing_path_is_not_found(tmp_path: Path) -> None:
    """The person mistyped it; the message repeats it."""
    with pytest.raises(NotFoundError, match="nowhere"):
        detect(tmp_path / "nowhere")
