"""What a drawing says: names that fit, times as people write them, and how much was left out."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, nan

import pytest

from commonplace.errors import UsageError
from commonplace.formats.drawing import Drawing, Edge, Node, trim
from commonplace.formats.drawing_colours import PALETTE, colours_of
from commonplace.formats.drawing_words import (
    caption,
    moment,
    name_of,
    plain,
    sentence,
    shorten,
    two_lines,
    verb,
    when,
    width,
)
from commonplace.types.graph import ENTITY_TYPES


def at(year: int, month: int = 1, day: int = 1, hour: int = 0) -> float:
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


def fact(start: float | None = None, end: float | None = None, *, is_disputed: bool = False) -> Edge:
    return Edge("a", "b", "USES", valid_from=start, valid_to=end, is_disputed=is_disputed)


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        (fact(), ""),
        (fact(at(2026, 3)), "since 2026-03-01"),
        (fact(at(2024), at(2026)), "2024-01-01 – 2026-01-01"),
        (fact(None, at(2025)), "until 2025-01-01"),
        (fact(at(2026, 3, 14), at(2026, 4)), "2026-03-14 – 2026-04-01"),
        (fact(is_disputed=True), "disputed"),
        (fact(at(2026, 3), is_disputed=True), "since 2026-03-01, disputed"),
    ],
)
def test_a_fact_says_when_it_holds(edge: Edge, words: str) -> None:
    assert when(edge) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (at(2026), "2026-01-01"),
        (at(2026, 3), "2026-03-01"),
        (at(2026, 3, 14), "2026-03-14"),
        (at(2026, 1, 1, 9), "2026-01-01"),
        (0.0, "1970-01-01"),
        (at(476, 9, 4), "0476-09-04"),
        (-1e300, "0001-01-01"),
        (1e300, "9999-12-31"),
        (inf, ""),
        (-inf, ""),
        (nan, ""),
        (None, ""),
    ],
)
def test_a_moment_is_said_as_its_day(seconds: float | None, words: str) -> None:
    assert moment(seconds) == words


def test_a_relation_is_said_in_small_letters_and_a_users_own_as_it_is_written() -> None:
    assert verb(Edge("a", "b", "DEPENDS_ON")) == "depends on"
    assert verb(Edge("a", "b", "maintainedBy")) == "maintainedBy"
    assert verb(Edge("a", "b", "is in\nthe  care of")) == "is in the care of"


def test_a_fact_without_a_sentence_is_said_by_its_relation() -> None:
    assert sentence(Edge("a", "b", "USES", "auth.ts uses\ntoken.ts"), "auth.ts", "token.ts") == "auth.ts uses token.ts"
    assert sentence(Edge("a", "b", "PART_OF"), "auth.ts", "api") == "auth.ts part of api"


def test_what_cannot_be_seen_is_shown_as_a_replacement_character() -> None:
    assert plain("  a\x00b\tc\r\nd  ") == "a b c d"
    assert plain("gpj\u202eexe \u200bx\ud800\ufffe") == "gpj\ufffdexe \ufffdx\ufffd\ufffd"
    assert plain("👩\u200d👧") == "👩\u200d👧"


def test_an_entity_without_a_name_is_called_by_its_id() -> None:
    assert name_of(Node("e1", "Ada")) == "Ada"
    assert name_of(Node("e1", " \n")) == "e1"
    assert name_of(Node("", "")) == "no name"


def test_a_long_name_keeps_its_start_and_a_path_its_end() -> None:
    assert shorten("short", 100, 12) == "short"
    assert shorten("Use Postgres over MySQL for billing", 100, 12) == "Use Postgres…"
    assert shorten("src/billing/adapters/postgres_writer.py", 150, 12) == "…/postgres_writer.py"
    assert shorten("src/" + "x" * 40, 100, 12) == "…" + "x" * 12
    assert shorten("anything", 1, 12) == "…"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("short", ("short",)),
        ("Globex Corporation of Great Britain", ("Globex Corporation of", "Great Britain")),
        ("the decision to use Postgres instead of MySQL", ("the decision to use", "Postgres instead of…")),
        ("src/store/backends/postgres/postgres_writer.py", ("…/backends/postgres/", "postgres_writer.py")),
        ("ירושלים של זהב ושל נחושת ושל אור", ("ירושלים של זהב ושל", "נחושת ושל אור")),
    ],
)
def test_a_long_name_has_two_lines_and_each_ends_where_a_word_does(name: str, lines: tuple[str, ...]) -> None:
    assert two_lines(name, 150, 12) == lines


def test_no_line_is_wider_than_there_is_room_for() -> None:
    for name in ("x" * 60, "e\u0301" * 60, "語" * 60, "a_b/" * 40, " ".join("ab" * 40)):
        lines = two_lines(name, 150, 12)
        assert len(lines) == 2
        assert all(0 < width(line, 12) <= 150 for line in lines)
        assert "".join(lines).count("e") == "".join(lines).count("\u0301")


def test_what_is_cut_of_a_name_from_right_to_left_is_missing_on_its_left() -> None:
    """Without the mark behind it a viewer puts the ellipsis on the right, where such a name begins."""
    assert shorten("ירושלים של זהב", 70, 12) == "ירושלים…\u200f"
    assert shorten("ירושלים auth.ts and more", 120, 12) == "ירושלים auth.ts…"
    assert width("…\u200f", 12) == width("…", 12)


def test_a_name_is_cut_with_the_marks_of_its_letters() -> None:
    letter = "e\u0301"
    for room in range(20, 100):
        cut = shorten(letter * 30, float(room), 12)
        assert cut.count("e") == cut.count("\u0301")


def test_wide_letters_take_more_room() -> None:
    assert width("", 10) == 0
    assert width("iii", 10) < width("nnn", 10) < width("MMM", 10) < width("語語語", 10)
    assert width("e\u0301", 10) == width("e", 10)


NODES = (Node("far", "far", distance=2), Node("near", "near"), Node("c", "c", is_centre=True, distance=0))


def test_what_is_more_than_a_person_can_read_is_left_out_the_farthest_first() -> None:
    edges = (Edge("c", "far", "A"), Edge("c", "near", "B", is_past=True), Edge("near", "c", "C"))
    trimmed = trim(Drawing(NODES, edges), most_nodes=2, most_edges=1)
    assert [node.id for node in trimmed.nodes] == ["c", "near"]
    assert [edge.type for edge in trimmed.edges] == ["C"]
    assert (trimmed.more_nodes, trimmed.more_edges) == (1, 2)


def test_facts_that_end_nowhere_are_left_out_and_counted() -> None:
    trimmed = trim(Drawing(NODES, (Edge("c", "nobody", "A"), Edge("x", "y", "B"), Edge("c", "c", "C"))))
    assert [edge.type for edge in trimmed.edges] == ["C"]
    assert trimmed.more_edges == 2


def test_trimming_twice_is_trimming_once() -> None:
    once = trim(Drawing(NODES, (Edge("c", "far", "A"), Edge("c", "x", "B")), more_nodes=5), most_nodes=2)
    assert once.more_nodes == 6
    assert trim(once, most_nodes=2) == once


def test_two_nodes_with_one_id_are_refused() -> None:
    with pytest.raises(UsageError, match="a drawing has 2 nodes with the id 'c'; give it once"):
        trim(Drawing((*NODES, Node("c", "again"))))


@pytest.mark.parametrize(
    ("drawing", "words"),
    [
        (Drawing(()), "0 entities, 0 facts"),
        (Drawing(NODES[:1], (Edge("far", "far", "A"),)), "1 entity, 1 fact"),
        (Drawing(NODES, as_of=at(2026, 6)), "as of 2026-06-01 · 3 entities, 0 facts"),
        (Drawing(NODES, more_nodes=37), "3 entities, 0 facts · and 37 more entities, not drawn"),
        (
            Drawing(NODES, more_nodes=1, more_edges=1200),
            "3 entities, 0 facts · and 1 more entity and 1,200 more facts, not drawn",
        ),
        (Drawing(NODES, more_edges=1, is_capped=True), "3 entities, 0 facts · and 1 more fact, not drawn"),
        (Drawing(NODES, is_capped=True), "3 entities, 0 facts · and more, not drawn"),
    ],
)
def test_a_caption_says_when_it_is_and_what_is_not_drawn(drawing: Drawing, words: str) -> None:
    assert caption(drawing) == words


def test_a_type_has_the_same_colour_in_every_drawing() -> None:
    """So that two drawings can be laid side by side."""
    assert len(PALETTE) == len(ENTITY_TYPES)
    assert colours_of(["person"]) == {"person": colours_of(ENTITY_TYPES)["person"]}
    assert list(colours_of(["tool", "file"])) == ["file", "tool"]


def test_a_users_own_type_takes_a_colour_that_is_free() -> None:
    assert colours_of(["recipe", "file", "wine"]) == {"file": 0, "recipe": 1, "wine": 2}
    assert colours_of([*ENTITY_TYPES, "recipe"])["recipe"] == 0
