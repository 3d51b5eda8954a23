"""What the contract demands of the LTMPromoter, a test for each MUST, and what promoting does to a memory besides."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation import ConfidenceConfig, LTMPromoter
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.vault import memory_id_of
from commonplace.retention import DAY_S
from commonplace.types.ledger import IssueSelection

from .conftest import NOW, Clock

TEXT = "Billing runs on Postgres. We chose it in May."
FRESH = {"use_count": 5, "uses": (NOW,)}


def keep(book: Engine, id_: str, text: str = TEXT, tags: tuple[str, ...] = (), **record: object) -> None:
    book.remember(text, id=id_, tags=tags, force=True)
    with book._runtime.store.change_memories(book.namespace) as change:
        known = change.find(id_)
        assert known is not None
        change.revise(known.number, replace(known.record, **record))  # type: ignore[arg-type]


def notes(book: Engine) -> list[Path]:
    return sorted((book.directory / "vault").rglob("*.md"))


def criteria(book: Engine, id_: str) -> list[str]:
    return LTMPromoter(dry_run=True, book=book).process_item(id_).criteria_met


# -- the contract -----------------------------------------------------------------------------------------------


def test_scan_must_find_memories_meeting_promotion_criteria(book: Engine) -> None:
    keep(book, "used", **FRESH)
    keep(book, "reviewed", review_count=3)
    keep(book, "present", born_at=NOW - DAY_S, use_count=2, last_used=NOW - DAY_S)
    keep(book, "both", use_count=5, review_count=3)
    keep(book, "none", use_count=4, review_count=2)
    assert LTMPromoter(book=book).scan() == ["both", "used", "present", "reviewed"]


def test_scan_must_not_return_already_promoted_memories(book: Engine) -> None:
    keep(book, "a", **FRESH)
    keep(book, "imported", status="promoted", **FRESH)
    keep(book, "gone", **FRESH)
    book.archive("gone")
    agent = LTMPromoter(book=book)
    assert agent.scan() == ["a"]
    agent.run()
    assert agent.scan() == []


def test_process_must_write_valid_markdown_to_the_vault(book: Engine) -> None:
    keep(book, "a", tags=("two words",), entities=("Postgres", "C#"), **FRESH)
    result = LTMPromoter(book=book).process_item("a")
    assert (book.directory / result.vault_path).read_text() == (
        "---\n"
        'title: "Billing runs on Postgres"\n'
        'memory_id: "a"\n'
        "memory_version: 1\n"
        "created: 2025-06-15T15:06:40Z\n"
        "modified: 2025-06-15T15:06:40Z\n"
        'tags:\n  - "two-words"\n'
        'entities:\n  - "Postgres"\n  - "C#"\n'
        'promotion_reason: "use_count_threshold"\n'
        "decay_score: 1.0\n"
        "---\n\n"
        "## Content\n\nBilling runs on Postgres. We chose it in May.\n\n"
        "## Entities\n\n- [[Postgres]]\n- [[C|C#]]\n"
    )


def test_process_must_set_memory_status_to_promoted(book: Engine, clock: Clock) -> None:
    keep(book, "a", **FRESH)
    clock.now += 60
    LTMPromoter(book=book).process_item("a")
    stored = book._runtime.store.memory("default", "a")
    assert stored is not None
    assert (stored.record.status, stored.record.promoted_at, stored.record.tier) == ("promoted", NOW + 60, "long")


def test_process_must_store_vault_path_reference(book: Engine) -> None:
    keep(book, "a", **FRESH)
    result = LTMPromoter(book=book).process_item("a")
    stored = book._runtime.store.memory("default", "a")
    assert stored is not None
    assert stored.record.vault_path == result.vault_path == "vault/Billing runs on Postgres.md"


def test_process_must_not_create_duplicate_vault_files(book: Engine) -> None:
    """Undone because it was edited, it stays; promoted again it is the same note."""
    keep(book, "a", **FRESH)
    first = LTMPromoter(book=book).process_item("a")
    note = book.directory / first.vault_path
    note.write_text(note.read_text() + "\n## Mine\n")
    note.rename(note.with_name("My title.md"))
    assert first.beads_issue_id is not None
    book.undo_consolidation(first.beads_issue_id)
    book.touch("a")
    second = LTMPromoter(book=book).process_item("a")
    assert second.vault_path == "vault/My title.md"
    assert [path.name for path in notes(book)] == ["My title.md"]
    assert notes(book)[0].read_text().endswith("\n## Mine\n")


# -- criteria ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "met"),
    [
        ({"use_count": 4}, []),
        ({"use_count": 5}, ["use_count_threshold"]),
        ({"use_count": 5, "born_at": NOW - 60 * DAY_S, "last_used": NOW - 46 * DAY_S}, ["use_count_threshold"]),
        ({"use_count": 5, "born_at": NOW - 20 * DAY_S, "last_used": NOW - 2 * DAY_S}, ["score_threshold"]),
        ({"use_count": 9, "born_at": NOW - 90 * DAY_S, "last_used": NOW - 60 * DAY_S}, []),
        (
            {
                "use_count": 6,
                "born_at": NOW - 40 * DAY_S,
                "uses": (*(NOW - day * DAY_S for day in (39, 38, 37, 36, 26)), NOW - 25 * DAY_S),
                "last_used": NOW - 25 * DAY_S,
            },
            ["use_count_threshold"],
        ),
        (
            {
                "use_count": 6,
                "born_at": NOW - 41 * DAY_S,
                "uses": (*(NOW - day * DAY_S for day in (39, 38, 37, 36, 26)), NOW - 25 * DAY_S),
                "last_used": NOW - 25 * DAY_S,
            },
            [],
        ),
        ({"review_count": 2}, []),
        ({"review_count": 3}, ["review_count_threshold"]),
        ({"use_count": 2}, []),
        ({"use_count": 2, "born_at": NOW - DAY_S}, ["score_threshold"]),
        ({"use_count": 1, "born_at": NOW - DAY_S}, []),
        ({"use_count": 5, "review_count": 3}, ["use_count_threshold", "review_count_threshold"]),
        ({"use_count": 5, "review_count": 3, "trust": 0.49}, []),
        ({"use_count": 5, "trust": 0.5}, ["use_count_threshold"]),
    ],
)
def test_criteria_are_those_of_the_decisions(book: Engine, record: dict[str, object], met: list[str]) -> None:
    """Every fresh memory has a score of 1: age and use guard against promoting it for that."""
    keep(book, "a", **record)
    stored = book._runtime.store.memory("default", "a")
    assert stored is not None
    assert list(LTMPromoter(book=book).criteria(stored.record, NOW)) == met
    assert LTMPromoter(book=book).scan() == (["a"] if met else [])


def test_what_is_not_trusted_is_never_promoted_and_says_so(book: Engine) -> None:
    keep(book, "a", trust=0.4, strength=2.0, **FRESH)
    with pytest.raises(UsageError, match=r"memory 'a' has the trust 0.4, less than 0.5"):
        LTMPromoter(book=book).process_item("a")


def test_what_meets_nothing_is_not_promoted_and_says_what_it_takes(book: Engine) -> None:
    keep(book, "a")
    with pytest.raises(UsageError, match=r"meets no criterion of promotion; it takes 5 uses in its first 14 days"):
        LTMPromoter(book=book).process_item("a")


def test_one_criterion_is_less_sure_than_two(book: Engine) -> None:
    keep(book, "one", **FRESH)
    keep(book, "two", use_count=5, review_count=3)
    agent = LTMPromoter(confidence_config=ConfidenceConfig(0.95, 0.9), book=book)
    assert [(each.memory_id, book.get(each.memory_id).status) for each in agent.run()] == [
        ("two", "promoted"),
        ("one", "active"),
    ]


def test_what_fades_but_is_strong_is_promoted_where_somebody_takes_its_issue_up(book: Engine, clock: Clock) -> None:
    keep(book, "a", strength=1.6)
    issue = book.ledger.create("promote", ["a"], "promote")
    agent = LTMPromoter(book=book)
    assert agent.scan() == []
    assert agent.process_issue(issue).criteria_met == ["strength_threshold"]
    assert book.get("a").status == "promoted"
    [closed] = book._runtime.store.ledger("default").issues(IssueSelection())
    assert (closed.id, closed.status) == (issue, "closed")


def test_a_memory_that_waits_by_an_issue_is_promoted_and_that_issue_closed(book: Engine) -> None:
    keep(book, "a", **FRESH)
    issue = book.ledger.create("promote", ["a"], "promote")
    assert [each.beads_issue_id for each in LTMPromoter(book=book).run()] == [issue]


def test_what_others_work_on_is_left_to_them(book: Engine) -> None:
    keep(book, "a", **FRESH)
    keep(book, "b", **FRESH)
    assert book.ledger.claim(book.ledger.create("promote", ["a"], "promote"))
    book.ledger.block(book.ledger.create("promote", ["b"], "promote"), "no vault")
    assert LTMPromoter(book=book).scan() == []


# -- what becomes of it -------------------------------------------------------------------------------------------


def test_promoted_memories_are_found_and_never_archived_for_lack_of_use(book: Engine, clock: Clock) -> None:
    keep(book, "a", **FRESH)
    LTMPromoter(book=book).run()
    clock.now += 1_000 * DAY_S
    book.decay("short", threshold=0.9)
    book.consolidate(["decay"])
    [hit] = book.search("postgres billing").hits
    assert (hit.owner_id, hit.tier) == ("a", "long")
    assert [each.status for each in book.list()] == ["promoted"]


def test_undone_it_is_as_it_was_and_its_note_is_gone(book: Engine) -> None:
    keep(book, "a", **FRESH)
    before = book._runtime.store.memory("default", "a")
    result = LTMPromoter(book=book).process_item("a")
    assert result.beads_issue_id is not None
    book.undo_consolidation(result.beads_issue_id)
    assert book._runtime.store.memory("default", "a") == before
    assert notes(book) == []


def test_undone_it_was_still_promoted_as_of_a_time_before_it_was_updated(book: Engine, clock: Clock) -> None:
    """What was known then does not change with what is done later; only the current version is what it was before."""
    keep(book, "a", **FRESH)
    result = LTMPromoter(book=book).process_item("a")
    promoted_at, clock.now = clock.now, clock.now + 60
    book.update("a", "Billing runs on SQLite now.")
    clock.now += 60
    assert result.beads_issue_id is not None
    book.undo_consolidation(result.beads_issue_id)
    then, now = book.get("a", as_of=promoted_at), book.get("a")
    assert (then.status, then.content) == ("promoted", TEXT)
    assert (now.status, now.vault_path) == ("active", "")


def test_undone_a_note_that_a_person_edited_stays(book: Engine) -> None:
    keep(book, "a", **FRESH)
    result = LTMPromoter(book=book).process_item("a")
    note = book.directory / result.vault_path
    note.write_text(note.read_text().replace("in May", "in June"))
    assert result.beads_issue_id is not None
    undone = book.undo_consolidation(result.beads_issue_id)
    assert undone.notices == ("vault/Billing runs on Postgres.md was edited since it was written, and stays",)
    assert book.get("a").status == "active"
    assert "in June" in note.read_text()


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege there")
@pytest.mark.parametrize("put", ["directory", "link", "vault elsewhere"])
def test_undone_what_somebody_put_in_the_place_of_a_note_stays(book: Engine, tmp_path: Path, put: str) -> None:
    keep(book, "a", **FRESH)
    result = LTMPromoter(book=book).process_item("a")
    note, elsewhere = book.directory / result.vault_path, tmp_path / "elsewhere"
    if put == "vault elsewhere":
        note.parent.rename(elsewhere)
        note.parent.symlink_to(elsewhere)
    else:
        note.rename(elsewhere)
        note.mkdir() if put == "directory" else note.symlink_to(elsewhere)
    assert result.beads_issue_id is not None
    undone = book.undo_consolidation(result.beads_issue_id)
    assert undone.notices == ("vault/Billing runs on Postgres.md was edited since it was written, and stays",)
    assert (note.exists(), elsewhere.exists(), book.get("a").status) == (True, True, "active")


def test_undone_a_note_that_cannot_be_removed_is_told(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(book, "a", **FRESH)
    result = LTMPromoter(book=book).process_item("a")

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", fail)
    assert result.beads_issue_id is not None
    undone = book.undo_consolidation(result.beads_issue_id)
    assert undone.notices == ("Billing runs on Postgres.md could not be removed and stays: Permission denied",)
    assert book.get("a").status == "active"


def test_a_dry_run_tells_where_the_note_would_lie_and_writes_nothing(book: Engine) -> None:
    keep(book, "a", **FRESH)
    change = book._runtime.store.change()
    [result] = LTMPromoter(dry_run=True, book=book).run()
    assert (result.vault_path, result.beads_issue_id) == ("vault/Billing runs on Postgres.md", None)
    assert not (book.directory / "vault").exists()
    assert book._runtime.store.change() == change


def test_two_memories_of_one_title_have_two_notes(book: Engine) -> None:
    for id_ in ("a", "b"):
        keep(book, id_, **FRESH)
    paths = [each.vault_path for each in LTMPromoter(book=book).run()]
    assert paths == ["vault/Billing runs on Postgres.md", "vault/Billing runs on Postgres (3e23e816).md"]
    assert [memory_id_of(path.read_text()) for path in notes(book)] == ["b", "a"]


def test_a_note_that_a_person_removed_is_not_made_anew(book: Engine) -> None:
    keep(book, "a", **FRESH)
    LTMPromoter(book=book).run()
    notes(book)[0].unlink()
    book.update("a", "Billing runs on SQLite now.")
    LTMPromoter(book=book).run()
    assert notes(book) == []


def test_forgotten_its_note_goes_too(book: Engine) -> None:
    keep(book, "a", **FRESH)
    LTMPromoter(book=book).run()
    (book.directory / "vault" / ".note.commonplace-draft").write_text("---\ntitle: Billing ru")
    receipt = book.forget("a")
    assert (receipt.verified, receipt.counts["vault_notes"]) == (True, 2)
    assert list((book.directory / "vault").iterdir()) == []


def test_namespaces_have_vaults_of_their_own(book: Engine, tmp_path: Path, clock: Clock) -> None:
    keep(book, "a", **FRESH)
    with commonplace.open(book.directory, namespace="Other/x", embedder="hashing", clock=clock) as other:
        keep(other, "a", "Something else altogether.", **FRESH)
        assert [each.vault_path for each in LTMPromoter(book=other).run()] == [
            "vault/%4fther%2fx/Something else altogether.md"
        ]
        LTMPromoter(book=book).run()
        assert len(notes(book)) == 2
        other.forget("a")
        assert not (book.directory / "vault" / "%4fther%2fx").exists()
    assert [path.name for path in notes(book)] == ["Billing runs on Postgres.md"]


def test_what_is_not_there_or_not_active_cannot_be_promoted(book: Engine) -> None:
    keep(book, "a", status="promoted", **FRESH)
    for id_ in ("a", "nobody"):
        with pytest.raises(NotFoundError):
            LTMPromoter(book=book).process_item(id_)


def test_a_turn_of_a_conversation_is_promoted_only_by_somebody_who_looked_at_it(book: Engine) -> None:
    """One question about a conversation uses many of its turns."""
    book.remember("Ann: the ferry to Aegina leaves at nine", id="turn", session="talk")
    for _ in range(6):
        book.touch("turn")
    (waiting,) = LTMPromoter(book=book).run()
    assert waiting.success is False
    assert book.get("turn").status == "active"
    for _ in range(3):
        book.review("turn")
    (done,) = LTMPromoter(book=book).run()
    assert (done.success, book.get("turn").status) == (True, "promoted")
