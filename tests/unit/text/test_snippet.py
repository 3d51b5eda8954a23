"""Snippets: the part of a passage that answers, with the matching words marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.snippet import Layout, Snippet, snippet


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.emphasis]


def test_short_text_is_shown_whole_with_its_matching_words() -> None:
    """Inflected words match as the search matches them."""
    found = snippet("The loginService checks\n  passwords.", "login password")
    assert found.text == "The loginService checks passwords."
    assert marked(found) == ["loginService", "passwords"]


def test_window_with_most_different_words_wins_over_one_word_repeated() -> None:
    """Ten times `token` says less than `token` beside `refresh`."""
    text = "token " * 10 + "filler " * 60 + "the token is refreshed hourly " + "filler " * 60
    found = snippet(text, "token refresh", limit=100)
    assert marked(found) == ["token", "refreshed"]
    assert found.text.startswith("…")
    assert found.text.endswith("…")


def test_window_begins_with_the_sentence_of_the_match() -> None:
    """A sentence is read from its beginning."""
    text = "Something else entirely. " * 20 + "Sessions expire nightly. " + "More of the same here. " * 20
    assert snippet(text, "sessions", limit=80).text.startswith("…Sessions expire nightly.")


def test_code_keeps_its_lines_and_loses_shared_indentation() -> None:
    """Python without its lines is no Python."""
    found = snippet("    def login(self):\n\n        return 1\n", "login", layout="code")
    assert found.text == "def login(self):\n    return 1"


def test_marks_of_headings_and_rules_do_not_clutter_prose() -> None:
    """A rule under a heading is drawing, not text."""
    assert snippet("# Auth\n\nText\n----\nmore", "auth").text == "Auth · Text more"


def test_pairs_of_ideographs_are_marked() -> None:
    """The index knows Chinese by pairs of characters; a whole run would mark the sentence."""
    assert marked(snippet("我们选择了数据库作为存储", "数据库")) == ["数据库"]


@pytest.mark.parametrize("query", ["", "the of and", "!!!"])
def test_query_without_terms_shows_the_beginning(query: str) -> None:
    """There is nothing to look for, so the text begins at its beginning."""
    found = snippet("word " * 200, query, limit=50)
    assert found.text.startswith("word word")
    assert found.emphasis == ()


@given(st.text(max_size=600), st.text(max_size=40), st.integers(10, 400), st.sampled_from(["line", "text", "code"]))
def test_snippet_is_never_too_long_and_marks_lie_inside(text: str, query: str, limit: int, layout: Layout) -> None:
    """Any text, any query: the limit holds and every mark is a piece of the snippet."""
    found = snippet(text, query, limit=limit, layout=layout)
    assert len(found.text) <= limit
    ends = [0, *(place for mark in found.emphasis for place in mark), len(found.text)]
    assert ends == sorted(ends)
