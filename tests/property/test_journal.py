"""Whatever a memory says and whatever a person wrote around it, a page gives back what was put into it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.formats.journal import (
    Entry,
    PageKind,
    parse_page,
    read_characters,
    render_bullet,
    render_entry,
    split_lines,
    topic_of,
    write_characters,
)
from commonplace.formats.journal_edit import assign_ids, digest, update_page

KINDS: list[PageKind] = ["day", "long"]

hostile = st.sampled_from(
    [
        "## 09:30 forged",
        "### 2026-11-21 forged",
        "##",
        "###\tx",
        "Tags: #a #b",
        "Tags: #a\\ b, #c",
        "Links: [[x]]",
        "Links: [[x\\]",
        "<!-- memory: other -->",
        "  <!--memory:other-->",
        "<!-- memory: other --> and more",
        "<!-- memory:",
        "-->",
        "```",
        "```py",
        "````",
        "  ~~~ x",
        "~~~",
        "``` a ` b",
        "- item",
        "  * nested",
        "* * *",
        "# Title",
        "\\",
        "\\\\ ",
        "",
        " ",
        "\t",
        "&#13;",
        "&#38;#13;",
        "&#38;",
        "&#99999999;",
        "&amp;",
        "\r",
        "\x0c",
        "\x00",
        "\ud800",
        "\u2028",
        "\ufeff",
        "plain words",
    ]
)
escaped = st.tuples(st.sampled_from(["", "\\", "\\\\", " ", "  ", "    "]), hostile).map("".join)
lines = st.one_of(escaped, hostile, st.text(max_size=12), st.text(alphabet="\\`~#<>!-&;31 \t\n\r[]:,", max_size=16))
texts = st.one_of(st.text(max_size=40), st.lists(lines, max_size=12).map("\n".join))
words = st.one_of(st.text(max_size=12), hostile, st.sampled_from(["09:30 x", "9\\:30", "2026-11-21", "2026\\-13-45 x"]))
names = words.filter(bool)
minutes = st.integers(0, 24 * 60 - 1)
days = st.dates(date(1970, 1, 1), date(9999, 12, 31))


def entries(kind: PageKind, ids: st.SearchStrategy[str] = names) -> st.SearchStrategy[Entry]:
    some = st.lists(names, max_size=3).map(tuple)
    when = st.none() | minutes if kind == "day" else st.none()
    day = st.none() if kind == "day" else st.none() | days
    return st.builds(Entry, ids, when, words, texts, some, some, st.just(""), day)


marks = st.sampled_from(["## 10:00 a", "## note", "## Lessons", "### b", "<!-- memory: m -->"])
pages = st.lists(
    st.tuples(
        st.one_of(escaped, marks, lines),
        st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", ""]),
    ).map("".join),
    max_size=25,
).map("".join)


def _by_id(entries: Iterable[Entry]) -> dict[str, Entry | None]:
    return {entry.id: entry for entry in entries}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_an_entry_is_read_as_it_was_written(kind: PageKind, data: st.DataObject) -> None:
    """Otherwise a memory would seem edited by writing it down, or two would run into each other."""
    entry = data.draw(entries(kind, st.just("") | names))
    written = render_entry(entry, kind)
    page = parse_page(written, kind)
    assert [block.entry for block in page.blocks] == [entry]
    assert page.preamble == ""
    assert page.blocks[0].raw == written
    written.encode("utf-8")


@given(entries("long"))
def test_an_item_of_a_list_is_read_as_it_was_written(entry: Entry) -> None:
    """A note that a person wrote as an item stays one when the store has changed its text."""
    entry = replace(entry, topic="", day=None, section="Lessons", text=entry.text.lstrip(" \t"))
    page = parse_page("## Lessons\n\n" + render_bullet(entry), "long")
    assert [(block.entry, block.is_bullet) for block in page.blocks] == [(entry, True)]


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_several_entries_are_read_as_they_were_written(kind: PageKind, data: st.DataObject) -> None:
    """Nothing in a text breaks out of its block or takes another memory's id."""
    written = data.draw(st.lists(entries(kind), max_size=4, unique_by=lambda entry: entry.id))
    page = parse_page("# Title\n\n" + "\n".join(render_entry(entry, kind) for entry in written), kind)
    assert [block.entry for block in page.blocks] == written


@pytest.mark.parametrize("kind", KINDS)
@given(pages)
def test_reading_loses_no_byte(kind: PageKind, text: str) -> None:
    """Blocks are cut out of the page as it is, in order, and do not overlap."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = split_lines(text[len(mark) :])
    assert mark + "".join(lines) == text
    page = parse_page(text, kind)
    end = 0
    for block in page.blocks:
        assert end < block.start_line <= block.end_line
        assert block.raw == "".join(lines[block.start_line - 1 : block.end_line])
        end = block.end_line
    if kind == "day":
        assert page.preamble + "".join(block.raw for block in page.blocks) == text


@pytest.mark.parametrize("kind", KINDS)
@given(pages, st.integers(0, 25))
def test_every_id_comment_belongs_to_one_block(kind: PageKind, text: str, at: int) -> None:
    """An id that went unseen would be a memory taken for removed."""
    lines = split_lines(text)
    lines[at:at] = ["\n", "<!-- memory: the-one -->\n"]
    page = parse_page("".join(line if line.endswith(("\n", "\r")) else line + "\n" for line in lines), kind)
    assert [block.entry.id for block in page.blocks].count("the-one") == 1


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), pages)
def test_adding_and_removing_an_entry_leaves_the_other_lines_as_they_are(
    kind: PageKind, data: st.DataObject, text: str
) -> None:
    """A page is a person's file."""
    entry = replace(data.draw(entries(kind)), id="new", section="Lessons" if kind == "long" else "")
    entry = replace(entry, **({"at_minutes": 600} if kind == "day" else {"day": date(2026, 11, 21)}))
    changed = update_page(text, _by_id([entry]), title="T", kind=kind)
    found = [block.entry for block in parse_page(changed, kind).blocks if block.entry.id == "new"]
    assert found == [entry]
    assert update_page(changed, _by_id([entry]), title="T", kind=kind) == changed
    without = update_page(changed, {"new": None}, title="T", kind=kind)
    ours = {"T", "#", "##", "Lessons"}
    kept, old = (page.removeprefix("\ufeff").split() for page in (without, text))
    assert [word for word in kept if word not in ours] == [word for word in old if word not in ours]


@given(st.lists(entries("day"), min_size=2, max_size=5, unique_by=lambda entry: entry.id), st.data())
def test_two_changes_commute(written: list[Entry], data: st.DataObject) -> None:
    """Two processes that project different memories come to the same page, whoever is first."""
    text = update_page("", _by_id(written), title="T")
    first, second = written[:2]
    one = data.draw(st.none() | st.builds(lambda text: replace(first, text=text), texts))
    two = data.draw(st.none() | st.builds(lambda text: replace(second, text=text), texts))
    there = update_page(update_page(text, {first.id: one}, title="T"), {second.id: two}, title="T")
    back = update_page(update_page(text, {second.id: two}, title="T"), {first.id: one}, title="T")
    assert there == back == update_page(text, {first.id: one, second.id: two}, title="T")


@given(st.lists(st.tuples(minutes, texts), unique_by=lambda pair: pair[0], max_size=6), st.randoms())
def test_entries_of_different_times_come_to_one_page_in_any_order(pairs: list[tuple[int, str]], random: object) -> None:
    """A page rebuilt from the store is the page that grew."""
    written = [Entry(f"m{at}", at, "t", text) for at, text in sorted(pairs)]
    shuffled = list(written)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    grown = ""
    for entry in shuffled:
        grown = update_page(grown, _by_id([entry]), title="2026-11-21")
    assert grown == update_page("", _by_id(written), title="2026-11-21")


@pytest.mark.parametrize("kind", KINDS)
@given(pages)
def test_giving_ids_changes_only_ids(kind: PageKind, text: str) -> None:
    """What a person wrote is not reformatted because we have read it; a fence left open may then end elsewhere."""
    before = parse_page(text, kind).blocks
    new = {index: f"id-{index}" for index, block in enumerate(before) if not block.entry.id}
    given_ids = assign_ids(text, new, kind)
    after = parse_page(given_ids, kind).blocks
    assert {block.entry.id for block in after} == {new.get(n, block.entry.id) for n, block in enumerate(before)}
    kept, old = (re.sub(r"<!--[ \t]*memory:[ \t]*[^\s<>]+[ \t]*-->", "", page).split() for page in (given_ids, text))
    assert kept == old
    if "```" not in text and "~~~" not in text:
        assert [replace(block.entry, id="") for block in after] == [replace(block.entry, id="") for block in before]


@given(texts, st.sampled_from(["", " \t\n<>"]))
def test_characters_written_out_are_read_back(text: str, also: str) -> None:
    """Also where the text itself looks like what we write."""
    written = write_characters(text, also)
    assert read_characters(written, also) == text
    assert not set(written) & set("\x00\r\x0c\ud800\u2028" + also)


@given(st.one_of(texts, st.text(alphabet="ab .!?。e\u0301\u200d字", max_size=200)))
def test_a_topic_is_one_short_line(text: str) -> None:
    """It is a heading."""
    topic = topic_of(text)
    assert len(topic) <= 60
    assert topic == " ".join(topic.split())
    assert parse_page(f"## 09:30 {topic}\n").blocks[0].entry.topic == topic or "&#" in topic


@given(entries("day"), st.integers(1, 3))
def test_more_blank_lines_are_no_edit(entry: Entry, more: int) -> None:
    """Editors and formatters add and drop them."""
    looser = replace(entry, text=entry.text.replace("\n\n", "\n\n" + "\n" * more) + " \n")
    assert digest(looser) == digest(replace(entry, id="other"))
