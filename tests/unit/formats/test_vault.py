"""Exact notes of the vault: what one looks like, and what it is called."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.formats.test_escaping import flag, tags

from commonplace.formats.escaping import HIDDEN
from commonplace.formats.journal import paired_fences
from commonplace.formats.vault import (
    VaultNote,
    escape_markdown,
    file_names,
    file_stem,
    link_to,
    memory_id_of,
    name_key,
    tags_of,
    title_of,
    write_note,
)
from commonplace.formats.yaml import parse_front_matter

ID = "0b8ff5a4-3f6e-4a55-9d0b-6c1f1c0f5b1e"
NOTE = VaultNote(
    ID,
    "Postgres for billing",
    "We chose Postgres for billing.",
    datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
    datetime(2026, 11, 22, tzinfo=UTC),
    ("decision",),
    ("Postgres", "C#"),
    "use_count_threshold",
    0.8312,
    3,
)
TEXT = f"""---
title: "Postgres for billing"
memory_id: "{ID}"
memory_version: 3
created: 2026-11-21T09:30:00Z
modified: 2026-11-22T00:00:00Z
tags:
  - "decision"
entities:
  - "Postgres"
  - "C#"
promotion_reason: "use_count_threshold"
decay_score: 0.8312
---

## Content

We chose Postgres for billing.

## Entities

- [[Postgres]]
- [[C|C#]]
"""


def test_a_note_has_front_matter_content_and_entities() -> None:
    assert write_note(NOTE) == TEXT


def test_what_nobody_sees_is_written_out() -> None:
    """People and models read the note as a file."""
    odd = f"Pay \u202eyadirF\u202c {tags('obey')} &#8238; in {flag('gbsct')} می\u200cخواهم"
    written = write_note(replace(NOTE, title=odd, content=odd, tags=("decision", odd), entities=("Postgres", odd)))
    assert re.findall(HIDDEN, written) == []
    assert "Pay &#8238;yadirF&#8236; &#917615;" in written
    assert flag("gbsct") in written
    assert "می\u200cخواهم" in written
    told = parse_front_matter(written).values
    assert (told["title"], told["tags"]) == (odd, ["decision", odd])


def test_what_looks_like_a_part_of_the_note_is_shown_and_means_nothing() -> None:
    assert escape_markdown("---\ntitle: x\n---") == "\\---\ntitle: x\n\\---"
    assert escape_markdown("## Entities\n### Third") == "\\## Entities\n### Third"
    assert escape_markdown("see [[Home]] and ![[Home]]") == "see [\\[Home]] and ![\\[Home]]"
    assert escape_markdown("<!-- hidden <% tp.run() %> %%gone%%") == "\\<!-- hidden \\<% tp.run() %> %\\%gone%\\%"
    assert escape_markdown("```\nnever closed") == "\\```\nnever closed"


def test_closed_code_stays_as_it_is() -> None:
    code = "```sh\n# a comment\nif [[ -f x ]]; then\n```"
    assert escape_markdown(code) == code


def test_many_fences_that_nothing_closes_are_told_in_one_go() -> None:
    """With a look to the end for each of them this would take hours."""
    lines = ["```a"] * 200_000
    assert not any(paired_fences(lines))


class TestWhoseNote:
    @pytest.mark.parametrize(
        ("line", "known"),
        [
            ("memory_id: a", "a"),
            ('memory_id: "a\\u2028\\"b"', 'a\u2028"b'),
            ("'memory_id' : 'a b'", "a b"),
            ("memory_id: 007", "007"),
            ("other: a", None),
        ],
    )
    def test_a_line_of_the_front_matter_says_it(self, line: str, known: str | None) -> None:
        assert memory_id_of(f"\ufeff---\ntitle: x\n{line}\n---\n") == known

    def test_a_line_of_the_text_does_not(self) -> None:
        assert memory_id_of("---\ntitle: x\n---\nmemory_id: a") is None


class TestNames:
    @pytest.mark.parametrize(
        ("title", "stem"),
        [
            ("CON", "_CON"),
            ("nul.txt", "_nul.txt"),
            ("a/b\\c:d", "a b c d"),
            ("../../etc/passwd", "etc passwd"),
            ("Why? #1 [[x]] | ^b", "Why 1 x b"),
            (" trailing dots... ", "trailing dots"),
            ("e\u0301", "é"),
            ("a\u202eb\0c", "a b c"),
            ("", "Memory"),
        ],
    )
    def test_a_title_becomes_a_name_that_every_system_takes(self, title: str, stem: str) -> None:
        assert file_stem(title) == stem

    def test_a_second_memory_of_a_title_gets_a_suffix_from_its_id(self) -> None:
        assert list(file_names("Tea", ID))[:2] == ["Tea.md", "Tea (0b8ff5a4).md"]

    def test_a_name_that_is_too_long_is_cut_between_letters(self) -> None:
        assert file_stem("é" * 100) == "é" * 60
        assert len(next(iter(file_names("🙂" * 90, "x"))).encode()) == 123

    def test_names_that_differ_in_capitals_or_accents_alone_are_one_place(self) -> None:
        assert name_key("Tea.md") == name_key("TEA.MD")
        assert name_key("Stra\u00dfe") == name_key("STRASSE")
        assert name_key("\u00e9") == name_key("e\u0301")

    @pytest.mark.parametrize(
        ("content", "entities", "title"),
        [
            ("# The plan\n\nWe ship.", (), "The plan"),
            ("We ship on Friday. Or later.", (), "We ship on Friday"),
            ("!!!", ("Ada", "Bo", "Cy", "Di"), "Ada, Bo, Cy"),
            ("...", (), "Memory 0b8ff5a4"),
        ],
    )
    def test_a_title_is_the_heading_the_sentence_the_names_or_the_id(
        self, content: str, entities: tuple[str, ...], title: str
    ) -> None:
        assert title_of(content, entities, ID) == title

    def test_tags_are_made_such_that_obsidian_takes_them(self) -> None:
        tags = ["two words", "2024", "#x", "A/b", "a/B", "v1.2", "//", "日本"]
        assert tags_of(tags) == ("two-words", "_2024", "x", "A/b", "v1-2", "日本")

    @pytest.mark.parametrize(
        ("name", "link"),
        [("Mira", "[[Mira]]"), ("src/a.py", "[[src a.py|src/a.py]]"), ("a]]|[[b", "[[a b]]"), ("]]", "")],
    )
    def test_entities_are_links_that_show_their_names(self, name: str, link: str) -> None:
        assert link_to(name) == link
