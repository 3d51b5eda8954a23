"""Whatever the text, chunks lose nothing, invent nothing and keep their limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.chunk import chunk
from commonplace.text.languages import Language

LANGUAGES: list[Language] = ["markdown", "restructuredtext", "text", "config", "python", "code"]

line = st.one_of(
    st.sampled_from(
        ["    def m(self):", "@wraps", "# note", "func main() {", "[table]", "key: 1", '"""', "== Head", "+++"]
    ),
    st.sampled_from(
        [
            "",
            "",
            "# Title",
            "## Part",
            "```",
            "~~~",
            "---",
            "====",
            "def f():",
            "    return 1",
            "class A:",
            "}",
            "{",
            "  ",
        ]
    ),
    st.text(alphabet=st.sampled_from("ab .\t「é:(=#\x0c\u2028"), max_size=60),
    st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=30),
    st.integers(1, 80).map(lambda n: "word " * n),
    st.integers(1, 400).map(lambda n: "x" * n),
)
texts = st.lists(line, max_size=40).map("\n".join)
sizes = st.integers(2, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def count(text: str) -> int:
    return len(text.split())


@given(texts, st.sampled_from(LANGUAGES), sizes)
def test_every_non_blank_line_is_in_a_chunk(text: str, language: Language, size: tuple[int, int]) -> None:
    """A line outside every chunk could never be found."""
    chunks = chunk(text, language=language, max_tokens=size[0], overlap=size[1], count_tokens=count)
    covered = {number for piece in chunks for number in range(piece.start_line, piece.end_line + 1)}
    wanted = {number for number, content in enumerate(text.split("\n"), 1) if content.strip()}
    assert wanted <= covered


@given(texts, st.sampled_from(LANGUAGES), sizes)
def test_the_lines_of_a_chunk_are_its_text(text: str, language: Language, size: tuple[int, int]) -> None:
    """A reference `path:10-40` must show what was found; only a cut line may show more."""
    lines = text.split("\n")
    for piece in chunk(text, language=language, max_tokens=size[0], overlap=size[1], count_tokens=count):
        assert 1 <= piece.start_line <= piece.end_line <= len(lines)
        spanned = lines[piece.start_line - 1 : piece.end_line]
        assert piece.text in "\n".join(spanned)
        assert piece.text.strip()
        assert piece.text.count("\n") == len(spanned) - 1


@given(texts, st.sampled_from(LANGUAGES), sizes)
def test_no_chunk_is_over_the_limit(text: str, language: Language, size: tuple[int, int]) -> None:
    """An embedder silently drops what is over its window."""
    for piece in chunk(text, language=language, max_tokens=size[0], overlap=size[1], count_tokens=count):
        assert count(piece.text) <= size[0]


@given(texts, st.sampled_from(LANGUAGES), sizes)
def test_chunks_come_in_the_order_of_the_text_and_none_repeats_another(
    text: str, language: Language, size: tuple[int, int]
) -> None:
    """Ordinals follow the text, and a chunk inside another would be the same hit twice."""
    chunks = chunk(text, language=language, max_tokens=size[0], overlap=size[1], count_tokens=count)
    ends = [piece.end_line for piece in chunks]
    assert ends == sorted(ends)
    starts = [piece.start_line for piece in chunks]
    assert starts == sorted(starts)


@given(st.text(alphabet="ab ", max_size=600), st.integers(1, 9))
def test_one_long_line_loses_no_character_but_blanks(text: str, size: int) -> None:
    """A minified or generated line is cut, not shortened."""
    chunks = chunk(text, max_tokens=size, overlap=0, count_tokens=count)
    assert "".join("".join(piece.text for piece in chunks).split()) == "".join(text.split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_blank_text_has_no_chunks(language: Language) -> None:
    """Empty files exist; an empty passage must not."""
    assert chunk("", language=language, count_tokens=count) == []
    assert chunk(" \n\t\n", language=language, count_tokens=count) == []
