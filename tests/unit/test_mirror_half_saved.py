"""An editor that writes in place, in two steps, while a process ends."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

import commonplace


def test_a_process_that_ends_leaves_a_page_alone_that_is_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.journal.snapshot.QUIET_NS", 10**12)  # however slow this machine is
    at = datetime.now().astimezone()
    with commonplace.open(tmp_path) as book:
        for name in ("one", "two"):
            book.remember(f"Memory {name}.", id=name, at=at)
    page = tmp_path / "memory" / f"{at:%Y-%m-%d}.md"
    whole = page.read_text("utf-8")
    first, second = whole[: whole.index("Memory two.")], whole[whole.index("Memory two.") :]
    with page.open("w", encoding="utf-8") as editor:
        editor.write(first)
        editor.flush()
        with commonplace.open(tmp_path) as book:
            book.remember("Memory three.", id="three", at=at)
        editor.write(second.replace("Memory two.", "Memory two, edited."))
    with commonplace.open(tmp_path) as book:
        book.sync()
        kept = {memory.id: memory.content for memory in book.list()}
    assert kept == {"one": "Memory one.", "two": "Memory two, edited.", "three": "Memory three."}
    assert "Memory three." in page.read_text("utf-8")
