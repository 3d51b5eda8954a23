"""Exact pages: how memories look as Markdown, and what is read from what people write."""

from __future__ import annotations

from datetime import date

import pytest

from commonplace.formats.journal import (
    SECTIONS,
    Entry,
    PageKind,
    category_of,
    parse_page,
    render_bullet,
    render_entry,
    section_of,
    topic_of,
)

ID = "0b8ff5a4-3f6e-4a55-9d0b-6c1f1c0f5b1e"

DAY = f"""# 2026-11-21

A line of my own.

## 09:30 Postgres for billing

We chose Postgres for billing.

Tags: #decision #billing
Links: [[invoices]]
<!-- memory: {ID} -->

## Call the bank

Before noon.
## 9:45 Just a title
"""

LONG = """# Memory

## Decisions

### 2026-11-21 Postgres for billing

We chose Postgres for billing.

Tags: #billing
<!-- memory: a -->

## preferences

What I like.

- Tabs over spaces
- Tea,
  not coffee
  <!-- memory: b -->
* * *

## Contacts

### Caroline

Knows the bank.
"""


def test_an_entry_has_heading_text_tags_links_and_id() -> None:
    """The contract fixes this shape; other programs read it."""
    entry = Entry(ID, 570, "Postgres for billing", "We chose Postgres.", ("decision", "billing"), ("invoices", "x"))
    assert render_entry(entry) == (
        "## 09:30 Postgres for billing\n\nWe chose Postgres.\n\n"
        f"Tags: #decision #billing\nLinks: [[invoices]] [[x]]\n<!-- memory: {ID} -->\n"
    )


def test_what_an_entry_has_not_is_not_written() -> None:
    """Empty lines of marks are noise."""
    assert render_entry(Entry("", None, "Note", "Text")) == "## Note\n\nText\n"
    assert render_entry(Entry("a", 0, "Note", "Text")) == "## 00:00 Note\n\nText\n\n<!-- memory: a -->\n"


def test_a_long_entry_begins_with_its_date() -> None:
    """A reader of MEMORY.md wants to know since when."""
    entry = Entry("a", None, "Tabs", "Tabs over spaces.", section="Preferences", day=date(2026, 11, 21))
    assert render_entry(entry, "long") == "### 2026-11-21 Tabs\n\nTabs over spaces.\n\n<!-- memory: a -->\n"


def test_a_days_page_is_read_with_the_notes_a_person_added() -> None:
    """A heading is enough for a note, with or without a time; what stands before the first is no note."""
    page = parse_page(DAY)
    assert page.preamble == "# 2026-11-21\n\nA line of my own.\n\n"
    assert [block.entry for block in page.blocks] == [
        Entry(
            ID,
            570,
            "Postgres for billing",
            "We chose Postgres for billing.",
            ("decision", "billing"),
            ("invoices",),
        ),
        Entry("", None, "Call the bank", "Before noon."),
        Entry("", 585, "Just a title", "Just a title"),
    ]
    assert [(block.start_line, block.end_line) for block in page.blocks] == [(5, 12), (13, 15), (16, 16)]
    assert page.preamble + "".join(block.raw for block in page.blocks) == DAY


def test_the_long_page_is_read_by_sections_with_the_items_of_lists() -> None:
    """People write preferences as a list; an item is as much a note as a heading with a paragraph."""
    page = parse_page(LONG, "long")
    assert [(section.name, section.start_line, section.end_line) for section in page.sections] == [
        ("Decisions", 3, 11),
        ("Preferences", 12, 21),
        ("Contacts", 22, 26),
    ]
    assert [block.entry for block in page.blocks] == [
        Entry(
            "a",
            None,
            "Postgres for billing",
            "We chose Postgres for billing.",
            ("billing",),
            (),
            "Decisions",
            date(2026, 11, 21),
        ),
        Entry("", None, "", "Tabs over spaces", section="Preferences"),
        Entry("b", None, "", "Tea,\nnot coffee", section="Preferences"),
        Entry("", None, "Caroline", "Knows the bank.", section="Contacts"),
    ]
    assert [block.is_bullet for block in page.blocks] == [False, True, True, False]
    assert page.blocks[2].raw == "- Tea,\n  not coffee\n  <!-- memory: b -->\n"


def test_lines_of_a_text_that_look_like_marks_get_a_backslash() -> None:
    """As in Markdown, so that a page reads as it was meant, in any viewer."""
    text = "## 10:00 x\n### y\nTags: #a\nTags: are words\nLinks: [[b]]\n<!-- memory: other -->\n\\## z\n# H"
    written = render_entry(Entry("a", 0, "t", text))
    assert written.split("\n")[2:-3] == [
        r"\## 10:00 x",
        "### y",
        r"\Tags: #a",
        "Tags: are words",
        r"\Links: [[b]]",
        r"\<!-- memory: other -->",
        r"\\## z",
        "# H",
    ]


def test_in_the_long_page_third_level_headings_of_a_text_get_one_too() -> None:
    """There they begin entries."""
    assert render_entry(Entry("a", None, "t", "### y"), "long") == "### t\n\n\\### y\n\n<!-- memory: a -->\n"


def test_code_in_a_text_stays_as_it_is_and_an_open_fence_is_closed_off() -> None:
    """Only what would end the block for us is marked in code."""
    text = "```sh\n## comment\nTags: #a\n<!-- memory: b -->\n```\n~~~ open\nmore"
    written = render_entry(Entry("a", 0, "t", text))
    assert "```sh\n## comment\nTags: #a\n\\<!-- memory: b -->\n```\n\\~~~ open\nmore\n" in written


def test_blank_lines_at_the_ends_of_a_text_and_characters_no_file_should_hold_are_written_out() -> None:
    """A page is safe to print on a terminal and to save in any editor."""
    entry = Entry("a", 0, " t\n", "\n x\r\n\x1b[0m\x00\ud800&#13;\n ")
    assert render_entry(entry).split("\n")[:6] == [
        "## 00:00 &#32;t&#10;",
        "",
        "\\",
        " x&#13;",
        "&#27;[0m&#0;&#55296;&#38;#13;",
        "\\ ",
    ]
    assert render_entry(Entry("a", 0, "t", "")) == "## 00:00 t\n\n\\\n\n<!-- memory: a -->\n"


def test_tags_links_and_ids_cannot_end_their_line_or_their_marks() -> None:
    """They come from callers and from other programs' exports."""
    entry = Entry("a b-->\n<!-- memory: c", 0, "t", "x", ("two words", "c#", "a,b", "\\"), ("a]]b", "n\nm"))
    assert render_entry(entry).split("\n")[4:7] == [
        r"Tags: #two\ words #c# #a\,b #\\",
        r"Links: [[a\]\]b]] [[n&#10;m]]",
        "<!-- memory: a&#32;b--&#62;&#10;&#60;!--&#32;memory:&#32;c -->",
    ]


def test_a_topic_that_looks_like_a_time_is_no_time() -> None:
    """The backslash is Markdown's, and so are the words that a person sees."""
    assert render_entry(Entry("", None, "12:30 lunch", "x")) == "## 12\\:30 lunch\n\nx\n"
    assert parse_page("## 12\\:30 lunch\n\nx\n").blocks[0].entry == Entry("", None, "12:30 lunch", "x")
    assert parse_page("## 25:00 x\n").blocks[0].entry.topic == "25:00 x"
    assert parse_page("### 2026-13-45 x\n", "long").blocks[0].entry.topic == "2026-13-45 x"


def test_a_heading_in_fenced_code_is_text() -> None:
    """Shell comments are the commonest case; no line of code has a time behind these signs."""
    (block,) = parse_page("## 09:30 a\n\n```\n## b\n```\n").blocks
    assert block.entry.text == "```\n## b\n```"


@pytest.mark.parametrize("code", ["```\nx\n```", "```py\nx\n```", "x"])
def test_a_fence_that_a_person_left_open_swallows_no_memory(code: str) -> None:
    """All below it would be taken for removed."""
    first, second = render_entry(Entry("a", 570, "t", code)), render_entry(Entry("b", 600, "u", "y"))
    text = f"## a note\n\n```\nopen\n\n{first}\n{second}"
    assert [(block.entry.id, block.entry.text) for block in parse_page(text).blocks] == [
        ("", "```\nopen"),
        ("a", code),
        ("b", "y"),
    ]


def test_a_memory_whose_heading_was_deleted_is_still_there() -> None:
    """Each id comment belongs to one block."""
    text = "# T\n\none\n<!-- memory: a -->\n\n## 09:30 t\n\ntwo\n<!-- memory: b -->\n\nthree\n<!-- memory: c -->\n"
    assert [(block.entry.id, block.entry.topic, block.entry.text) for block in parse_page(text).blocks] == [
        ("a", "", "one"),
        ("b", "t", "two"),
        ("c", "", "three"),
    ]


@pytest.mark.parametrize("words", ["A plain line.", "- a\n- list", "# Title\n\nText", "Title\n=====\n\nText"])
@pytest.mark.parametrize("kind", ["day", "long"])
def test_what_is_written_below_the_id_is_a_note_of_its_own(words: str, kind: PageKind) -> None:
    """A line at the end of a page is no part of the last memory, and does not go when that is forgotten."""
    sign = "##" if kind == "day" else "## Lessons\n\n###"
    text = f"{sign} t\n\none\n\n<!-- memory: a -->\nTags: #x\n\n{words}\n"
    first, *others = [block.entry for block in parse_page(text, kind).blocks]
    assert (first.id, first.topic, first.text, first.tags) == ("a", "t", "one", ("x",))
    listed = words.replace("- ", "").split("\n") if kind == "long" and words.startswith("-") else [words]
    assert [(entry.id, entry.topic, entry.text) for entry in others] == [("", "", each) for each in listed]


def test_a_rule_below_the_id_is_no_note() -> None:
    """It has no word that could be remembered."""
    assert len(parse_page("## t\n\none\n<!-- memory: a -->\n\n---\n").blocks) == 1


def test_a_heading_of_the_other_kind_of_page_begins_an_entry() -> None:
    """People cut an entry out of one page and paste it into another as it is."""
    text = "## Decisions\n\n## 09:30 t\n\none\n<!-- memory: a -->\n\n### 2026-11-21 u\n\ntwo\n"
    page = parse_page(text, "long")
    assert [section.name for section in page.sections] == ["Decisions"]
    assert [(block.entry.id, block.entry.topic, block.entry.text, block.entry.section) for block in page.blocks] == [
        ("a", "t", "one", "Decisions"),
        ("", "u", "two", "Decisions"),
    ]
    blocks = parse_page("## 09:30 t\n\none\n\n### 2026-11-20 u\n\ntwo\n\n### no date\n").blocks
    assert [(block.entry.topic, block.entry.text, block.entry.day) for block in blocks] == [
        ("t", "one", None),
        ("u", "two\n\n### no date", date(2026, 11, 20)),
    ]


def test_a_dated_heading_in_a_text_is_none_of_a_page() -> None:
    """Else a memory would fall in two."""
    written = render_entry(Entry("a", 0, "t", "### 2026-11-20 u"))
    assert "\n\\### 2026-11-20 u\n" in written


def test_a_list_behind_a_finished_entry_of_the_long_page_is_new_notes() -> None:
    """The end of a section is where people add to it."""
    text = "## Lessons\n\n### t\n\n- of the entry\n\n<!-- memory: a -->\n\n- new\n"
    assert [(block.entry.id, block.entry.text) for block in parse_page(text, "long").blocks] == [
        ("a", "- of the entry"),
        ("", "new"),
    ]


def test_a_copy_of_a_block_is_a_new_note() -> None:
    """People copy an entry to write one like it; two texts cannot be one memory."""
    text = "## t\n\none\n<!-- memory: a -->\n\n## t\n\ntwo\n<!-- memory: a -->\n"
    assert [block.entry.id for block in parse_page(text).blocks] == ["a", ""]


def test_line_ends_and_a_byte_order_mark_do_not_change_what_is_read() -> None:
    """Editors on Windows write both."""
    windows = "\ufeff" + DAY.replace("\n", "\r\n")
    page = parse_page(windows)
    assert [block.entry for block in page.blocks] == [block.entry for block in parse_page(DAY).blocks]
    assert page.preamble + "".join(block.raw for block in page.blocks) == windows


def test_an_item_of_a_list_is_written_without_heading() -> None:
    """It stays an item between other items."""
    entry = Entry("b", None, "Tea", "Tea,\n\n## not coffee", ("x",), section="Preferences")
    assert render_bullet(entry) == "- Tea,\n\n  \\## not coffee\n  Tags: #x\n  <!-- memory: b -->\n"


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("We chose Postgres for billing.", "We chose Postgres for billing"),
        ("# Title\n\nText", "Title"),
        ("```py\nx = 1\n```", "x = 1"),
        ("- [ ] **Do** the `thing` with [link](http://x.y), e.g. this. And more", "Do the thing with link, e.g. this"),
        ("What is it? Nothing.", "What is it?"),
        ("我们选择了这个很好的数据库系统。因为它好。", "我们选择了这个很好的数据库系统"),
        ("word " * 20, "word word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
        ("snake_case and __init__.py", "snake_case and __init__.py"),
        ("\x1b[31mred\x00", "[31mred"),
        ("***", ""),
    ],
)
def test_a_topic_is_the_first_line_or_sentence_without_markdown(text: str, topic: str) -> None:
    """It is what a person scans a day by."""
    assert topic_of(text) == topic


# Where a memory stands in MEMORY.md, and which ones have room there.


@pytest.mark.parametrize(
    ("category", "section"),
    [
        ("decision", "Decisions"),
        ("Preference", "Preferences"),
        ("lesson", "Lessons"),
        ("fact", "Lessons"),
        ("context", "Events"),
        ("event", "Events"),
        ("", "Lessons"),
        ("contacts", "Lessons"),
    ],
)
def test_the_category_chooses_the_section(category: str, section: str) -> None:
    """Whatever has no section of its own is something learned."""
    assert section_of(category) == section


def test_a_section_of_a_persons_own_is_a_category() -> None:
    """A note written there stays there when it is written again."""
    assert category_of("Contacts") == "contacts"
    assert section_of("contacts", ["Mine", "Contacts"]) == "Contacts"
    assert section_of("decision", ["Decision"]) == "Decisions"


@pytest.mark.parametrize("section", [*SECTIONS, "lessons", "Straße"])
def test_a_section_is_found_by_the_category_it_gives(section: str) -> None:
    """Else a note would wander."""
    assert section_of(category_of(section), [section]).casefold() == section.casefold()


@pytest.mark.parametrize("below", ["Links: [[x\\]", "plain words", "```\ncode\n```"])
def test_an_id_makes_no_note_of_what_is_below_a_list(below: str) -> None:
    """What was no note before the list's items got their ids is none after."""
    page = "## Lessons\n\n- item\n{id}\n" + below + "\n"
    for id_ in ("", "  <!-- memory: m -->\n"):
        assert [block.entry.text for block in parse_page(page.format(id=id_), "long").blocks] == ["item"]
