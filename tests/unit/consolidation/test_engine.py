"""Consolidation through the engine: the agents of a run, golden queries, status, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation.merge import SemanticMerge
from commonplace.consolidation.results import ClusterResult, MergeResult
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, StoreError, UsageError
from commonplace.retention import DAY_S

from .conftest import Clock, dump


@pytest.fixture
def faded(book: Engine, clock: Clock) -> Engine:
    """Two memories that nobody used for two months, and one of today."""
    clock.now -= 61 * DAY_S
    book.remember("The harbour of Aegina froze over", id="harbour")
    book.remember("Ravens nest in the old lighthouse", id="ravens")
    clock.now += 61 * DAY_S
    book.remember("The ferry leaves at nine", id="ferry")
    return book


def golden(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def test_a_run_tells_what_each_agent_did_and_how_to_undo_it(faded: Engine) -> None:
    before = dump(faded)
    report = faded.consolidate(["decay"])
    assert (report.applied, report.errors, report.dry_run) == (2, (), False)
    told = report.to_dict()
    assert list(told) == ["dry_run", "results", "errors", "skipped", "outcomes", "applied", "run"]
    assert {each["memory_id"] for each in told["results"]["decay"]} == {"harbour", "ravens"}
    faded.undo_consolidation(report.run)
    assert dump(faded) == before


def test_a_run_that_loses_a_golden_query_is_undone(faded: Engine, tmp_path: Path) -> None:
    queries = golden(
        tmp_path / "golden.jsonl",
        {"query": "did the harbour of Aegina freeze", "relevant": ["harbour"]},
        {"query": "when does the ferry leave", "relevant": ["ferry"]},
        {"query": "ravens", "relevant": ["what never was found"]},
    )
    before = dump(faded)
    report = faded.consolidate(["decay"], golden=queries)
    assert report.lost == ("did the harbour of Aegina freeze",)
    assert report.to_dict()["lost"] == ["did the harbour of Aegina freeze"]
    assert dump(faded) == before


def test_a_run_that_loses_what_a_person_marked_as_right_is_undone(faded: Engine) -> None:
    faded.mark("did the harbour of Aegina freeze", "harbour")
    before = dump(faded)
    report = faded.consolidate(["decay"])
    assert report.lost == ("did the harbour of Aegina freeze",)
    assert dump(faded) == before
    assert faded.consolidate(["decay"]).lost == (), "what was undone is not done again"


def test_a_run_that_loses_none_stands(faded: Engine, tmp_path: Path) -> None:
    queries = golden(tmp_path / "golden.jsonl", {"query": "when does the ferry leave", "relevant": ["ferry"]})
    report = faded.consolidate(["decay"], golden=queries)
    assert (report.lost, report.applied) == ((), 2)
    assert [memory.id for memory in faded.list()] == ["ferry"]


def test_a_failure_of_a_dry_run_names_its_memories_and_no_issue_of_the_copy(
    faded: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(SemanticMerge, "plan", fail)
    for id_ in "ab":
        faded.remember("Marmots whistle on the alp before the first snow falls.", id=id_, force=True)
    report = faded.consolidate(["cluster", "merge"], dry_run=True)
    assert [(each.agent, json.loads(each.item)) for each in report.errors] == [("merge", ["a", "b"])]


def test_a_merged_memory_counts_for_those_that_it_was_made_of(faded: Engine, tmp_path: Path) -> None:
    queries = golden(tmp_path / "golden.jsonl", {"query": "harbour of Aegina", "relevant": ["harbour"]})
    extra = {"cohesion": 1.0, "confidence": 0.95}
    faded.ledger.create("merge", ["harbour", "ravens"], "merge", extra_data=extra)
    report = faded.consolidate(["merge"], golden=queries)
    assert (report.lost, report.applied) == ((), 1)
    assert faded.get("harbour").status == "archived"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has 0 queries"),
        ("{", "line 1 of .* is not JSON"),
        ("[]", "line 1 of .* has no query"),
        ('{"query": "a", "relevant": ["b"]}\n\n{"query": " ", "relevant": ["b"]}', "line 3 of .* has no query"),
        ('{"query": "a"}', "does not name what is relevant"),
        ('{"query": "a", "relevant": []}', "does not name what is relevant"),
        ('{"query": "a", "relevant": "b"}', "does not name what is relevant"),
    ],
)
def test_a_file_that_holds_no_golden_queries_is_refused_before_anything_runs(
    faded: Engine, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text(text)
    before = dump(faded)
    with pytest.raises(UsageError, match=said):
        faded.consolidate(["decay"], golden=path)
    assert dump(faded) == before


def test_a_file_that_is_not_there_is_named(faded: Engine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere\.jsonl"):
        faded.consolidate(golden=tmp_path / "nowhere.jsonl")


def test_the_status_counts_what_waits(faded: Engine) -> None:
    faded.ledger.create("merge", ["harbour", "ravens"], "merge")
    blocked = faded.ledger.create("decay", ["harbour"], "gc")
    faded.ledger.block(blocked, "no")
    found = faded.consolidation_status()
    assert found.to_dict() == {
        "agents": {
            "decay": {"pending": 0, "in_progress": 0, "blocked": 1},
            "cluster": {"pending": 0, "in_progress": 0, "blocked": 0},
            "merge": {"pending": 1, "in_progress": 0, "blocked": 0},
            "promote": {"pending": 0, "in_progress": 0, "blocked": 0},
            "relations": {"pending": 0, "in_progress": 0, "blocked": 0},
        },
        "total_pending": 1,
        "rate_limit_remaining": 100,
    }
    faded.consolidate(["decay"])
    assert faded.consolidation_status("decay", rate_limit=50).to_dict() == {
        "agents": {"decay": {"pending": 0, "in_progress": 0, "blocked": 1}},
        "total_pending": 0,
        "rate_limit_remaining": 48,
    }


def test_what_is_no_agent_or_number_is_refused(book: Engine) -> None:
    with pytest.raises(UsageError, match="agents is 'tidy'"):
        book.consolidate(["tidy"])
    with pytest.raises(UsageError, match="agent is 'tidy'"):
        book.consolidation_status("tidy")
    with pytest.raises(UsageError, match="rate_limit is -1"):
        book.consolidate(rate_limit=-1)
    with pytest.raises(UsageError, match="dry_run is 'no'"):
        book.consolidate(dry_run="no")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="there is no issue 'x'"):
        book.process_issue("x")
    with pytest.raises(NotFoundError, match="no merge made memory 'x'"):
        book.unmerge("x")
    assert book.ledger.query() == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_agent_that_cannot_look_for_anything_does_not_stop_the_others(
    faded: Engine, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    def fail(_: object) -> list[str]:
        raise StoreError("the disk is full of eels", remedy="fish")

    monkeypatch.setattr("commonplace.consolidation.cluster.ClusterDetector.scan", fail)
    report = faded.consolidate(dry_run=dry_run)
    assert [(each.agent, each.item) for each in report.errors] == [("cluster", "")]
    assert "full of eels" in report.errors[0].error
    assert len(report.results["decay"]) == 2
    assert list(report.results) == ["decay", "cluster", "merge", "promote", "relations"]


def test_a_rehearsal_goes_on_from_what_it_would_have_archived(tmp_path: Path) -> None:
    """What would be merged is not linked besides, as it would not be in the run."""
    texts = (
        "Lena wants code reviews to be done within a day.",
        "Code reviews are to be done within a day, Lena wants.",
        "Lena: code reviews have to be done within a day.",
    )
    with commonplace.open(tmp_path / "store") as book:
        for text in texts:
            book.remember(text, force=True)
        rehearsed = book.consolidate(dry_run=True)
        (merged,) = rehearsed.results["merge"]
        assert isinstance(merged, MergeResult)
        assert (merged.success, merged.beads_issue_id) == (True, None)
        assert rehearsed.results["relations"] == ()
        report = book.consolidate()
        assert report.results["relations"] == ()
        assert report.results["merge"][0].model_copy(update={"beads_issue_id": None}) == merged


def test_a_rehearsal_groups_what_would_be_left(tmp_path: Path, clock: Clock) -> None:
    """A group of three, one of which fades before, is a group of the other two in the run."""
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        now = clock.now
        for days, text in ((60, "runs Postgres 15."), (2, "runs Postgres 16."), (1, "runs Postgres 17.")):
            clock.now = now - days * DAY_S
            book.remember(f"The booking service {text}")
        clock.now = now
        rehearsed = book.consolidate(["decay", "cluster"], dry_run=True)
        report = book.consolidate(["decay", "cluster"])
        (would,), (did,) = rehearsed.results["cluster"], report.results["cluster"]
        assert len(rehearsed.results["decay"]) == 1
        assert did.model_copy(update={"beads_issue_id": None}) == would


def test_a_rehearsal_leaves_to_cluster_the_pairs_that_it_links_or_proposes(tmp_path: Path) -> None:
    """In the run a link or an issue joins them by the time that relations are looked for."""
    texts = (
        "Retry webhooks with exponential backoff, five times at most.",
        "Webhooks are retried five times at most with exponential backoff.",
    )
    with commonplace.open(tmp_path / "store") as book:
        for text in texts:
            book.remember(text)
        assert len(book.consolidate(["relations"], dry_run=True).results["relations"]) == 1
        rehearsed = book.consolidate(dry_run=True)
        (group,) = rehearsed.results["cluster"]
        assert isinstance(group, ClusterResult) and group.action == "link"
        assert rehearsed.results["relations"] == book.consolidate().results["relations"] == ()


@pytest.mark.parametrize(("first", "second"), [("cluster", "relations"), ("relations", "cluster")])
def test_a_link_that_one_agent_was_refused_is_not_proposed_by_another(tmp_path: Path, first: str, second: str) -> None:
    """Who says no is not asked the same by the next agent."""
    with commonplace.open(tmp_path / "store") as book:
        book.remember("Retry webhooks with exponential backoff, five times at most.")
        book.remember("Webhooks are retried five times at most with exponential backoff.")
        ((asked,),) = book.consolidate([first]).results.values()
        assert asked.beads_issue_id is not None
        book.ledger.close(asked.beads_issue_id, "not wanted")
        book.consolidate([second])
        assert book.ledger.query() == []


def test_who_waits_is_told_which_agent_is_at_work(tmp_path: Path, clock: Clock) -> None:
    told: list[tuple[str, int, int]] = []
    with commonplace.open(
        tmp_path / "store", embedder="hashing", clock=clock, progress=lambda *what: told.append(what)
    ) as book:
        clock.now -= 61 * DAY_S
        book.remember("The harbour of Aegina froze over")
        book.remember("Ravens nest in the old lighthouse")
        clock.now += 61 * DAY_S
        told.clear()
        book.consolidate(["decay"])
    assert told == [("decay", 0, 2), ("decay", 1, 2)]


def test_what_a_run_looks_after_in_the_ledger_is_told_as_its_own(faded: Engine, clock: Clock) -> None:
    """Not as the act of the person whose machine it is."""
    issue = faded.ledger.create("merge", ["harbour", "ravens"], "merge")
    clock.now += 8 * DAY_S
    faded.consolidate(["decay"])
    (raised,) = [event for event in faded.ledger.history(issue) if event.act == "escalated"]
    assert raised.actor.startswith("consolidation@")


def test_what_was_proposed_for_the_sources_of_a_merge_goes_with_them(faded: Engine) -> None:
    """Nobody can do it any more; once the merge is undone it is proposed again."""
    for agent, ids in (("decay", ["harbour"]), ("promote", ["ravens"]), ("relations", ["ferry", "ravens"])):
        faded.ledger.create(agent, ids, "look")
    blocked = faded.ledger.create("decay", ["ravens"], "reinforce")
    faded.ledger.block(blocked, "no")
    kept = faded.ledger.create("decay", ["ferry"], "reinforce")
    merge = faded.ledger.create(
        "merge", ["harbour", "ravens"], "merge", extra_data={"cohesion": 1.0, "confidence": 1.0}
    )
    report = faded.consolidate(["merge"])
    assert [issue["id"] for status in ("open", "blocked") for issue in faded.ledger.query(status=status)] == [kept]
    reason = f"nothing is left to do: memory ravens is not active any more, by issue {merge}"
    assert faded.ledger.get(blocked).close_reason == reason
    faded.undo_consolidation(report.run)
    assert {each.memory_id for each in faded.consolidate(["decay"]).results["decay"]} == {"harbour", "ravens"}  # type: ignore[attr-defined]


def test_what_was_proposed_for_a_promoted_memory_goes_too(book: Engine) -> None:
    book.remember("The ferry leaves at nine", id="ferry")
    for _ in range(3):
        book.review("ferry")
    book.ledger.create("decay", ["ferry"], "reinforce")
    assert book.consolidate(["promote"]).applied == 1
    assert book.ledger.query() == []


@pytest.mark.parametrize("change", [{"tier": "long"}, None])
def test_what_was_proposed_for_a_memory_that_a_person_put_away_is_closed_by_the_next_run(
    faded: Engine, change: dict[str, str] | None
) -> None:
    """The agent whose issue it is would fail at it."""
    faded.ledger.create("decay", ["ferry"], "reinforce")
    if change is None:
        faded.archive("ferry")
    else:
        faded.update("ferry", **change)  # type: ignore[arg-type]
    report = faded.consolidate(["decay"])
    assert (report.errors, faded.ledger.query()) == ((), [])
