"""Where a text is cut, by kind of text."""

from __future__ import annotations

import pytest

from commonplace.errors import UsageError
from commonplace.text.chunk import chunk
from commonplace.text.languages import Language

WORDS = "word " * 50


def count(text: str) -> int:
    return len(text.split())


def cut(text: str, language: Language, max_tokens: int = 512, overlap: int = 50) -> list[tuple[int, int, str]]:
    pieces = chunk(text, language=language, max_tokens=max_tokens, overlap=overlap, count_tokens=count)
    return [(piece.start_line, piece.end_line, piece.heading) for piece in pieces]


def test_markdown_is_cut_at_headings() -> None:
    """A section is what an author meant to be read together."""
    text = f"# Guide\n\n{WORDS}\n\n## Install\n\n{WORDS}\n\nUse `it`\n========\n{WORDS}\n"
    assert cut(text, "markdown") == [(1, 3, "Guide"), (5, 7, "Install"), (9, 11, "Use it")]


def test_a_hash_in_fenced_code_is_no_heading() -> None:
    """Shell comments in examples would otherwise cut them apart."""
    text = f"# A\n```sh\n# not a heading\n```\n{WORDS}\n"
    assert cut(text, "markdown") == [(1, 5, "A")]


def test_front_matter_is_no_heading() -> None:
    """Its closing line looks like the underline of a title."""
    text = f"---\ntitle: X\n---\n{WORDS}\n# Real\n{WORDS}\n"
    assert cut(text, "markdown") == [(1, 4, ""), (5, 6, "Real")]


def test_tiny_sections_are_joined_and_take_the_heading_of_the_largest() -> None:
    """A heading with five words under it finds nothing and explains nothing."""
    text = f"# Title\n\n## One\nfew words\n\n## Two\n{WORDS}\n\n# Next\n{WORDS}\n## Last\ntiny\n"
    assert cut(text, "markdown") == [(1, 7, "Two"), (9, 12, "Next")]


def test_a_tiny_section_is_not_joined_to_the_next_chapter() -> None:
    """It belongs to what it stands in."""
    text = f"## Part\n{WORDS}\n## End\ntiny\n# New chapter\n{WORDS}\n"
    assert cut(text, "markdown") == [(1, 4, "Part"), (5, 6, "New chapter")]


def test_restructuredtext_is_cut_at_underlined_titles() -> None:
    """Levels come from the order of the styles, so a part under a title is deeper."""
    text = f"=====\nTitle\n=====\n\n{WORDS}\n\nPart\n----\n\n{WORDS}\n"
    assert cut(text, "restructuredtext") == [(1, 5, "Title"), (7, 10, "Part")]


def test_restructuredtext_labels_stay_with_the_title_below_them() -> None:
    """They name the section that follows; at the end of the one before they would lead a search there."""
    two = f".. _two:\n.. setting:: TWO\n\n``TWO``\n=======\n\n{WORDS}\n\n.. note::\n   a\n\n"
    text = f"One\n===\n\n{WORDS}\n\n{two}Three\n=====\n{WORDS}"
    assert cut(text, "restructuredtext") == [(1, 4, "One"), (6, 15, "TWO"), (17, 19, "Three")]


def test_roles_are_not_part_of_a_heading() -> None:
    """A heading is shown to people, and its words are searched."""
    text = f":mod:`django.forms` and :ref:`the docs <docs>`\n{'=' * 60}\n\n{WORDS}"
    assert cut(text, "restructuredtext") == [(1, 4, "django.forms and the docs")]


def test_configuration_is_cut_at_tables() -> None:
    """A table is looked for by its name."""
    text = "[project]\n" + "a = 1\n" * 20 + "[tool.x]\n" + "b = 2\n" * 20
    assert cut(text, "config") == [(1, 21, "project"), (22, 42, "tool.x")]


PYTHON = f'''"""Module."""
import os

LIMIT = 1

# Says why.
@cached
def first():
    """{WORDS}"""
    return 1


class Service:
    """{WORDS}"""

    async def login(self):
        """{WORDS}"""

    def out(self):
        """{WORDS}"""


main()
'''


def test_python_is_cut_at_functions_and_methods_with_their_comments_and_decorators() -> None:
    """A decorator or a comment above a function says what it is."""
    assert cut(PYTHON, "python", overlap=5) == [
        (1, 10, "first"),
        (13, 14, "Service"),
        (16, 17, "Service.login"),
        (19, 23, "Service.out"),
    ]


def test_python_that_does_not_parse_is_cut_by_its_layout() -> None:
    """Half-written files and other versions' syntax are part of real projects."""
    assert [heading for *_, heading in cut(PYTHON + "\nprint 'old'\n", "python", overlap=5)] == [
        "first",
        "Service",
        "Service.login",
        "Service.out",
    ]


TYPESCRIPT = f"""import {{ a }} from './a';

/** Logs in.
 * {WORDS}
 */
export async function login(name: string): Promise<void> {{
  if (name) {{
    return;
  }}
}}

export class LoginService extends Base {{
  private store: Store; // {WORDS}

  constructor(store: Store) {{
    // {WORDS}
  }}

  async logout(id: string) {{
    // {WORDS}
    call(id);
  }}
}}

export const handler = async (event) => {{
  // {WORDS}
}};
"""


def test_typescript_is_cut_at_functions_classes_and_members() -> None:
    """The brace languages have no parser here; their layout is enough."""
    assert cut(TYPESCRIPT, "code", overlap=5) == [
        (1, 10, "login"),
        (12, 13, "LoginService"),
        (15, 17, "LoginService.constructor"),
        (19, 23, "LoginService.logout"),
        (25, 27, "handler"),
    ]


@pytest.mark.parametrize(
    ("source", "headings"),
    [
        ("func (s *Server) Start(a int) error {\n\tx()\n}\n\nfunc main() {\n\ty()\n}\n", ["Server.Start", "main"]),
        (
            "pub struct A;\n\nimpl<T> Read for A {\n    pub fn read(&self) {\n        x()\n    }\n}\n",
            ["A", "A", "A.read"],
        ),
        ("module M\n  class Dog\n    def bark!\n      x\n    end\n  end\nend\n", ["M", "M.Dog", "M.Dog.bark!"]),
        ("static int\nadd(int a, int b)\n{\n  return a;\n}\nvoid go(void) {\n  x();\n}\n", ["", "add", "go"]),
        ("public class A {\n    public int size() {\n        return n(1);\n    }\n}\n", ["A", "A.size"]),
        ("CREATE TABLE users (\n  id int\n);\ncreate index i on users (id);\n", ["users", "i"]),
        ("describe('login', () => {\n  it('works', () => {\n    x()\n  })\n})\n", ["login", "login.works"]),
    ],
)
def test_declarations_are_found_in(source: str, headings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Headings of code are what a person would search for."""
    monkeypatch.setattr("commonplace.text.chunk.SMALL_TOKENS", 0)
    assert [heading for *_, heading in cut(source, "code")] == headings


def test_a_section_over_the_limit_is_cut_between_paragraphs_and_overlaps() -> None:
    """A sentence at the cut is found whole; a cut between paragraphs hurts least."""
    text = "a a a\na a a\n\nb b b\nb b b\n\nc c c\nc c c\n"
    assert cut(text, "text", max_tokens=9, overlap=3) == [(1, 2, ""), (2, 5, ""), (5, 8, "")]


def test_structure_needs_no_overlap() -> None:
    """What a heading begins is understood without what stood above."""
    text = f"# A\n{WORDS}\n# B\n{WORDS}\n"
    assert [piece.text.count("word") for piece in chunk(text, language="markdown", count_tokens=count)] == [50, 50]


def test_fenced_code_that_fits_is_not_cut() -> None:
    """Half an example is no example."""
    code = "```\n" + "x = 1\n" * 10 + "```"
    text = f"{'a ' * 20}\n{code}\n{'b ' * 20}\n"
    pieces = chunk(text, language="markdown", max_tokens=40, overlap=4, count_tokens=count)
    assert any(code in piece.text for piece in pieces)


def test_one_line_over_the_limit_is_cut_after_sentences_and_keeps_its_line_number() -> None:
    """A paragraph is often one line."""
    text = "\n" + "One two three four. " * 40
    pieces = chunk(text, max_tokens=60, overlap=8, count_tokens=count)
    assert len(pieces) > 1
    assert {(piece.start_line, piece.end_line) for piece in pieces} == {(2, 2)}
    assert all(piece.text.rstrip().endswith(".") for piece in pieces)


def test_a_gigantic_line_without_blanks_is_cut_in_linear_time() -> None:
    """A bundle or a base64 blob must not stall indexing: the calls made grow with the length alone."""
    counted = 0

    def counting(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return 1 if text else 0

    pieces = chunk("x" * 2_000_000, count_tokens=counting)
    assert max(len(piece.text) for piece in pieces) <= 4096 + 8
    assert counted < 10_000_000


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int) -> None:
    """They would never end."""
    with pytest.raises(UsageError, match="impossible"):
        chunk("text", max_tokens=size, overlap=overlap, count_tokens=count)
