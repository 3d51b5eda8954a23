"""Folders of Markdown notes, basic-memory's and others, whole and broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign import markdown
from commonplace.formats.foreign.reader import ForeignData
from commonplace.types import Link

COFFEE = """---
title: Coffee Brewing
type: guide
tags: [coffee, brewing]
permalink: coffee-brewing
created: 2024-03-01
status: draft
---

# Coffee Brewing

Some prose about [[Water]].

## Observations
- [method] Pour over gives clarity #flavour #filter (from a class)
- [technique] Use 94 °C
  - and wait
- [x] buy a kettle

## Relations
- requires [[Grinding|the grinder]]
- contrasts_with [[Tea]]
- [[Water]]

```
- [not] an observation [[Nothing]]
```
"""


def notes_in(folder: Path, **notes: str) -> ForeignData:
    for name, text in notes.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return markdown.read_basic_memory(folder)


def test_note_and_observations_become_memories(tmp_path: Path) -> None:
    """An observation is what gets found; the note holds the rest, so that nothing is lost or there twice."""
    read = notes_in(tmp_path, coffee=COFFEE)
    note, method, technique = read.memories
    assert (note.id, note.title, note.category, note.source) == (
        "coffee-brewing",
        "Coffee Brewing",
        "guide",
        "coffee.md",
    )
    assert note.tags == ("coffee", "brewing")
    assert note.entities == ("Coffee Brewing", "Water", "Grinding", "Tea")
    assert note.created_at == 1709251200.0
    assert note.metadata == {"type": "guide", "status": "draft"}
    assert note.content.startswith("# Coffee Brewing\n\nSome prose about [[Water]].\n\n## Observations")
    assert "Pour over" not in note.content
    assert "[x] buy a kettle" in note.content
    assert "- requires [[Grinding|the grinder]]" in note.content
    assert "- [not] an observation" in note.content
    assert (method.content, method.category) == ("Pour over gives clarity", "method")
    assert method.tags == ("coffee", "brewing", "flavour", "filter")
    assert method.metadata == {"context": "from a class", "line": 15}
    assert technique.content == "Use 94 °C\n  - and wait"
    assert method.title == technique.title == "Coffee Brewing"


def test_relations_become_links_between_notes(tmp_path: Path) -> None:
    """A target is named by title, permalink, path or file name; a link to one that is not here stays in the text."""
    read = notes_in(
        tmp_path, coffee=COFFEE, Water="Wet.\n", tea="---\ntitle: Tea\npermalink: drinks/tea\n---\n- hot [[coffee]]\n"
    )
    ids = {memory.title: memory.id for memory in read.memories if not memory.category or memory.category == "guide"}
    between = [link for link in read.links if link.type != markdown.PART_OF]
    assert sorted(between, key=str) == sorted(
        [
            Link("coffee-brewing", ids["Water"], "links_to"),
            Link("coffee-brewing", "drinks/tea", "contrasts_with"),
            Link("coffee-brewing", ids["Water"], "relates_to"),
            Link("drinks/tea", "coffee-brewing", "hot"),
        ],
        key=str,
    )
    assert [link.target for link in read.links if link.type == markdown.PART_OF] == ["coffee-brewing"] * 2
    assert read.problems == ()
    assert [(notice.path, notice.reason) for notice in read.notices] == [
        ("coffee.md:21", "links [[Grinding]], which is no note here: kept as text and entity alone")
    ]


def test_ids_are_the_same_at_every_reading_and_distinct(tmp_path: Path) -> None:
    """Importing twice is importing once."""
    text = "- [a] Same\n- [a] Same\n"
    first = notes_in(tmp_path, one=text, two=text)
    assert first == markdown.read_basic_memory(tmp_path)
    assert len({memory.id for memory in first.memories}) == len(first.memories) == 6


def test_note_without_front_matter_is_named_after_its_file(tmp_path: Path) -> None:
    """People drop plain notes into the folder."""
    (memory,) = notes_in(tmp_path, Plain="Just text.\n").memories
    assert (memory.title, memory.content) == ("Plain", "Plain\n\nJust text.")


def test_broken_front_matter_is_a_problem_and_the_text_is_kept(tmp_path: Path) -> None:
    """One careless note must not stop an import, nor one that was made to."""
    read = notes_in(tmp_path, a="---\ntitle: [1\n---\nText\n", b="---\na: &x [1]\nb: *x\n---\nText\n")
    assert [memory.content for memory in read.memories] == ["a\n\nText", "b\n\nText"]
    assert [problem.path for problem in read.problems] == ["a.md", "b.md"]
    assert "aliases are not allowed" in read.problems[1].reason


@pytest.mark.parametrize(
    "line", ["type: [a, b]", "title: {a: 1}", "tags: 5", "created: never", "permalink: [x]", "tags: [[a], {b: 1}]"]
)
def test_odd_values_are_noted_not_raised(tmp_path: Path, line: str) -> None:
    """YAML lets anybody write anything anywhere."""
    read = notes_in(tmp_path, a=f"---\n{line}\n---\nText\n")
    assert len(read.memories) == 1
    assert read.problems


def test_enormous_number_in_front_matter_does_no_harm(tmp_path: Path) -> None:
    """Python refuses to write integers of many digits in decimal, which would break every later step."""
    read = notes_in(tmp_path, a=f"---\nn: 0x{'f' * 5000}\ntitle: 0x{'f' * 5000}\ncreated: 0x{'f' * 5000}\n---\nT\n")
    assert [memory.content for memory in read.memories] == ["a\n\nT"]
    assert "a number has more than 4,300 digits" in read.problems[0].reason


def test_permalink_of_another_note_is_not_taken_twice(tmp_path: Path) -> None:
    """Two memories of one id would overwrite each other."""
    text = "---\npermalink: same\n---\nText "
    read = notes_in(tmp_path, a=text + "A", b=text + "B")
    assert read.memories[0].id == "same"
    assert read.memories[1].id != "same"
    assert "another note" in read.notices[0].reason


def test_links_and_hidden_files_are_not_followed(tmp_path: Path) -> None:
    """A folder that somebody sent must not make us read the rest of the disk."""
    outside, sent = tmp_path / "outside", tmp_path / "sent"
    (outside / "deep").mkdir(parents=True)
    (sent / ".hidden").mkdir(parents=True)
    (outside / "secret.md").write_text("Secret")
    (sent / ".hidden" / "x.md").write_text("Hidden")
    (sent / "link.md").symlink_to(outside / "secret.md")
    (sent / "folder").symlink_to(outside)
    read = notes_in(sent, mine="Mine")
    assert [memory.title for memory in read.memories] == ["mine"]
    assert [problem.path for problem in read.problems] == ["folder", "link.md"]


def test_a_folder_that_may_not_be_looked_into_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To pass over it would lose what is in it, and say nothing."""
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def look(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", look)
    read = notes_in(tmp_path, good="Good")
    assert [(problem.path, problem.reason) for problem in read.problems] == [
        ("closed", "cannot be read: Permission denied; make it readable")
    ]


def test_unreadable_notes_are_problems(tmp_path: Path) -> None:
    """A pipe would hold up the import for ever; another encoding has a remedy."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    read = notes_in(tmp_path, good="Good", empty=" \n")
    assert [memory.title for memory in read.memories] == ["good"]
    assert [problem.path for problem in read.problems] == ["latin.md", "pipe.md"]
    assert [notice.path for notice in read.notices] == ["empty.md"]


def test_folder_of_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    """A missing folder, a file in its place, and a folder of nothing but broken notes."""
    with pytest.raises(NotFoundError):
        markdown.read_basic_memory(tmp_path / "none")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UsageError, match="is not a folder"):
        markdown.read_basic_memory(tmp_path / "bad.md")
    with pytest.raises(UsageError, match=r"bad\.md: bad\.md is not UTF-8"):
        markdown.read_basic_memory(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "- [" * 20_000,
        "- [a] " + "#t " * 20_000,
        "- [a] " + "(" * 20_000,
        "[[" * 20_000,
        "- x " + "[[a" * 20_000,
        "- [a] x" + " " * 50_000 + "y",
        "- [a] x" + " (" * 20_000 + ")",
        "# x" + " " * 50_000 + "y\nz",
        "# x" + " #" * 20_000 + " y\nz",
        "- a\n" + " " * 50_000 + "- b\n",
        "#" * 50_000,
        "```\n" * 5_001,
        "- " * 20_000,
        " \n\t\n" * 20_000 + "x",
    ],
)
def test_text_that_was_made_to_hold_us_up_is_read_like_any_other(tmp_path: Path, text: str) -> None:
    """Every pattern here must be done with a long line in about the time it takes to read it."""
    assert notes_in(tmp_path, a=text).memories


def test_notes_of_any_kind_are_kept_whole(tmp_path: Path) -> None:
    """In a vault of somebody's own, a list entry in brackets is a list entry."""
    (tmp_path / "daily").mkdir()
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "hidden.md").write_text("not a note")
    (tmp_path / "Coffee.md").write_text(
        "---\ntags: [drink]\n---\nSee [[2026-03-01|that day]]. #hot\n\n- [fact] 94 °C\n"
    )
    (tmp_path / "daily" / "2026-03-01.md").write_text(
        "Tried [beans](../Coffee.md#taste), `[[no link]]` and [web](https://a.md)."
    )
    read = markdown.read_notes(tmp_path)
    assert read.problems == ()
    coffee, day = read.memories
    assert coffee.content == "Coffee\n\nSee [[2026-03-01|that day]]. #hot\n\n- [fact] 94 °C"
    assert coffee.tags == ("drink", "hot")
    assert (coffee.created_at, day.created_at) == (None, 1772323200.0)
    assert read.links == (Link(coffee.id, day.id, "links_to"), Link(day.id, coffee.id, "links_to"))


def test_links_that_lead_nowhere_are_counted_beyond_ten(tmp_path: Path) -> None:
    """A vault holds hundreds of them; they must not bury what matters."""
    (tmp_path / "a.md").write_text(" ".join(f"[[N{number}]]" for number in range(14)))
    notices = markdown.read_notes(tmp_path).notices
    assert len(notices) == 11
    assert notices[-1].reason == "4 more links lead to no note here"


def test_a_name_that_only_looks_like_a_day_is_a_name(tmp_path: Path) -> None:
    """A template must not hold up the import of a whole vault."""
    for name in ("0000-00-00 Template.md", "2026-02-30.md", "2026-05-01.md"):
        (tmp_path / name).write_text(f"What {name} says.\n")
    read = markdown.read_notes(tmp_path)
    assert read.problems == ()
    assert [each.created_at for each in read.memories] == [None, None, 1777593600.0]
