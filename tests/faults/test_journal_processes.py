"""Several processes on one store keep its pages in step, and double and lose nothing.

Started as a script it is one of them: test_journal_processes.py DIRECTORY NAME COUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.processes import start
from tests.unit.journal.book import Book, zone

from commonplace.formats.journal import parse_page

PROCESSES = 4


def main() -> None:
    directory, name, count = sys.argv[1:]
    book = Book(Path(directory))
    for number in range(int(count)):
        book.clock.at += 61
        book.journal.import_edits()
        tier = ["short", "long"][number % 2]
        memory = book.remember(f"{name} {number} of {count}.", id=f"{name}-{number}", tier=tier, force=True)
        book.journal.count_write()
        if number % 5 == 0:
            book.keeper.update(memory.id, {"content": f"{name} {number} of {count}, changed."})
            book.sync()
    book.journal.flush()
    book.store.close()


@pytest.mark.parametrize("each", [pytest.param(10, id="short"), pytest.param(50, id="long", marks=pytest.mark.soak)])
def test_processes_and_a_person_write_at_once_and_nothing_is_lost_or_doubled(tmp_path: Path, each: int) -> None:
    with zone("UTC"):
        book = Book(tmp_path)
        processes = [start(__file__, tmp_path, f"p{number}", each, TZ="UTC") for number in range(PROCESSES)]
        notes = 0
        while any(process.poll() is None for process in processes):
            if notes < 60:
                notes += 1
                book.write(f"20{26 + notes // 28}-10-{notes % 28 + 1:02}.md", f"## 09:00 By hand {notes}\n")
            book.sync()
        errors = [process.communicate()[1] for process in processes]
        assert [process.returncode for process in processes] == [0] * PROCESSES, errors
        book.sync()
        book.sync()
        assert book.is_settled()
        contents = book.contents()
        expected = [
            f"p{process} {number} of {each}{', changed' if number % 5 == 0 else ''}."
            for process in range(PROCESSES)
            for number in range(each)
        ]
        assert contents == sorted([*expected, *(f"By hand {number + 1}" for number in range(notes))])
        pages = [path for path in book.files() if ".conflict-" not in path]
        assert len(pages) == len(book.files()), "nobody changed what another one changed"
        ids = [
            block.entry.id
            for path in pages
            for block in parse_page((tmp_path / path).read_text("utf-8"), "long" if "MEMORY" in path else "day").blocks
        ]
        assert len(ids) == len(set(ids)) == len(contents)
        book.store.close()


if __name__ == "__main__":
    main()
