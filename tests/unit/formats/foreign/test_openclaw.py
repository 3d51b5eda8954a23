"""Workspaces of OpenClaw, whole and broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import UsageError
from commonplace.formats.foreign import markdown

LONG_TERM = """# Long-term memory

## Decisions
- Use Postgres for [[billing]] #infra
  - because everyone knows it
- Deploy on Mondays

## Preferences

The user likes short answers.
They read them on a phone.

---
<!-- nothing -->
```
make test
```
"""


def workspace(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    return place


def test_long_term_memory_is_cut_into_its_entries(tmp_path: Path) -> None:
    """One fact, one memory: it is found, faded and forgotten by itself."""
    read = markdown.read_openclaw(workspace(tmp_path, {"MEMORY.md": LONG_TERM}))
    assert [memory.content for memory in read.memories] == [
        "Use Postgres for [[billing]] #infra\n  - because everyone knows it",
        "Deploy on Mondays",
        "The user likes short answers.\nThey read them on a phone.",
        "```\nmake test\n```",
    ]
    first = read.memories[0]
    assert (first.tier, first.title, first.category, first.source) == ("long", "Decisions", "decision", "MEMORY.md")
    assert (first.tags, first.entities, first.created_at) == (("infra",), ("billing",), None)
    assert first.metadata == {"line": 4, "headings": ["Long-term memory", "Decisions"]}
    assert read.memories[2].category == "preference"
    assert [(notice.path, notice.reason) for notice in read.notices] == [
        ("MEMORY.md:14", "is a comment and was skipped")
    ]


def test_day_files_give_their_entries_their_date_and_hour(tmp_path: Path) -> None:
    """The file's name is all that tells when something happened."""
    read = markdown.read_openclaw(
        workspace(
            tmp_path,
            {
                "memory/2024-03-01.md": "# Friday\n- Woke up\n## 14:30 Review\nAll fine\n## 25:99 Odd\n1. Late\n",
                "memory/2024-02-30.md": "- Never\n",
                "memory/2024-03-02-standup.md": "- Stood\n",
                "memory/projects/site.md": "- Uses Hugo\n",
            },
        )
    )
    assert [(memory.content, memory.tier, memory.created_at) for memory in read.memories] == [
        ("Never", "", None),
        ("Woke up", "short", 1709251200.0),
        ("All fine", "short", 1709303400.0),
        ("Late", "short", 1709251200.0),
        ("Stood", "short", 1709337600.0),
        ("Uses Hugo", "", None),
    ]
    assert [(notice.path, notice.reason) for notice in read.notices] == [
        ("memory/2024-02-30.md", "is named after 2024-02-30, which is not a date; its entries have none")
    ]


def test_ids_are_the_same_at_every_reading_and_distinct(tmp_path: Path) -> None:
    """The same line may well stand in two days' files, and twice in one."""
    day = "- Ran tests\n- Ran tests\n"
    place = workspace(tmp_path, {"memory/2024-03-01.md": day, "memory/2024-03-02.md": day})
    first = markdown.read_openclaw(place)
    assert first == markdown.read_openclaw(place)
    assert len({memory.id for memory in first.memories}) == 4
    workspace(tmp_path, {"memory/2024-03-01.md": "- Began\n" + day})
    assert {memory.id for memory in first.memories} < {memory.id for memory in markdown.read_openclaw(place).memories}


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A workspace that somebody sent must not make us read the rest of the disk."""
    outside = workspace(tmp_path / "outside", {"MEMORY.md": "- Secret", "memory/2024-03-01.md": "- Secret"})
    sent = workspace(tmp_path / "sent", {"memory/2024-03-01.md": "- Mine"})
    (sent / "MEMORY.md").symlink_to(outside / "MEMORY.md")
    (sent / "memory" / "2024-03-02.md").symlink_to(outside / "memory" / "2024-03-01.md")
    read = markdown.read_openclaw(sent)
    assert [memory.content for memory in read.memories] == ["Mine"]
    assert [problem.path for problem in read.problems] == ["MEMORY.md", "memory/2024-03-02.md"]
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "memory").symlink_to(outside / "memory")
    with pytest.raises(UsageError, match="links are not followed"):
        markdown.read_openclaw(linked)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("a <!-- b --> c <!-- d", "a  c <!-- d"),
        ("<!-- x --> y", "y"),
        ("<!--" * 50_000 + "z", "<!--" * 50_000 + "z"),
        ("- " + "[[" * 50_000, "[[" * 50_000),
    ],
)
def test_comments_are_left_out_and_half_of_one_is_text(tmp_path: Path, text: str, content: str) -> None:
    """Also in a line that was made to take a pattern hours."""
    assert markdown.read_openclaw(workspace(tmp_path, {"MEMORY.md": text})).memories[0].content == content


def test_broken_files_are_problems(tmp_path: Path) -> None:
    """One bad day does not spoil the year."""
    place = workspace(tmp_path, {"MEMORY.md": "---\na: [1\n---\n- Kept\n"})
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2024-03-01.md").write_bytes(b"\xff")
    read = markdown.read_openclaw(place)
    assert [memory.content for memory in read.memories] == ["Kept"]
    assert [problem.path for problem in read.problems] == ["MEMORY.md", "memory/2024-03-01.md"]
