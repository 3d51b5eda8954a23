"""Patterns: in which forms a text is looked for, and that one pass finds them all and nothing else."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.permissions import without_rights

from commonplace.erasure.scan import CONTENT, DIGEST, ID, LABEL, PIECE, VECTOR, Collector, Patterns, files_below, scan

UUID = "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"


def collected(*texts: str) -> Patterns:
    collector = Collector()
    for text in texts:
        collector.add_content(text)
    return collector.patterns()


def test_a_text_is_looked_for_as_a_whole_by_line_and_by_sentence() -> None:
    """A page of a database or a Markdown file may hold a part of it alone."""
    assert set(collected("the first line\nA second one. A third one.")) == {
        b"the first line\nA second one. A third one.",
        b"the first line\na second one. a third one.",
        b"the first line\\nA second one. A third one.",
        b"the first line",
        b"A second one.",
        b"a second one.",
        b"A third one.",
        b"a third one.",
    }


def test_a_text_is_looked_for_as_json_escapes_it() -> None:
    """Logs, receipts of other programs and metadata are JSON, with and without other alphabets."""
    assert {each.decode() for each in collected('Grüße an "Jürgen"')} == {
        'Grüße an "Jürgen"',
        'grüße an "jürgen"',
        'Gr\\u00fc\\u00dfe an \\"J\\u00fcrgen\\"',
        'Grüße an \\"Jürgen\\"',
    }


def test_a_long_text_is_looked_for_in_pieces_that_cover_it() -> None:
    """What is left of it may begin anywhere: any stretch of two pieces' length holds one whole piece."""
    text = "".join(random.Random(1).choices("abcdefgh ", k=1000)).replace("  ", "a ").strip()
    patterns = collected(text)
    assert max(map(len, patterns)) == PIECE
    for begin in range(0, len(text) - 2 * PIECE, 7):
        assert patterns.find(text[begin : begin + 2 * PIECE].encode())


def test_a_text_that_stands_everywhere_by_chance_is_not_looked_for() -> None:
    """Three letters are in any large file; the caller learns that there was such a text."""
    collector = Collector()
    collector.add_content("yes")
    collector.add_label("a b")
    collector.add_array(bytes(256), VECTOR)
    assert (len(collector.patterns()), collector.too_short) == (0, 1)


def test_an_id_is_looked_for_as_text_and_as_the_database_packs_it() -> None:
    """A UUID is sixteen bytes there."""
    collector = Collector()
    collector.add_id(UUID)
    collector.add_digest("ab" * 32)
    patterns = collector.patterns()
    kinds = {each: patterns.kind(each) for each in patterns}
    assert kinds == {UUID.encode(): ID, b"ab" * 32: DIGEST}


def test_the_same_bytes_have_the_kind_that_came_first() -> None:
    """A tag that is also the text is the text."""
    collector = Collector()
    collector.add_content("release notes")
    collector.add_label("release notes")
    assert collector.patterns().kind(b"release notes") == CONTENT
    assert len(collector.patterns().of_kinds(LABEL)) == 0
    assert len(collector.patterns().of_kinds(CONTENT, shortest=14)) == 0


@given(
    st.lists(st.binary(min_size=8, max_size=60), min_size=1, max_size=40, unique=True),
    st.binary(max_size=400),
    st.randoms(use_true_random=False),
)
def test_all_that_stands_in_the_data_is_found_and_nothing_else(
    wanted: list[bytes], data: bytes, chance: random.Random
) -> None:
    """Against the plain search for each of them."""
    for each in wanted[::2]:
        place = chance.randint(0, len(data))
        data = data[:place] + each + data[place:]
    patterns = Patterns(dict.fromkeys(wanted, CONTENT))
    assert patterns.find(data) == {each for each in wanted if each in data}
    assert all(data[place : place + len(each)] == each for place, each in patterns.matches(data))


def test_files_of_any_size_are_looked_through_and_links_are_not_followed(tmp_path: Path) -> None:
    """A pattern may lie across the blocks in which a file is read; what a link leads to is not of the store."""
    patterns = collected("We keep the spare key under the third stone")
    pattern = b"We keep the spare key under the third stone"
    outside, inside = tmp_path / "outside", tmp_path / "store"
    (inside / "deep").mkdir(parents=True)
    outside.write_bytes(pattern)
    (inside / "link").symlink_to(outside)
    (inside / "deep" / "large").write_bytes(bytes((1 << 23) - 20) + pattern + b"x" * 100)
    (inside / "empty").write_bytes(b"")
    names = files_below(inside)
    assert names == ["deep/large", "empty"]
    result = scan(inside, [*names, "vanished"], patterns)
    assert result.sizes == {"deep/large": (1 << 23) - 20 + len(pattern) + 100, "empty": 0}
    assert result.hits == {"deep/large": {pattern}}
    assert result.unread == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Nobody can tell what it holds, and the receipt must not say that it holds nothing."""
    (tmp_path / "directory").mkdir()
    result = scan(tmp_path, ["directory"], collected("something long enough"))
    assert result.unread == [("directory", "it cannot be read (Is a directory)")]


def test_files_of_a_directory_that_may_be_listed_and_not_entered_are_none() -> None:
    """Asking what they are is refused there, which ends no run."""
    place = Path(tempfile.mkdtemp())  # one that other users can look into
    place.chmod(0o755)
    (place / "open.md").touch()
    (place / "closed").mkdir()
    (place / "closed" / "a.md").touch()
    (place / "closed").chmod(0o444)
    try:
        with without_rights():
            assert files_below(place) == ["open.md"]
    finally:
        (place / "closed").chmod(0o755)
        shutil.rmtree(place)
