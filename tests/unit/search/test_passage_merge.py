"""How passages of one text are put together, and where one may be cut."""

from __future__ import annotations

import pytest

from commonplace.search.context import Piece, is_cut_by_lines, says_nothing, shortened, together
from commonplace.types import Hit


def count(text: str) -> int:
    return len(text.split())


def piece(text: str, lines: tuple[int, int] | None, number: int | None = None, *, is_cut: bool = False) -> Piece:
    hit = Hit(id=text, owner_id="a", kind="artifact", text=text, score=0.9, signals={}, lines=lines)
    return Piece(hit, text, number, is_cut)


def test_blank_lines_alone_between_two_passages_are_nothing_left_out() -> None:
    """Methods of a class are a line apart, functions two."""
    first, second = piece("def one(): ...", (1, 1), 7), piece("def two(): ...", (4, 4), 8)
    assert together([first, second]) == "def one(): ...\n\n\ndef two(): ..."
    far = piece("def two(): ...", (9, 9), 8)
    assert together([first, far]) == "def one(): ...\n\n\ndef two(): ..."
    near = piece("def two(): ...", (2, 2), 8)
    assert together([first, near]) == "def one(): ...\ndef two(): ..."


def test_a_passage_between_two_others_is_left_out_however_few_lines_it_has() -> None:
    first, third = piece("one", (1, 1), 7), piece("three", (3, 3), 9)
    assert together([first, third]) == "one\n\n[…]\n\nthree"
    assert together([piece("one", (1, 1)), piece("three", (3, 3))]) == "one\n\n[…]\n\nthree"


def test_what_comes_after_the_place_of_a_cut_is_left_out() -> None:
    first = piece("One.", (1, 9), 7, is_cut=True)
    assert together([first, piece("Two.", (10, 11), 8)]) == "One.\n\n[…]\n\nTwo."


def test_passages_without_lines_are_paragraphs_where_they_are_next_to_each_other() -> None:
    first, second = piece("One.", None, 7), piece("Two.", None, 8)
    assert together([first, second]) == "One.\n\nTwo."
    assert together([second, piece("Nine.", None, 15)]) == "Two.\n\n[…]\n\nNine."


def test_what_two_passages_share_stands_once_by_lines_or_in_the_middle_of_one() -> None:
    lines = piece("one\ntwo\nthree", (1, 3), 7), piece("three\nfour", (3, 4), 8)
    assert together(lines) == "one\ntwo\nthree\nfour"
    within = piece("A long line goes on and on", (1, 1), 7), piece("goes on and on, and ends.", (1, 1), 8)
    assert together(within) == "A long line goes on and on, and ends."
    cjk = (
        piece("第一句话在这里结束。第二句话也在这里结束。", (1, 1), 7),
        piece("第二句话也在这里结束。第三句。", (1, 1), 8),
    )
    assert together(cjk) == "第一句话在这里结束。第二句话也在这里结束。第三句。"


def test_words_that_happen_to_repeat_are_not_taken_for_an_overlap_within_a_line() -> None:
    first, second = piece("on the way to the end", (1, 1), 7), piece("end of it", (1, 1), 8)
    assert together([first, second]) == "on the way to the end end of it"


def test_equal_lines_that_are_apart_are_no_overlap() -> None:
    """A closing brace ends one function and begins nothing."""
    first, second = piece("f {\n}", (1, 2), 7), piece("}\ng", (5, 6), 9)
    assert together([first, second]) == "f {\n}\n\n[…]\n\n}\ng"


def test_passages_without_lines_share_nothing_where_others_stand_between_them() -> None:
    """Each part of a list may end and begin with the same line."""
    first, last = piece("one\nThank you very much.", None, 7), piece("Thank you very much.\nnine", None, 9)
    assert together([first, last]) == "one\nThank you very much.\n\n[…]\n\nThank you very much.\nnine"


@pytest.mark.parametrize(
    ("text", "room", "piece"),
    [
        ("Dr. Who came. He went.", 4, "Dr. Who came."),
        ("Take tea, e.g. Assam. Then wait.", 5, "Take tea, e.g. Assam."),
        ("Do it so:\n\n1. Boil water. \n2. Pour it slowly.", 7, "Do it so:\n\n1. Boil water."),
        ("First.\n\n## Second\n\nIts text.", 3, "First."),
        ("First.\n\nSecond\n======\n\nIts text.", 3, "First."),
        ("First.\n\n======\nSecond\n======\n\nIts text.", 4, "First."),
        ("First.\n\n.. _second:\n\nSecond\n------\n\nIts text.", 5, "First."),
        ("他说：「好。」然后走了很远很远的路 终于", 1, "他说：「好。」"),
        ("Do so:\n\n```sh\nmake tea. now\nmake more\n```\n\nThen rest.", 6, "Do so:"),
        ("Do so:\n\n```sh\nmake tea\n```\n\nThen rest. And wait.", 8, "Do so:\n\n```sh\nmake tea\n```\n\nThen rest."),
        ("## Only a heading\n\nText that is long.", 4, ""),
        ("- one item\n- another item", 4, "- one item"),
    ],
)
def test_prose_ends_with_a_sentence_and_not_with_a_heading(text: str, room: int, piece: str) -> None:
    by_signs = "。" in text
    assert shortened(text, room if not by_signs else 8, len if by_signs else count) == piece


def test_code_ends_with_a_line_wherever_a_full_stop_stands() -> None:
    code = 'def f():\n    """Do it. Well."""\n    return g. h\n'
    assert shortened(code, 5, count, is_code=True) == 'def f():\n    """Do it. Well."""'
    assert shortened(code, 4, count, is_code=True) == "def f():"
    assert shortened(code, 1, count, is_code=True) == ""


@pytest.mark.parametrize(
    ("text", "path", "is_silent"),
    [
        ("# Title", "a.md", True),
        ("---\ntags: [tea]\n---\n\n# Title", "a.md", True),
        ("---\ntags: [tea]\n---\n\n# Title\n\nText.", "a.md", False),
        ("=====\nTitle\n=====", "a.txt", True),
        (".. _here:\n\nTitle\n-----", "a.rst", True),
        ("Title\n-----\n\nText.", "a.rst", False),
        ("Text.", "a.md", False),
        ("class Settings:", "a.py", True),
        ("func main() {", "a.go", True),
        ("# a comment", "a.py", False),
        ("x = 1", "a.py", False),
        ("class Settings:\n    x = 1", "a.py", False),
        ("Text.", "", False),
    ],
)
def test_a_heading_without_what_stands_under_it_says_nothing(text: str, path: str, *, is_silent: bool) -> None:
    assert says_nothing(text, path) == is_silent


@pytest.mark.parametrize(
    ("path", "is_source"),
    [("src/a.py", True), ("Makefile", True), ("docs/a.md", False), ("docs/a", False), ("", False), ("a.toml", True)],
)
def test_code_and_configuration_are_cut_by_lines(path: str, *, is_source: bool) -> None:
    assert is_cut_by_lines(path) == is_source
