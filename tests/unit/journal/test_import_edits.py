"""What people write, change, remove and move on pages is what the store says afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.journal.book import LONG, NOON, TODAY, Book, zone

from commonplace.formats.journal import parse_page
from commonplace.journal.sync import SyncReport

HOUR = 3600.0
YESTERDAY = "2026-11-20.md"


def ids_on(book: Book, name: str = TODAY) -> list[str]:
    return [block.entry.id for block in parse_page(book.page(name), "long" if name == LONG else "day").blocks]


def test_an_edit_becomes_a_version_and_the_old_one_stays_readable_as_of_then(book: Book) -> None:
    memory = book.remember("The door is blue.", tags=["house"], metadata={"room": 1}, source="standup")
    book.sync()
    book.clock.at += HOUR
    book.edit("door is blue.", "door is green.\n\nSince today.")
    report = book.sync()
    assert replace(report, notices=()) == SyncReport(pages_written=1, pages_read=1, updated=1)
    old, new = book.store.versions("default", memory.id)
    assert (old.record.content, old.expired_at) == ("The door is blue.", NOON + HOUR)
    assert (new.record.content, new.expired_at) == ("The door is green.\n\nSince today.", None)
    assert (new.owner.tags, new.record.metadata, new.record.source) == (("house",), '{"room": 1}', "standup")
    [past] = book.store.past("default", NOON + 60)
    assert past.owner_number == old.number
    assert "## 12:00 The door is green\n\nThe door is green.\n\nSince today.\n\nTags: #house" in book.page()
    assert book.is_settled()


def test_a_heading_that_a_person_wrote_is_part_of_the_memory_and_stays(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    book.edit("## 12:00 The door is blue", "## 12:00 About the door")
    book.sync()
    assert book.contents() == ["About the door\n\nThe door is blue."]
    assert "## 12:00 About the door\n\nThe door is blue.\n" in book.page()
    assert book.is_settled()
    book.edit("The door is blue.", "The door is red.")
    book.sync()
    assert book.contents() == ["About the door\n\nThe door is red."]
    assert book.is_settled()


def test_tags_links_and_times_are_edited_as_text_is(book: Book) -> None:
    one, two = book.remember("Invoices are late.", tags=["money"]), book.remember("The bank was closed.")
    book.sync()
    page = book.page()
    page = page.replace("Tags: #money", f"Tags: #billing #late\nLinks: [[{two.id}]]")
    page = page.replace("## 12:00 Invoices", "## 09:30 Invoices")
    book.write(TODAY, page)
    book.sync()
    stored = book.get(one.id)
    assert stored.owner.tags == ("billing", "late")
    assert stored.owner.at == NOON - 2.5 * HOUR
    assert stored.record.content == "Invoices are late."
    assert [(link.source, link.target) for link in book.store.links("default")] == [(one.id, two.id)]
    assert book.is_settled()
    book.edit(f"Links: [[{two.id}]]\n", "")
    book.sync()
    assert book.store.links("default") == []
    assert book.is_settled()


def test_a_link_leads_to_a_memory_by_its_id_and_other_words_stay(book: Book) -> None:
    one, two = book.remember("Invoices are late."), book.remember("The bank was closed.")
    book.sync()
    book.edit(f"<!-- memory: {one.id}", f"Links: [[{two.id}]] [[elsewhere]]\n<!-- memory: {one.id}")
    book.sync()
    assert [(link.source, link.target) for link in book.store.links("default")] == [(one.id, two.id)]
    book.keeper.update(one.id, {"content": "Invoices are very late."})
    book.sync()
    assert f"Links: [[{two.id}]] [[elsewhere]]" in book.page()
    assert book.is_settled()


def test_a_note_becomes_a_memory_of_a_person_with_an_id_on_the_page(book: Book) -> None:
    book.write(TODAY, "# Saturday\n\n## 09:30 Tea\n\nAda drinks green tea.\n\nTags: #ada\n\n## 10:00 Call Bob\n")
    report = book.sync()
    assert report.added == 2
    tea, call = sorted(book.all(), key=lambda each: each.owner.at or 0)
    assert (tea.record.content, tea.record.origin, tea.record.tier, tea.record.source) == (
        "Tea\n\nAda drinks green tea.",
        "user",
        "short",
        f"memory/{TODAY}",
    )
    assert (tea.owner.tags, tea.owner.at) == (("ada",), NOON - 2.5 * HOUR)
    assert (call.record.content, call.owner.at) == ("Call Bob", NOON - 2 * HOUR)
    assert book.page() == (
        "# Saturday\n\n## 09:30 Tea\n\nAda drinks green tea.\n\nTags: #ada\n"
        f"<!-- memory: {tea.owner.id} -->\n\n## 10:00 Call Bob\n<!-- memory: {call.owner.id} -->\n"
    )
    assert book.is_settled()


def test_notes_of_today_and_of_other_days_without_a_time_have_one(book: Book) -> None:
    book.write(TODAY, "## Tea\n")
    book.write(YESTERDAY, "## Coffee\n")
    book.sync()
    assert {each.record.content: each.owner.at for each in book.all()} == {"Tea": NOON, "Coffee": NOON - 24 * HOUR}
    assert book.is_settled()


def test_items_of_a_list_on_the_long_term_page_become_long_memories(book: Book) -> None:
    book.write(LONG, "# Memory\n\n## Preferences\n\n- Short answers\n- Tabs, not spaces\n\n## Recipes\n\n- Pie\n")
    report = book.sync()
    assert report.added == 3
    found = {each.record.content: (each.record.tier, each.record.category) for each in book.all()}
    assert found == {
        "Short answers": ("long", "preference"),
        "Tabs, not spaces": ("long", "preference"),
        "Pie": ("long", "recipes"),
    }
    page = book.page(LONG)
    assert page.startswith("# Memory\n\n## Preferences\n\n- Short answers\n  <!-- memory: ")
    assert book.is_settled()
    book.edit("- Pie", "- Apple pie", LONG)
    assert book.sync().updated == 1
    assert "Apple pie" in book.contents()
    assert book.is_settled()


def test_a_removed_block_archives_its_memory_and_putting_it_back_restores_it(book: Book) -> None:
    memory, _ = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    before = book.page()
    [block] = [each for each in parse_page(before).blocks if each.entry.id == memory.id]
    book.write(TODAY, before.replace(block.raw, ""))
    report = book.sync()
    assert report.archived == 1
    assert book.get(memory.id).record.status == "archived"
    assert book.contents() == ["The roof is grey."]
    assert book.is_settled()
    book.write(TODAY, before)
    report = book.sync()
    assert report.restored == 1
    assert book.get(memory.id).record.status == "active"
    assert book.contents() == ["The door is blue.", "The roof is grey."]
    assert book.is_settled()


def test_a_block_put_back_with_other_words_has_these_and_no_heading_of_before(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    before = book.page()
    book.write(TODAY, "# 2026-11-21\n\n")
    book.sync()
    book.write(TODAY, before.replace("The door is blue.\n", "Red, says Ada.\n"))
    book.sync()
    assert book.get(memory.id).record.content == "Red, says Ada."
    assert "## 12:00 Red, says Ada\n\nRed, says Ada.\n" in book.page()
    book.edit("Red, says Ada.\n", "Green, says Ada.\n")
    book.sync()
    assert book.get(memory.id).record.content == "Green, says Ada."
    assert book.is_settled()


def test_removing_the_last_block_of_a_page_archives_it_and_a_blank_page_does_not(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    before = book.page()
    book.write(TODAY, "")
    report = book.sync()
    assert report.archived == 0
    assert report.notices == (f"memory/{TODAY} was deleted or emptied; it was written again from the store",)
    assert book.page() == before
    book.write(TODAY, "# 2026-11-21\n")
    assert book.sync().archived == 1
    assert book.get(memory.id).record.status == "archived"
    assert book.is_settled()


def test_a_block_without_a_word_left_is_removed(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.write(TODAY, f"# 2026-11-21\n\n## 12:00\n\n<!-- memory: {memory.id} -->\n")
    assert book.sync().archived == 1
    assert book.is_settled()


def test_a_deleted_page_is_written_again_with_a_notice(book: Book) -> None:
    book.remember("The door is blue.")
    book.remember("We deploy on Mondays.", tier="long")
    book.sync()
    before = book.files()
    for name in (TODAY, LONG):
        book.folder.path(name).unlink()
    report = book.sync()
    assert book.files() == before
    assert report.archived == 0
    assert set(report.notices) == {
        f"{name} was deleted or emptied; it was written again from the store" for name in before
    }
    assert book.is_settled()


def test_a_deleted_directory_is_written_again(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    before = book.files()
    book.folder.path(TODAY).unlink()
    book.folder.path(TODAY).parent.rmdir()
    book.sync()
    assert book.files() == before


def test_a_renamed_page_takes_its_memories_to_the_other_day(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.write(YESTERDAY, book.page())
    book.folder.path(TODAY).unlink()
    report = book.sync()
    assert book.get(memory.id).owner.at == NOON - 24 * HOUR
    assert report.archived == report.added == 0
    assert list(book.files()) == [f"memory/{YESTERDAY}"]
    assert book.is_settled()


def test_a_block_that_a_person_moves_to_another_day_has_the_time_of_that_day(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.remember("The roof is grey.")
    book.sync()
    [block] = [each for each in parse_page(book.page()).blocks if each.entry.id == memory.id]
    book.write(TODAY, book.page().replace(block.raw, ""))
    book.write(YESTERDAY, f"# Friday\n\n{block.raw}")
    report = book.sync()
    assert (report.archived, report.added, report.moved) == (0, 0, 1)
    assert book.get(memory.id).owner.at == NOON - 24 * HOUR
    assert ids_on(book, YESTERDAY) == [memory.id]
    assert book.is_settled()


def test_a_block_moved_between_a_day_and_the_long_term_page_changes_its_tier(book: Book) -> None:
    memory, other = book.remember("The door is blue.", tags=["house"]), book.remember("The roof is grey.")
    book.sync()
    [block] = [each for each in parse_page(book.page()).blocks if each.entry.id == memory.id]
    book.write(TODAY, book.page().replace(block.raw, ""))
    book.write(LONG, "# Memory\n\n## Decisions\n\n" + block.raw.replace("## 12:00", "### 2026-11-21"))
    report = book.sync()
    assert (report.archived, report.added, report.moved) == (0, 0, 1)
    stored = book.get(memory.id)
    assert (stored.record.tier, stored.record.category, stored.owner.at) == ("long", "decision", NOON)
    assert (stored.record.content, stored.owner.tags) == ("The door is blue.", ("house",))
    assert ids_on(book, LONG) == [memory.id]
    assert book.is_settled()
    [block] = parse_page(book.page(LONG), "long").blocks
    book.write(LONG, book.page(LONG).replace(block.raw, ""))
    book.write(TODAY, book.page() + "\n" + block.raw.replace("### 2026-11-21", "## 12:00"))
    book.sync()
    assert book.get(memory.id).record.tier == "short"
    assert ids_on(book) == [other.id, memory.id]
    assert book.is_settled()


def test_a_pasted_copy_of_a_block_is_a_memory_of_its_own(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.write(TODAY, book.page() + "\n" + parse_page(book.page()).blocks[0].raw.replace("blue", "red"))
    book.write(YESTERDAY, parse_page(book.page()).blocks[0].raw)
    report = book.sync()
    assert report.added == 2
    assert book.contents() == ["The door is blue.", "The door is blue.", "The door is red."]
    assert book.get(memory.id).record.content == "The door is blue."
    assert book.is_settled()


def test_a_note_with_the_id_of_a_memory_that_is_to_come_to_its_page_is_a_memory_of_its_own(book: Book) -> None:
    """Only what a run that was killed has left there says what the memory says, or has said."""
    memory = book.remember("The door is blue.")
    book.sync()
    book.keeper.set_tier(memory.id, "long")
    book.write(LONG, f"## Lessons\n\n### 2026-11-21\n\nMy own words.\n\n<!-- memory: {memory.id} -->\n")
    assert book.sync().added == 1
    assert book.contents() == ["My own words.", "The door is blue."]
    assert book.get(memory.id).record.content == "The door is blue."
    assert book.is_settled()


def test_a_block_with_an_unknown_id_is_taken_in_under_it_with_a_notice(book: Book) -> None:
    book.write(TODAY, "## 09:30 Tea\n\nGreen tea.\n\n<!-- memory: from-elsewhere -->\n")
    report = book.sync()
    assert report.added == 1
    assert report.notices == (
        f"memory/{TODAY} has a memory 'from-elsewhere' that the store did not know; it was imported",
    )
    assert book.get("from-elsewhere").record.content == "Tea\n\nGreen tea."
    assert book.is_settled()


def test_white_space_line_ends_and_order_are_no_edits(book: Book) -> None:
    for number in range(3):
        book.remember(f"Note {number}.\n\nSecond paragraph.", at=NOON + 60 * number, tags=["b", "a"])
    book.sync()
    before = book.all()
    page = book.page()
    raws = [block.raw.rstrip("\n") + "\n\n" for block in parse_page(page).blocks]
    for text in (
        page.replace("\n", "\r\n"),
        page.replace(".\n", ".  \t\n"),
        page.replace("\n\n", "\n\n\n\n"),
        "\ufeff" + page,
        "# 2026-11-21\n\n" + "".join(reversed(raws)),
        page.replace("#a #b", "#b, #a"),
        page.replace("<!-- memory: ", "<!--memory:"),
    ):
        book.write(TODAY, text)
        report = book.sync()
        assert (report.updated, report.added, report.archived, report.pages_written) == (0, 0, 0, 0)
        assert book.page() == text.replace("\r\n", "\n") or "\r\n" in text
        assert book.all() == before
        assert book.is_settled()


def test_what_is_written_beside_edits_keeps_the_line_ends_of_the_page(book: Book) -> None:
    book.remember("One.")
    book.sync()
    book.write(TODAY, book.page().replace("\n", "\r\n"))
    book.remember("Two.")
    book.sync()
    raw = book.folder.path(TODAY).read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n") > 10


def test_words_between_the_blocks_stay_where_they_are(book: Book) -> None:
    one = book.remember("One.", at=NOON)
    book.sync()
    book.write(TODAY, "---\nmood: good\n---\n\nDear diary,\n\n" + book.page())
    book.sync()
    two = book.remember("Two.", at=NOON + 60)
    book.sync()
    book.keeper.update(one.id, {"content": "One, changed."})
    book.sync()
    assert book.page().startswith("---\nmood: good\n---\n\nDear diary,\n\n# 2026-11-21\n\n## 12:00 One, changed\n")
    assert ids_on(book) == [one.id, two.id]
    for each in (one, two):
        book.keeper.archive(each.id)
    book.sync()
    assert "Dear diary," in book.page()
    assert book.is_settled()


def test_secrets_in_notes_and_edits_do_not_reach_the_store(book: Book) -> None:
    book.remember("The door is blue.", id="door")
    book.sync()
    secret = "AKIAIOSFODNN7EXAMPLE"
    book.edit("The door is blue.", f"The door opens with {secret}.")
    book.write(TODAY, book.page() + f"\n## 13:00 Key\n\nThe other key is {secret} too.\n")
    report = book.sync()
    assert (report.added, report.updated) == (1, 1)
    assert len([notice for notice in report.notices if notice.startswith(f"memory/{TODAY}: ")]) >= 1
    assert all(secret not in content for content in book.contents())
    assert book.page().count(secret) == 2, "a page is a person's own file"
    assert book.is_settled()
    book.store.close()
    assert all(secret.encode() not in path.read_bytes() for path in book.directory.glob("store.db*"))


def test_a_note_that_cannot_be_a_memory_stays_with_a_notice(tmp_path: Path) -> None:
    words = "x" * 3000
    with zone("UTC"):
        book = Book(tmp_path, max_bytes=2000)
        book.write(TODAY, f"## 09:00 Good\n\nFine.\n\n## 10:00 Bad\n\n{words}\n")
        report = book.sync()
        assert report.added == 1
        assert words in book.page()
        assert report.notices
        assert report.notices == book.sync().notices


def test_an_edit_that_the_store_refuses_stays_on_the_page_with_a_notice(tmp_path: Path) -> None:
    with zone("UTC"):
        book = Book(tmp_path, max_bytes=2000)
        memory = book.remember("The door is blue.")
        book.sync()
        book.edit("The door is blue.", "x" * 3000)
        report = book.sync()
        assert report.updated == 0
        assert [notice for notice in report.notices if "was not imported and stays there" in notice]
        assert book.contents() == ["The door is blue."]
        assert "x" * 3000 in book.page()
        book.edit("x" * 3000, "Short again.")
        assert book.sync().updated == 1
        assert book.get(memory.id).record.content.endswith("Short again.")
        assert book.is_settled()
