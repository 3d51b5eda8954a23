"""Notes of the vault, whatever stands in a memory and whatever it is called: nothing is lost, and nothing gets out."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.formats.journal import paired_fences, split_lines
from commonplace.formats.vault import (
    MAX_STEM_BYTES,
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

LETTERS = st.characters(exclude_categories=["Cs"])
ANY = st.text(LETTERS, max_size=40)
MARKS = st.text(alphabet="#`~-=+\\[]%$<a!/| \n\r\t>:xE", max_size=60)
WORDS = st.lists(
    st.sampled_from(
        [
            "## Content\n",
            "## Entities\n",
            "---\n",
            "```\n",
            "~~~py\n",
            "# x\n",
            "[[a]]",
            "%%",
            "<!--",
            "\\",
            "\r\n",
            "a",
        ]
    ),
    max_size=12,
).map("".join)
CONTENTS = ANY | MARKS | WORDS
TIMES = st.integers(-62_000_000_000, 253_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC))
NOTES = st.builds(
    VaultNote,
    memory_id=st.text(LETTERS, min_size=1, max_size=40),
    title=ANY,
    content=CONTENTS,
    created=TIMES,
    modified=TIMES,
    tags=st.lists(ANY, max_size=4).map(tags_of),
    entities=st.lists(ANY, max_size=4, unique_by=name_key).map(tuple),
    reason=ANY,
    score=st.integers(0, 10_000).map(lambda number: number / 10_000),
    version=st.integers(1, 2**40),
)
SECTION = re.compile(r" {0,3}#{1,2}(?:[ \t\r\n]|\Z)")
FORBIDDEN = set('\\/:*?"<>|#^[]')


@given(NOTES)
@example(
    VaultNote("a", "x: y", "---\ntitle: z\n---", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
)
def test_a_note_tells_in_its_front_matter_what_it_is(note: VaultNote) -> None:
    text = write_note(note)
    assert memory_id_of(text) == note.memory_id
    told = parse_front_matter(text)
    if not told.fault:  # more brackets than a front matter may have
        values = told.values
        assert (values["title"], values["memory_id"], values["memory_version"]) == (
            note.title,
            note.memory_id,
            note.version,
        )
        assert (values["tags"], values["entities"]) == ([*note.tags], [*note.entities])
        assert (values["promotion_reason"], values["decay_score"]) == (note.reason, note.score)


@given(CONTENTS)
def test_nothing_in_a_text_begins_a_section_a_link_or_a_comment(text: str) -> None:
    lines = [line.rstrip("\r\n") for line in split_lines(escape_markdown(text))]
    for line, is_fenced in zip(lines, paired_fences(lines), strict=True):
        if not is_fenced:
            assert not SECTION.match(line)
            assert not any(mark in line for mark in ("[[", "%%", "$$"))


@given(st.text(max_size=300), st.text(LETTERS, min_size=1, max_size=60))
@example("CON", "a")
@example("con.txt", "a")
@example("LPT¹ ", "a")
@example("../../etc/passwd", "a")
@example("x" * 400, "a")
@example("\u0301" * 300, "a")
def test_any_title_makes_a_name_that_every_system_takes(title: str, memory_id: str) -> None:
    for name in file_names(title, memory_id):
        stem = name.removesuffix(".md")
        assert name.endswith(".md") and stem
        assert not FORBIDDEN & set(stem)
        assert not any(unicodedata.category(character)[0] == "C" for character in stem)
        assert stem == stem.strip(" .") and not stem.startswith(("-", "~", "$"))
        assert len(stem.encode()) <= MAX_STEM_BYTES + 1
        assert unicodedata.is_normalized("NFC", name)
        assert stem.split(".")[0].upper().strip() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "COM¹", "CLOCK$"}
    assert file_stem(file_stem(title)) in (file_stem(title), file_stem(title).lstrip("_"))


@given(st.text(max_size=40), st.lists(st.text(LETTERS, min_size=1, max_size=20), min_size=2, max_size=2, unique=True))
def test_two_memories_of_one_title_never_share_their_last_name(title: str, ids: list[str]) -> None:
    one, other = (name_key(list(file_names(title, id_))[-1]) for id_ in ids)
    assert one != other


@given(ANY, st.lists(ANY, max_size=3), st.text(LETTERS, min_size=1))
def test_every_memory_has_a_title_of_one_line(content: str, entities: list[str], memory_id: str) -> None:
    title = title_of(content, entities, memory_id)
    assert title == " ".join(title.split()) != ""


@given(ANY)
def test_a_link_is_one_link(name: str) -> None:
    link = link_to(name)
    if link:
        assert link.startswith("[[") and link.endswith("]]")
        assert not {"[", "]", "\n"} & set(link[2:-2])
        assert link.count("|") <= 1


@given(st.lists(st.text(max_size=20), max_size=6))
def test_tags_are_those_of_obsidian(tags: list[str]) -> None:
    for tag in tags_of(tags):
        assert not any(character.isspace() or character in "#,.:[]\"'" for character in tag)
        assert not tag.replace("/", "").isdigit()
        assert not tag.startswith("/") and not tag.endswith("/")
    assert tags_of(tags_of(tags)) == tags_of(tags)
