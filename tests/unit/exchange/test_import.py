"""Imports: all or nothing, once however often, and what is here already stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.stores import BACKENDS
from tests.unit.exchange.imports import (
    NAMESPACE,
    NOW,
    dump,
    import_file,
    import_given,
    into,
    link_line,
    memory_line,
    owner_line,
    written_by_hand,
)

from commonplace.errors import NotFoundError, StoreVersionError, UsageError
from commonplace.exchange.import_ import Counts, import_items
from commonplace.exchange.items import Item
from commonplace.exchange.read import Problem, Source, items_of, source_of
from commonplace.formats.foreign.reader import ForeignData, ForeignMemory
from commonplace.graph.kinds import Kinds
from commonplace.store.store import Store
from commonplace.types import FileProblem, Link, MemoryRecord, Owner, Selection

WEEK = (
    memory_line("a", "We chose MySQL for billing", at=10.0, until=20.0, tags=["db"], category="decision"),
    memory_line(
        "a", "We chose Postgres for billing", at=20.0, tags=["db"], category="decision", version=2, born_at=10.0
    ),
    memory_line("b", "Lunch was late", until=30.0, status="archived", uses=[11.0, 12.5], use_count=2, strength=1.5),
    memory_line("é\x01", "Third said this", session="s", tier="medium", metadata={"n": [1, None]}),
    link_line("a", "b", strength=0.5, created_at=3.0),
    owner_line("f", "def f():", "...", path="src/a.py", stamp={"sha256": "ab" * 32, "size": 3, "mtime_ns": 7}),
)


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each backend."""
    made = BACKENDS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """An export of a little of everything."""
    return written_by_hand(tmp_path / "week.jsonl", *WEEK)


def test_versions_times_and_use_are_kept(store: Store, week: Path) -> None:
    report = import_file(store, week)
    assert (report.memories, report.links, report.owners) == (Counts(added=3), Counts(added=1), Counts(added=1))
    first, last = store.versions(NAMESPACE, "a")
    assert (first.record.content, first.created_at, first.expired_at) == ("We chose MySQL for billing", 10.0, 20.0)
    assert (last.record.version, last.created_at, last.expired_at, last.owner.tags) == (2, 20.0, None, ("db",))
    [archived] = store.versions(NAMESPACE, "b")
    assert archived.record == MemoryRecord(
        "Lunch was late", status="archived", uses=(11.0, 12.5), use_count=2, strength=1.5
    )
    assert store.memory(NAMESPACE, "é\x01").record.metadata == '{"n": [1, null]}'  # type: ignore[union-attr]
    assert store.links(NAMESPACE) == [Link("a", "b", "related", 0.5, 3.0)]
    [(number, owner)] = store.artifacts(NAMESPACE)
    passages = store.passages(NAMESPACE, store.passages_of(NAMESPACE, [number]))
    assert (owner.path, [passage.chunk.text for passage in passages.values()]) == ("src/a.py", ["def f():", "..."])
    assert store.check() == []


def test_importing_twice_changes_nothing(store: Store, week: Path) -> None:
    import_file(store, week)
    before = (store.change(), store.due(NAMESPACE), dump(store))
    report = import_file(store, week)
    assert (report.memories, report.links, report.owners) == (
        Counts(unchanged=3),
        Counts(unchanged=1),
        Counts(unchanged=1),
    )
    assert (store.change(), store.due(NAMESPACE), dump(store)) == before


def test_use_since_the_export_is_no_conflict(store: Store, week: Path) -> None:
    """Whoever imports an old export again keeps what was recalled, promoted and archived since."""
    import_file(store, week)
    with store.change_memories(NAMESPACE) as change:
        known = change.find("a")
        assert known is not None
        change.revise(known.number, MemoryRecord(**{**_fields(known.record), "use_count": 9, "tier": "long"}))
    before = dump(store)
    assert import_file(store, week).memories == Counts(unchanged=3)
    assert dump(store) == before


def _fields(record: MemoryRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in MemoryRecord.__dataclass_fields__}


@pytest.mark.parametrize(
    "said",
    [
        {"category": "fact"},
        {"entities": ["Postgres"]},
        {"source": "minutes"},
        {"origin": "web"},
        {"derived_from": ["x"]},
        {"metadata": {"n": 1}},
        {"tags": ["db"]},
        {"session": "s"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_whatever_else_is_said_of_a_memory_is_other_content(tmp_path: Path, said: dict[str, Any]) -> None:
    """An import that took it for the same would drop it without a word, as what it was made of."""
    plain, other = memory_line("a", "We chose Postgres"), memory_line("a", "We chose Postgres", **said)
    store = Store.in_memory()
    import_file(store, written_by_hand(tmp_path / "plain.jsonl", plain))
    with pytest.raises(UsageError, match=r"with other content, nothing was imported: memory 'a'"):
        import_file(store, written_by_hand(tmp_path / "other.jsonl", other))


OTHERS = (
    memory_line("a", "We chose SQLite for billing"),
    memory_line("c", "New"),
    link_line("a", "b", strength=0.9),
    owner_line("other", "class A: ...", path="src/a.py"),
)


def test_conflicts_are_refused_and_named(store: Store, week: Path, tmp_path: Path) -> None:
    import_file(store, week)
    before = (store.change(), dump(store))
    other = written_by_hand(tmp_path / "o.jsonl", *OTHERS)
    message = (
        "3 items are here with other content, nothing was imported: memory 'a'; artifact 'other'; link from 'a' to 'b'"
        " ('related'); keep what is here with on_conflict='skip', or replace it with"
        " on_conflict='replace'"
    )
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        import_file(store, other)
    assert (store.change(), dump(store)) == before


def test_conflicts_are_skipped_if_that_is_said(store: Store, week: Path, tmp_path: Path) -> None:
    import_file(store, week)
    report = import_file(store, written_by_hand(tmp_path / "o.jsonl", *OTHERS), on_conflict="skip")
    assert (report.memories, report.links, report.owners) == (
        Counts(added=1, skipped=1),
        Counts(skipped=1),
        Counts(skipped=1),
    )
    assert report.conflicts[0] == "memory 'a'"
    assert store.memory(NAMESPACE, "a").record.content == "We chose Postgres for billing"  # type: ignore[union-attr]
    assert store.links(NAMESPACE)[0].strength == 0.5


def test_replacing_a_memory_writes_its_next_version(store: Store, week: Path, tmp_path: Path) -> None:
    import_file(store, week)
    other = written_by_hand(tmp_path / "o.jsonl", *OTHERS)
    report = import_file(store, other, on_conflict="replace")
    assert (report.memories, report.links, report.owners) == (
        Counts(added=1, replaced=1),
        Counts(replaced=1),
        Counts(replaced=1),
    )
    *_, before, last = store.versions(NAMESPACE, "a")
    assert (before.record.content, before.expired_at) == ("We chose Postgres for billing", NOW)
    assert (last.record.content, last.record.version, last.created_at) == ("We chose SQLite for billing", 3, NOW)
    assert [owner.id for _, owner in store.artifacts(NAMESPACE)] == ["other"]
    change = store.change()
    assert import_file(store, other, on_conflict="replace").memories == Counts(unchanged=2)
    assert store.change() == change


def test_an_archived_memory_replaces_a_live_one_archived(store: Store, tmp_path: Path) -> None:
    import_file(store, written_by_hand(tmp_path / "a.jsonl", memory_line("a", "old")))
    gone = memory_line("a", "new", until=20.0, status="archived")
    import_file(store, written_by_hand(tmp_path / "b.jsonl", gone), on_conflict="replace")
    assert store.memory(NAMESPACE, "a").expired_at == NOW  # type: ignore[union-attr]
    assert store.counts(NAMESPACE)["memories"] == 0
    assert store.check() == []


def test_a_dry_run_finds_what_is_wrong_and_writes_nothing(store: Store, week: Path, tmp_path: Path) -> None:
    report = import_file(store, week, dry_run=True)
    assert (report.memories, report.is_dry_run) == (Counts(added=3), True)
    assert (store.change(), store.namespaces()) == (0, [])
    with pytest.raises(UsageError, match="there is no memory 'x'"):
        import_file(store, written_by_hand(tmp_path / "o.jsonl", link_line("x", "y")), dry_run=True)


NO_VALUES = [
    (memory_line("a", ""), "line 2 (memory 'a'): the content is empty; say what is to be remembered"),
    (memory_line("a", "x\0"), "line 2 (memory 'a'): the content is binary"),
    (memory_line("a", "x" * 1_048_577), "the content has 1,048,577 bytes, the limit is 1,048,576"),
    (memory_line(" ", "x"), "line 2 (memory ' '): the id is ' '; give a text of 1 to 1000 characters"),
    (memory_line("a", "x", tier="ultra"), "tier is 'ultra', which is never stored; give short, medium or long"),
    (memory_line("a", "x", tier="warm"), "tier is 'warm'; give one of ultra, short, medium, long"),
    (memory_line("a", "x", trust=1.5), "trust is 1.5; give a number from 0 to 1"),
    (memory_line("a", "x", strength=7), "strength is 7.0; give a number from 0 to 2"),
    (memory_line("a", "x", version=0), "version is 0; give a whole number from 1"),
    (
        memory_line("a", "x", use_count=2**63),
        "use_count is 9223372036854775808; give a whole number of at most 64 bits",
    ),
    (memory_line("a", "x", use_count=True), "use_count is True; give a whole number"),
    (memory_line("a", "x", is_forced=1), "is_forced is 1; give a truth value"),
    (memory_line("a", "x", uses=[1.0] * 17), "uses holds 17 times, the limit is 16; give the latest"),
    (memory_line("a", "x", entities="Postgres"), "entities is 'Postgres'; give a list"),
    (memory_line("a", "x", tags=["t" * 201]), "give texts of 1 to 200 characters"),
    (memory_line("a", "x", metadata=[]), "metadata is []; give a JSON object"),
    (memory_line("a", "x", born_at="inf"), "born_at is inf; give an ISO 8601 time"),
    (
        memory_line("a", "x", vault_path="vault/../../a.md"),
        "vault_path is 'vault/../../a.md'; give a path below vault/",
    ),
    (memory_line("a", "x", vault_path="/etc/a.md"), "vault_path is '/etc/a.md'"),
    (memory_line("a", "x", at=20.0, until=10.0), "expired_at is 10.0, before created_at, 20.0"),
    (memory_line("a", "x", status="archived"), "status is 'archived', but expired_at is empty"),
    (memory_line("a", "x", colour="red"), "memoryrecord has the unknown entry 'colour'"),
    ({**memory_line("a", "x"), "created_at": "inf"}, "created_at is inf; give an ISO 8601 time"),
    ({**memory_line("a", "x"), "more": 1}, "a line of the type memory has the unknown entry 'more'"),
    ({"type": "memory", "owner": {}, "record": {}, "expired_at": None}, "a line of the type memory lacks 'created_at'"),
    ({**memory_line("a", "x"), "owner": {"id": "a", "kind": "knowledge"}}, "a memory has the kind 'knowledge'"),
    (
        {**memory_line("a", "x"), "owner": {"id": "a", "kind": "memory", "path": "p"}},
        "and the path 'p'; a memory is of no file",
    ),
    ({**memory_line("a", "x"), "record": "x"}, "memoryrecord is 'x'; give an object"),
    (owner_line(""), "the id is ''; give each owner an id of its own"),
    (owner_line("f", kind="file"), "kind is 'file'; give one of artifact, memory, knowledge"),
    ({**owner_line("f"), "passages": [{"text": "", "start_line": 2, "end_line": 1}]}, "a passage has the lines 2-1"),
    (link_line("a", "a"), "line 2 (link from 'a' to 'a'): the link leads to itself, or has no type"),
    (link_line("a", "b", strength=2), "strength is 2.0; give a number from 0 to 1"),
    (link_line("a", "b"), "line 2 (link from 'a' to 'b' ('related')): there is no memory 'a'; import it too"),
    (
        {"type": "image"},
        "line 2 (image None): the type of the line is 'image'; known are memory, link, owner, knowledge,",
    ),
]


@pytest.mark.parametrize(("line", "message"), NO_VALUES, ids=[message[-60:] for _, message in NO_VALUES])
def test_what_cannot_be_kept_is_refused_by_line_value_and_remedy(tmp_path: Path, line: Any, message: str) -> None:
    store = BACKENDS["sqlite"](tmp_path)
    path = written_by_hand(tmp_path / "e.jsonl", line, memory_line("z", "fine"))
    with pytest.raises(UsageError, match=f"1 item cannot be stored, nothing was imported: .*{re.escape(message)}"):
        import_file(store, path)
    assert (store.change(), store.namespaces()) == (0, [])
    report = import_file(store, path, skip_problems=True)
    assert [stored.owner.id for stored in store.memories(NAMESPACE, Selection())] == ["z"]
    assert (report.memories, len(report.problems)) == (Counts(added=1), 1)
    store.close()


TWICE = [
    (memory_line("a", "x"), memory_line("b", "y"), memory_line("a", "z")),
    (memory_line("a", "x", until=11.0), memory_line("a", "y")),
    (memory_line("a", "x"), memory_line("a", "y", version=2)),
    (owner_line("f"), owner_line("f")),
    (owner_line("f", path="p"), owner_line("g", path="p")),
    (memory_line("a", "x"), owner_line("a", kind="memory")),
    (memory_line("a", "x"), memory_line("b", "x"), link_line("a", "b"), link_line("a", "b", strength=0.1)),
]


@pytest.mark.parametrize("lines", TWICE)
def test_what_comes_twice_or_out_of_order_is_refused(store: Store, tmp_path: Path, lines: tuple[Any, ...]) -> None:
    reason = "it comes twice|follows version 1; give the oldest first|only the last version may be live"
    with pytest.raises(UsageError, match=reason):
        import_file(store, written_by_hand(tmp_path / "e.jsonl", *lines))
    assert store.change() == 0


def test_links_to_what_was_left_out_are_left_out_too(store: Store, tmp_path: Path) -> None:
    path = written_by_hand(tmp_path / "e.jsonl", memory_line("a", ""), memory_line("b", "x"), link_line("b", "a"))
    report = import_file(store, path, skip_problems=True)
    assert [problem.name for problem in report.problems] == ["memory 'a'", "link from 'b' to 'a' ('related')"]
    assert store.links(NAMESPACE) == []


def test_a_memory_and_a_document_of_its_kind_share_no_id(store: Store, tmp_path: Path) -> None:
    """One of them would overwrite the other."""
    memory = written_by_hand(tmp_path / "m.jsonl", memory_line("a", "x"))
    document = written_by_hand(tmp_path / "d.jsonl", owner_line("a", "x", kind="memory"))
    import_file(store, memory)
    with pytest.raises(UsageError, match="a memory has the id 'a'; give the document another one"):
        import_file(store, document, on_conflict="replace")
    import_file(store, document, namespace="other")
    with pytest.raises(UsageError, match="a document of the kind memory has the id 'a'"):
        import_file(store, memory, namespace="other", on_conflict="replace")


def edited(path: Path, number: int, old: str, new: str) -> Path:
    """Change a line, and nothing else, of a file."""
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    ("number", "old", "new", "message"),
    [
        (3, "Postgres", "MariaDB", "was changed or damaged: its lines have the sum"),
        (8, '"lines": 7', '"lines": 8', "has 7 lines before its last one, which counts 8"),
        (8, '"sha256"', '"sum"', "a line of the type end has the unknown entry 'sum'"),
        (8, "\n", "", "line 8 of week.jsonl is cut off"),
        (8, "\n", "\n{}\n", "continues after its last line"),
        (3, "{", "", "line 3 of week.jsonl is broken"),
        (3, "{", "NaN{", "line 3 of week.jsonl is broken: 'NaN{"),
        (3, "\n", "\n\n", "line 4 of week.jsonl is broken"),
        (3, '"memory"', "7", "line 3 of week.jsonl has no type"),
        (1, "commonplace-export", "other", "is not an export of Commonplace"),
        (1, '"version": 2', '"version": 0', "the version of week.jsonl is 0"),
        (1, "{", '{"more": 1, ', "the first line of week.jsonl has the unknown entry 'more'"),
    ],
)
def test_a_file_that_was_changed_or_cut_off_is_refused(
    store: Store, week: Path, number: int, old: str, new: str, message: str
) -> None:
    """With every line that can be read left out, nobody could say what is missing."""
    with pytest.raises(UsageError, match=message):
        import_file(store, edited(week, number, old, new), skip_problems=True)
    assert store.change() == 0


def test_an_export_of_a_newer_version_is_refused(store: Store, week: Path) -> None:
    with pytest.raises(StoreVersionError, match="knows version 2; upgrade Commonplace"):
        import_file(store, edited(week, 1, '"version": 2', '"version": 3'))


@pytest.mark.parametrize("lines", [0, 1, 4, 7])
def test_a_file_that_ends_early_is_refused(store: Store, week: Path, lines: int) -> None:
    week.write_text("".join(week.read_text().splitlines(keepends=True)[:lines]))
    with pytest.raises(UsageError, match=f"week.jsonl is cut off after {lines} lines: its last line is missing"):
        import_file(store, week)
    assert store.change() == 0


def test_secrets_are_replaced_on_the_way_in(store: Store, tmp_path: Path) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLF"
    path = written_by_hand(tmp_path / "e.jsonl", memory_line("a", f"key {key}"), owner_line("f", f"k = {key}"))
    report = import_file(store, path)
    assert key not in dump(store)
    assert dump(store).count("[redacted: ") == 2
    assert report.notices == ("what looks like a secret was replaced in 2 items: aws access key",)
    change = store.change()
    assert import_file(store, path).memories == Counts(unchanged=1)
    assert store.change() == change


def test_hundreds_of_refusals_are_counted_and_ten_are_named(store: Store, tmp_path: Path) -> None:
    path = written_by_hand(tmp_path / "e.jsonl", *(memory_line(f"m{number}", "") for number in range(300)))
    with pytest.raises(UsageError, match="300 items cannot be stored") as raised:
        import_file(store, path)
    assert "m9'" in str(raised.value)
    assert "m10'" not in str(raised.value)
    assert "and 290 more" in str(raised.value)


FOREIGN = ForeignData(
    (
        ForeignMemory("x", "Prefers tea", created_at=100.0, updated_at=200.0, tags=("drinks",), metadata={"user": "u"}),
        ForeignMemory("y", "Body", title="A title", status="archived", tier="long", source="notes"),
    ),
    (Link("x", "y", " about "),),
)


def test_what_other_systems_remember_becomes_memories(store: Store) -> None:
    """A document somebody wrote: not the agent's own words, and known since the other system knew it."""
    report = import_given(store, items_of(FOREIGN, "mem0", kinds=Kinds(), now=NOW, max_bytes=1000))
    assert (report.memories, report.links) == (Counts(added=2), Counts(added=1))
    [tea] = store.versions(NAMESPACE, "x")
    assert tea.record == MemoryRecord(
        "Prefers tea",
        tier="medium",
        source="mem0",
        origin="document",
        trust=0.6,
        metadata='{"user": "u"}',
        born_at=100.0,
        last_used=NOW,
    )
    assert (tea.owner, tea.created_at) == (Owner("x", "memory", tags=("drinks",), at=100.0), 100.0)
    [note] = store.versions(NAMESPACE, "y")
    assert (note.record.content, note.record.source, note.record.tier) == ("A title\n\nBody", "notes", "long")
    assert (note.owner.at, note.created_at, note.expired_at) == (None, NOW, NOW)
    assert store.links(NAMESPACE) == [Link("x", "y", "about", 1.0, NOW)]


def test_importing_another_system_later_again_changes_nothing(store: Store) -> None:
    import_given(store, items_of(FOREIGN, "mem0", kinds=Kinds(), now=NOW, max_bytes=1000))
    change = store.change()
    report = import_given(store, items_of(FOREIGN, "mem0", kinds=Kinds(), now=NOW + 1e6, max_bytes=1000))
    assert (report.memories, report.links, store.change()) == (Counts(unchanged=2), Counts(unchanged=1), change)


def test_what_another_system_s_files_lose_is_said_before_anything_is_written(store: Store) -> None:
    foreign = ForeignData((ForeignMemory("x", "y" * 2000),), problems=(FileProblem("m.json:3", "is not an object"),))
    with pytest.raises(
        UsageError, match=r"m\.json:3: is not an object; mem0 \(memory 'x'\): the content has 2,000 bytes"
    ):
        import_given(store, items_of(foreign, "mem0", kinds=Kinds(), now=NOW, max_bytes=1000))
    assert store.change() == 0


def test_what_nothing_is_lost_by_is_told_and_refuses_nothing(store: Store) -> None:
    """A link that leads nowhere stays in the text: one of them must not keep a thousand notes out."""
    told = FileProblem("a.md:3", "links [[Nowhere]], which is no note here: kept as text and entity alone")
    foreign = replace(FOREIGN, notices=(told,))
    for _ in range(2):
        report = import_given(store, items_of(foreign, "basic-memory", kinds=Kinds(), now=NOW, max_bytes=1000))
        assert report.notices == (f"a.md:3: {told.reason}",)
        assert report.problems == ()
    assert report.memories == Counts(unchanged=2)


def test_a_format_is_told_by_its_files(tmp_path: Path, week: Path) -> None:
    def name(path: Path, format_: str = "auto") -> str:
        return source_of(path, format_, kinds=Kinds(), now=NOW, max_bytes=1000).format

    (tmp_path / "m.json").write_text(json.dumps({"results": [{"id": "1", "memory": "Prefers tea"}]}))
    (tmp_path / "notes").mkdir()
    assert (name(week), name(tmp_path / "m.json"), name(tmp_path / "m.json", "mem0")) == ("commonplace", "mem0", "mem0")
    for path, format_, error, message in (
        (tmp_path / "gone", "auto", NotFoundError, "there is nothing at"),
        (week, "notion", UsageError, "format is 'notion'; give one of auto, commonplace, basic-memory"),
        (tmp_path / "notes", "commonplace", UsageError, "notes is not an export of Commonplace; name a file that"),
        (tmp_path / "m.json", "commonplace", UsageError, "m.json is not an export of Commonplace"),
        (tmp_path / "notes", "auto", UsageError, "is in no known format"),
    ):
        with pytest.raises(error, match=message):
            name(path, format_)


def test_what_others_write_between_checking_and_writing_is_not_overwritten(store: Store, week: Path) -> None:
    def items() -> Iterator[Item | Problem]:
        if passes.pop():
            import_file(store, week)
        return source.items()

    source = source_of(week, "commonplace", kinds=Kinds(), now=NOW, max_bytes=1000)
    passes = [True, False]  # the last one is taken first
    import_items(Source("test", items), into(store))
    assert len(store.versions(NAMESPACE, "a")) == 2
    assert store.check() == []
