"""What an artifact is said to be, from its path and text."""

from __future__ import annotations

import pytest

from commonplace.ingest.metadata import describe, find_references, shorten
from commonplace.text.languages import language_of
from commonplace.types import Owner


def described(path: str, text: str, known: tuple[str, ...] = ()) -> tuple[Owner, tuple[str, ...]]:
    owner = Owner(id="a", kind="artifact", path=path)
    return describe(owner, text, language_of(path.rpartition("/")[2]) or "text", frozenset(known))


def about(path: str, text: str = "", known: tuple[str, ...] = ()) -> Owner:
    return described(path, text, known)[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".aiwg/requirements/use-cases/UC-001.md", "requirement"),
        ("requirements/login.md", "requirement"),
        ("docs/requirements/login.md", "requirement"),
        ("notes/REQ-12-speed.md", "requirement"),
        (".aiwg/architecture/sad.md", "architecture"),
        ("docs/adr/0001-use-sqlite.md", "architecture"),
        ("docs/ADR-003.md", "architecture"),
        ("architecture/model.yaml", "architecture"),
        ("test/unit/login.test.ts", "test"),
        ("src/auth/login.spec.ts", "test"),
        ("pkg/server_test.go", "test"),
        ("src/test_login.py", "test"),
        ("src/LoginTest.java", "test"),
        ("tests/README.md", "test"),
        ("tests/data/helper.py", "test"),
        ("spec/models/user.rb", "test"),
        ("src/auth/login-service.ts", "code"),
        ("src/contest.py", "code"),
        ("src/requirements/parser.py", "code"),
        ("docs/conf.py", "code"),
        ("Makefile", "code"),
        ("requirements.txt", "code"),
        ("requirements/dev.txt", "code"),
        ("docs/guide.md", "documentation"),
        ("README.md", "documentation"),
        ("src/notes.md", "documentation"),
        ("specs/wire.md", "documentation"),
        (".aiwg/research/findings/REF-008.md", "research"),
        (".github/agents/reviewer.yaml", "documentation"),
        (".github/agents/reviewer.agent.md", "documentation"),
        (".claude/plugins/lint/commands/fix.toml", "documentation"),
        ("src/ask.prompt.yml", "documentation"),
        (".github/workflows/agents.yml", "code"),
        (".claude/skills/pdf/fill.py", "code"),
        ("src/agents/config.yaml", "code"),
        ("docs/research/ranking.rst", "research"),
    ],
)
def test_type_follows_the_path(path: str, expected: str) -> None:
    """Agents ask for requirements, code or tests, not for directories."""
    assert about(path).type == expected


def test_front_matter_type_wins() -> None:
    """Who wrote the file knows best."""
    assert about("docs/a.md", "---\ntype: Requirement\n---\n").type == "requirement"


def test_an_unknown_front_matter_type_is_reported_and_ignored() -> None:
    """Site generators use the same key for other things."""
    description, faults = described("docs/a.md", "---\ntype: post\nphase: soon\n---\n")
    assert (description.type, description.phase) == ("documentation", "")
    assert [fault.partition(";")[0] for fault in faults] == [
        "front matter type 'post' is not one of requirement, architecture, test, code, documentation, research",
        "front matter phase 'soon' is not one of inception, elaboration, construction, transition",
    ]


def test_a_decision_record_is_known_by_its_sections() -> None:
    """Nygard's and MADR's layouts are the same everywhere."""
    assert about("notes/db.md", "# Use SQLite\n\n## Context\nx\n\n## Decision\ny\n").type == "architecture"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.md", "---\nphase: Construction\n---\n", "construction"),
        (".aiwg/elaboration/a.md", "", "elaboration"),
        ("inception/transition/a.md", "", "transition"),
        ("docs/inception.md", "", ""),
    ],
)
def test_phase_comes_from_front_matter_or_the_nearest_directory(path: str, text: str, expected: str) -> None:
    """A file's own name is no phase."""
    assert about(path, text).phase == expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.md", "---\ntitle: Given\n---\n# Heading\n", "Given"),
        ("a.md", "\n# The `first` [heading](x.md) #\n", "The first heading"),
        ("a.md", "Title\n=====\n\n## Later\n", "Title"),
        ("a.rst", "Title\n*****\n", "Title"),
        ("src/login-service.ts", "// # no heading\n", "login-service.ts"),
        ("docs/plain.md", "No heading.\n", "plain.md"),
    ],
)
def test_title_is_given_or_the_first_heading_or_the_file_name(path: str, text: str, expected: str) -> None:
    """The title is a field of its own in the index."""
    assert about(path, text).title == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("[security, '#login', security, 7]", ("security", "login", "7")),
        ("security, sign in", ("security", "sign in")),
        ("security login", ("security", "login")),
        ("{a: b}", ()),
    ],
)
def test_tags_are_read_as_people_write_them(tags: str, expected: tuple[str, ...]) -> None:
    """Lists, commas and blanks are all in use."""
    assert about("a.md", f"---\ntags: {tags}\n---\n").tags == expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.md", "---\nsummary: Given  here\n---\n\nText.\n", "Given here"),
        (
            "a.md",
            "# T\n[![badge](x)](y)\n\n<!-- c -->\n\nThe **first**\n[paragraph](x.md).\n\nNext.",
            "The first paragraph.",
        ),
        ("a.rst", "Title\n=====\n\n.. note::\n\nSee :doc:`guide <x>` first.\n", "See guide first."),
        ("a.py", '#!/usr/bin/env python\n# Copyright X\n"""Say hello.\n\nMore."""\n', "Say hello."),
        (
            "a.ts",
            "/* Copyright X, all rights reserved */\n/**\n * Logs people in and out.\n */\n",
            "Logs people in and out.",
        ),
        ("a.go", "// Package auth logs people\n// in and out.\npackage auth\n", "Package auth logs people in and out."),
        ("a.md", "# Only a heading\n", ""),
        ("a.ts", "/**/\n", ""),
        ("a.md", "# T\nWhat it is.\n## Install\nRun it.\n", "What it is."),
        ("a.md", "What it is,\nin two lines.\nInstall\n-------\nRun it.\n", "What it is, in two lines."),
        ("a.md", "What it is:\n```sh\nmake\n```\n", "What it is:"),
        ("a.md", "What it is: #1 of its kind.\n- one\n", "What it is: #1 of its kind. - one"),
    ],
)
def test_summary_is_given_or_the_first_paragraph(path: str, text: str, expected: str) -> None:
    """It says in a sentence what the file is for."""
    assert about(path, text).summary == expected


def test_a_summary_is_cut_after_a_word_at_500_characters() -> None:
    """The contract sets the limit; half a word helps nobody."""
    summary = about("a.md", "word " * 200).summary
    assert len(summary) <= 500
    assert summary.endswith(" word…")
    assert shorten("abc def", 7) == "abc def"
    assert shorten("abc defg", 7) == "abc…"
    assert shorten("abcdefghij", 5) == "abcd…"


def test_broken_front_matter_is_a_fault_and_the_text_is_described_all_the_same() -> None:
    """A typing mistake must not hide a document."""
    description, faults = described("docs/a.md", "---\ntitle: [x\n---\n# Heading\n\nText.\n")
    assert (description.title, description.summary) == ("Heading", "Text.")
    assert faults[0].startswith("front matter cannot be read")


def test_mentions_and_links_become_paths_of_the_project() -> None:
    """References connect a requirement with its design and its code."""
    text = (
        "See @src/auth/login.ts, @.aiwg/research/REF-008.md. Mail me@example.com, ask @someone.\n"
        "[a](other.md#part), [b](../src/auth/login.ts), [web](https://x.org), ![i](i.png), [gone](gone.md)\n"
    )
    known = ("src/auth/login.ts", "docs/other.md", "docs/self.md")
    assert about("docs/self.md", text, known).references == (
        "src/auth/login.ts",
        ".aiwg/research/REF-008.md",
        "docs/other.md",
        "gone.md",
    )


def test_python_imports_become_files_where_there_are_such() -> None:
    """The standard library is everybody's and says nothing."""
    text = (
        "import os, sys\nfrom . import store\nfrom .store import x\nfrom ..app.ids import y\n"
        "import numpy.linalg\nfrom app.ids import z\n"
    )
    known = ("src/app/store.py", "src/app/ids.py", "src/app/__init__.py")
    assert about("src/app/main.py", text, known).references == (
        "src/app/__init__.py",
        "src/app/store.py",
        "src/app/ids.py",
        "numpy.linalg",
    )


def test_a_project_below_the_root_is_a_place_to_import_and_link_from() -> None:
    """Several projects in one directory, or one that was unpacked there, keep their own links."""
    known = {"vendor/lib/pkg/__init__.py", "vendor/lib/pkg/tools.py", "vendor/lib/docs/ref/a.txt"}
    text = "from pkg.tools import x\nimport tools\nimport pkg\n"
    assert find_references(text, "vendor/lib/pkg/b.py", "python", known) == (
        "vendor/lib/pkg/tools.py",
        "tools",
        "vendor/lib/pkg/__init__.py",
    )
    text = "See :doc:`/ref/a`.\n"
    path = "vendor/lib/docs/topics/b.txt"
    assert find_references(text, path, "restructuredtext", known) == ("vendor/lib/docs/ref/a.txt",)


def test_script_imports_become_files_where_there_are_such() -> None:
    """The extension is left out in most of them."""
    text = (
        "import { a } from './store';\nimport '../lib/index';\nconst b = require('lodash');\nexport * from './part'\n"
    )
    known = ("src/auth/store.ts", "src/lib/index.js", "src/auth/part/index.ts")
    assert about("src/auth/main.ts", text, known).references == (
        "src/auth/store.ts",
        "src/lib/index.js",
        "lodash",
        "src/auth/part/index.ts",
    )


def test_includes_of_other_languages_are_references() -> None:
    """A C file names its headers, a Go file its packages."""
    assert about("src/a.c", '#include <stdio.h>\n#include "b.h"\n', ("src/b.h",)).references == ("src/b.h",)
    assert about("a.rs", "use crate::store::Store;\n").references == ("crate::store::Store",)
