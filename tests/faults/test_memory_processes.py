"""Many processes that remember in one store at once: nothing is lost, doubled, mixed up, or refused as locked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.faults.rememberers import marker, sentence
from tests.processes import start

import commonplace
from commonplace.engine import Engine

SCRIPT = Path(__file__).with_name("rememberers.py")
MANY, SOME = 8, 4


def at_once(store: Path, *tasks: tuple[str, dict[str, Any]], may_say: str = "") -> list[Any]:
    """Start a process for each task, let all begin at the same moment, and return what came of each.

    Nothing may stand on standard error but lines with the words `may_say`.
    """
    started = [start(SCRIPT, role, store, json.dumps(arguments)) for role, arguments in tasks]
    for process in started:
        if process.stdout.readline() != "ready\n":
            raise AssertionError(process.communicate()[1])
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate() for process in started]
    errors = [line for _, said in ended for line in said.splitlines() if not may_say or may_say not in line]
    assert ([process.returncode for process in started], errors) == ([0] * len(started), [])
    return [json.loads(output) for output, _ in ended]


@pytest.fixture
def embedder() -> str:
    """What a store embeds with where vectors do not matter: it needs no model in each process."""
    return "hashing"


@pytest.fixture
def store(tmp_path: Path, embedder: str) -> Iterator[Path]:
    """A store that is whole when the test is over."""
    directory = tmp_path / ".commonplace"
    commonplace.open(directory, embedder=embedder).close()
    yield directory
    with commonplace.open(directory) as book:
        report = book.doctor(mend=False)
        assert [finding for finding in report.findings if not finding.problem.startswith("the index is missing")] == []


def remembered(book: Engine) -> int:
    return book.index_status().counts["memories"]


def fill_at_once(store: Path, count: int) -> int:
    """Let eight processes remember, look for every single memory afterwards, and return how many there are."""
    names = "abcdefgh"
    found = at_once(store, *(("fill", {"name": name, "count": count}) for name in names))
    expected = {
        id_: (sentence(name, number), marker(name, number))
        for name, ids in zip(names, found, strict=True)
        for number, id_ in enumerate(ids)
    }
    assert len(expected) == MANY * count
    with commonplace.open(store) as book:
        listed = {memory.id: memory.content for memory in book.list(limit=10_000)}
        assert listed == {id_: text for id_, (text, _) in expected.items()}
        for id_, (text, word) in expected.items():
            assert (book.get(id_).content, book.get(id_).version) == (text, 1)
            assert [hit.owner_id for hit in book.search(word, method="bm25", min_score=0.0).hits] == [id_]
        return remembered(book)


@pytest.mark.parametrize("embedder", ["minilm"])
def test_eight_processes_remember_and_search_at_once(store: Path) -> None:
    """A server for each client, hooks and a command line share one store."""
    assert fill_at_once(store, 15) == MANY * 15


@pytest.mark.soak
@pytest.mark.parametrize("embedder", ["minilm"])
def test_eight_processes_remember_four_thousand_memories(store: Path) -> None:
    """So many that the index is made anew while they write."""
    assert fill_at_once(store, 500) == MANY * 500


def test_what_many_remember_at_once_is_one_memory_that_counts_them(store: Path) -> None:
    """Hooks of several clients see the same message."""
    text = "The heron stands in the shallow water"
    answers = at_once(store, *(("repeat", {"text": text, "count": 5, "tags": []}) for _ in range(SOME)))
    told = [tuple(answer) for answers_of_one in answers for answer in answers_of_one]
    assert len({id_ for id_, _ in told}) == 1
    assert sorted(outcome for _, outcome in told) == ["added"] + ["touched"] * (5 * SOME - 1)
    with commonplace.open(store) as book:
        [memory] = book.list()
        assert (memory.content, memory.use_count, remembered(book)) == (text, 5 * SOME - 1, 1)


def test_a_memory_that_many_repeat_gains_the_tags_of_all_of_them(store: Path) -> None:
    """Each says what it is for, and none may undo what another one said."""
    tags = [f"tag{number}" for number in range(SOME)]
    text = "The heron stands in the shallow water"
    at_once(store, *(("repeat", {"text": text, "count": 2, "tags": [tag]}) for tag in tags))
    with commonplace.open(store) as book:
        [memory] = book.list()
        assert (sorted(memory.tags), memory.use_count, memory.version) == (tags, 2 * SOME - 1, SOME)
        assert [found.id for tag in tags for found in book.list(tags=[tag])] == [memory.id] * SOME


def test_turns_that_many_add_to_one_session_stand_in_one_order(store: Path) -> None:
    """Neighbours lend each other score: two turns in one place would be neighbours of neither."""
    answers = at_once(store, *(("talk", {"session": "s", "name": f"p{n}", "count": 12}) for n in range(SOME)))
    places = sorted((position, id_) for answer in answers for position, id_ in answer)
    assert [position for position, _ in places] == list(range(SOME * 16))
    for answer in answers:
        assert all(first[0] < second[0] for first, second in pairwise(answer))
        twos = [(answer[at][0], answer[at + 1][0]) for at in range(0, 16, 4)]
        assert all(second == first + 1 for first, second in twos), "what is given at once stands together"
    with commonplace.open(store) as book:
        turns = sorted(book.list(sessions=["s"], limit=1000), key=lambda memory: memory.position)
        assert [(turn.position, turn.id) for turn in turns] == places


def test_no_touch_is_lost(store: Path) -> None:
    """What is used often must stay."""
    with commonplace.open(store) as book:
        book.remember("The heron stands in the water", id="it")
    at_once(store, *(("touch", {"id_": "it", "count": 25}) for _ in range(SOME)))
    with commonplace.open(store) as book:
        assert book.get("it").use_count == 25 * SOME


def test_updates_of_different_fields_do_not_undo_each_other(store: Path) -> None:
    """Each says what is to be new; what it does not name stays as others leave it."""
    with commonplace.open(store) as book:
        book.remember("The heron stands", id="it", entities=["heron"])
    wanted: dict[str, list[Any]] = {
        "content": [f"The heron stands, seen {number} times" for number in range(15)],
        "tags": [[f"tag{number}"] for number in range(15)],
        "metadata": [{"seen": number} for number in range(15)],
        "source": [f"watch {number}" for number in range(15)],
    }
    tasks = [("update", {"id_": "it", "field": field, "values": values}) for field, values in wanted.items()]
    versions = at_once(store, *tasks, ("touch", {"id_": "it", "count": 15}))[:-1]
    assert sorted(version for answer in versions for version in answer) == list(range(2, 62))
    with commonplace.open(store) as book:
        it = book.get("it")
        assert (it.content, it.tags) == ("The heron stands, seen 14 times", ("tag14",))
        assert (it.metadata, it.source, it.entities) == ({"seen": 14}, "watch 14", ("heron",))
        assert (it.version, it.use_count) == (61, 15)
        assert [version.version for version in book.versions("it")] == list(range(1, 62))


def test_putting_away_and_changing_one_memory_at_once_leaves_it_whole(store: Path) -> None:
    """A change comes before it is put away, or finds it gone; there is nothing between."""
    with commonplace.open(store) as book:
        book.remember("The heron stands", id="it")
    [*away, _, _] = at_once(
        store,
        *(("put_away", {"id_": "it", "count": 10}) for _ in range(2)),
        *(("use_while_it_is_there", {"id_": "it", "count": 20}) for _ in range(2)),
    )
    with commonplace.open(store) as book:
        assert sum(away) >= 10
        versions = book.versions("it")
        assert [version.version for version in versions] == list(range(1, len(versions) + 1))
        assert all(
            earlier.expired_at is not None and earlier.expired_at <= later.updated_at
            for earlier, later in pairwise(versions)
        )
        assert versions[-1].expired_at is None
        assert [hit.text for hit in book.recall("heron", min_score=0.0).hits] == [versions[-1].content]


def test_what_some_forget_while_others_remember_is_gone_and_nothing_else(store: Path) -> None:
    """Each forgetting writes the index and the database anew, under the hands of everybody else."""
    texts = {f"old {number}": sentence("old", number) for number in range(12)}
    with commonplace.open(store) as book:
        book.remember_many([{"content": text, "id": id_} for id_, text in texts.items()])
        book.index_documents([])
    names, [first, second] = "abcd", [list(texts)[:5], list(texts)[5:10]]
    *found, clean, also_clean = at_once(
        store,
        *(("fill", {"name": name, "count": 25}) for name in names),
        ("forget", {"ids": first}),
        ("forget", {"ids": second}),
        # So says whoever looks at a page after the one has erased a memory and before he has cleaned the page.
        may_say="which was forgotten, and its entry was removed",
    )
    assert (clean, also_clean) == ([True] * 5, [True] * 5)
    kept = {
        id_: sentence(name, number) for name, ids in zip(names, found, strict=True) for number, id_ in enumerate(ids)
    }
    kept |= {id_: texts[id_] for id_ in ("old 10", "old 11")}
    with commonplace.open(store) as book:
        assert book.doctor().is_healthy
        assert {memory.id: memory.content for memory in book.list(limit=10_000)} == kept
        assert sorted(id_ for receipt in book.receipts() for id_ in receipt.ids) == sorted((*first, *second))
        assert [receipt.waiting for receipt in book.receipts()] == [()] * 10
        gone = [marker("old", number).encode() for number in range(10)]
        files = [path for path in store.rglob("*") if path.is_file()]
        assert [(path, word) for path in files for word in gone if word in path.read_bytes()] == []
        for number in range(12):
            found = book.search(marker("old", number), method="bm25", min_score=0.0)
            hits = () if found.corrected else found.hits  # a word that nothing holds is taken for one that is near
            assert [hit.owner_id for hit in hits] == ([f"old {number}"] if number >= 10 else [])
