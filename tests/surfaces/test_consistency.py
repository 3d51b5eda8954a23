"""A search speaks of one state of the store, whatever others write, delete or restore meanwhile."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.engine import Engine, maintenance
from commonplace.errors import EmbedderMismatchError, UsageError
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.models.hashing import HashingEmbedder
from commonplace.search.retrieve import Searcher
from commonplace.settings import Settings, load
from commonplace.settings.paths import DATABASE
from commonplace.store.store import Store
from commonplace.types import Document, Embedding, Head
from commonplace.types.graph import Mention


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def book(directory: Path) -> Iterator[Engine]:
    with commonplace.open(directory) as engine:
        yield engine


def animals(name: str, count: int) -> list[Document]:
    return [Document(f"{name}{number}", f"The {name} parade, part {number}.") for number in range(count)]


def found(book: Engine, query: str, **options: object) -> list[str]:
    result = book.search(query, min_score=0.0, **options)  # type: ignore[arg-type]
    return [hit.owner_id for hit in result.hits]


def test_a_restored_backup_is_not_answered_from_a_newer_index(book: Engine, directory: Path, tmp_path: Path) -> None:
    """Change numbers are used again after a restore; the index must notice that they mean other changes."""
    book.index_documents(animals("heron", 5))
    store = Store.open(directory / DATABASE, create=False)
    store.backup(tmp_path / "backup.db")
    store.close()
    book.index_documents(animals("walrus", 5))
    book.close()
    for file in directory.glob(f"{DATABASE}*"):
        file.unlink()
    shutil.copy(tmp_path / "backup.db", directory / DATABASE)
    with commonplace.open(directory) as restored:
        assert "another history" in restored.index_status().fault
        assert not restored.doctor(mend=False).is_healthy
        assert set(found(restored, "walrus parade", method="bm25")) == {f"heron{n}" for n in range(5)}
        restored.index_documents(animals("penguin", 5))
        assert set(found(restored, "penguin", method="bm25")) == {f"penguin{n}" for n in range(5)}
        assert found(restored, "walrus", method="bm25") == []
        assert restored.doctor(mend=False).is_healthy


def test_a_document_that_is_rewritten_all_the_time_is_always_found(directory: Path, book: Engine) -> None:
    """A search that read its parts at different moments lost what moved from the index to the tail."""
    others = [Document(f"other{n}", f"A remark on subject {n}.") for n in range(50)]
    book.index_documents([*others, Document("wanted", "The marker stands here, version 0.")])
    stop = threading.Event()

    def rewrite() -> None:
        with commonplace.open(directory) as writer:
            version = 0
            while not stop.is_set():
                version += 1
                writer.index_documents([Document("wanted", f"The marker stands here, version {version}.")])

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(150):
            result = book.search("marker stands", limit=3, min_score=0.0)
            assert result.hits[0].owner_id == "wanted"
            assert "marker" in result.hits[0].text
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_deleted_passages_take_no_place_in_the_first_stage(book: Engine, directory: Path, method: str) -> None:
    """Between a deletion and the next projection the index still holds what is gone."""
    book.index_documents(animals("heron", 400))
    store = Store.open(directory / DATABASE, create=False)
    kept = {"heron7", "heron300", "heron399"}
    owners = store.owners("default", list(range(1, 401)))
    store.delete_owners("default", [number for number, owner in owners.items() if owner.id not in kept])
    store.close()
    assert set(found(book, "heron parade", method=method)) == kept


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_one_long_text_does_not_take_all_places(book: Engine, method: str) -> None:
    """A change log mentions everything many times, and is still only one of ten hits."""
    line = "The turbine was serviced and its bearing was changed."
    long = "\n\n".join(f"# Entry {n}\n\n" + " ".join(f"{line} Round {n}.{k}." for k in range(12)) for n in range(300))
    short = [Document(f"note{n}", f"Note {n}: look at the turbine bearing in hall {n}.") for n in range(15)]
    book.index_documents([Document("log", long), *short])
    hits = found(book, "turbine bearing serviced", method=method, limit=10)
    assert len(hits) == 10
    assert "log" in hits
    assert len(found(book, "turbine bearing serviced", method=method, limit=20)) == 16


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_what_is_not_indexed_yet_hides_neither_behind_a_long_text_nor_others(
    book: Engine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Ten hits are ten owners in the index, in the tail, and when an unrelated tail stands beside the index."""
    line = "The turbine was serviced and its bearing was changed."
    long = "\n\n".join(f"# Entry {n}\n\n" + " ".join(f"{line} Round {n}.{k}." for k in range(12)) for n in range(300))
    short = [Document(f"note{n}", f"Note {n}: look at the turbine bearing in hall {n}.") for n in range(9)]
    wanted = {"log", *(document.id for document in short)}
    book.index_documents([Document("log", long), *short])
    monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
    book.index_documents([Document(f"recipe{n}", f"Potatoes with dill, number {n}.") for n in range(12)])
    assert set(found(book, "turbine bearing serviced", method=method, limit=10)) == wanted
    book.index_documents([Document("log", long), *short])
    assert set(found(book, "turbine bearing serviced", method=method, limit=10)) == wanted


def test_a_store_restored_under_an_open_engine_is_read_anew(
    book: Engine, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was analysed of the lost history must not be taken for what stands there now."""
    monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
    book.index_documents([Document("a", "The herons nest by the lake.")])
    store = Store.open(directory / DATABASE, create=False)
    store.backup(tmp_path / "backup.db")
    book.index_documents([Document("b", "Printing invoices needs the large tray.")])
    assert found(book, "printing invoices", method="bm25") == ["b"]
    source = sqlite3.connect(tmp_path / "backup.db")
    target = sqlite3.connect(directory / DATABASE)
    source.backup(target)
    source.close()
    target.close()
    with commonplace.open(directory) as other:
        other.index_documents([Document("c", "The login service checks the password.")])
    assert store.change() == 2
    store.close()
    assert found(book, "login service", method="bm25") == ["c"]
    assert found(book, "printing invoices", method="bm25") == []


def test_a_store_that_lost_rows_still_answers(book: Engine, directory: Path) -> None:
    """A damaged store may find less; it must not search for ever."""
    book.index_documents(animals("heron", 400))
    database = sqlite3.connect(directory / DATABASE)
    database.execute("DELETE FROM passage_vectors")
    database.commit()
    database.close()
    assert found(book, "heron parade") == []
    assert not book.doctor(mend=False).is_healthy


def test_several_passages_of_an_owner_are_hits_where_asked_for(book: Engine) -> None:
    """Whoever reads one manual wants its best pages."""
    sections = [f"# Part {n}\n\n" + f"The valve of pump {n} opens to the left. " * 20 for n in range(5)]
    book.index_documents([Document("manual", "\n\n".join(sections))])
    result = book.search("how does the valve open", per_owner=3, min_score=0.0)
    assert len(result.hits) == 3
    assert len({hit.id for hit in result.hits}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": "docs/**"}, "paths is the string"),
        ({"types": [""]}, "types holds ''"),
        ({"tags": [3]}, "tags holds 3"),
        ({"tags": 5}, "tags is 5; give a list of strings"),
        ({"kinds": ["nonsense"]}, "kind 'nonsense' is unknown; use one of artifact, memory, knowledge"),
        ({"limit": 2.5}, "limit is 2.5; give it a whole number from 1 to 1000"),
        ({"limit": "3"}, "limit is '3'"),
        ({"limit": True}, "limit is True"),
        ({"min_score": "high"}, "min_score is 'high'; give it a number from 0 to 1"),
        ({"min_score": float("nan")}, "min_score is nan"),
        ({"per_owner": 0}, "per_owner is 0"),
    ],
)
def test_an_option_of_the_wrong_type_is_named(book: Engine, options: dict[str, object], message: str) -> None:
    """A slip in calling code must not become another question."""
    with pytest.raises(UsageError, match=message):
        book.search("anything", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the query is None; give a text"):
        book.search(None)  # type: ignore[arg-type]


def test_a_string_is_no_list_of_globs(book: Engine, tmp_path: Path) -> None:
    """Its letters would be taken for globs, and `*` among them takes every file."""
    with pytest.raises(UsageError, match="include is the string"):
        book.index(tmp_path, include="*.py")  # type: ignore[arg-type]


def test_settings_without_a_store_open_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path would make a store of the working directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="neither `path` nor the settings name a store"):
        commonplace.open(settings=Settings())
    assert list(tmp_path.iterdir()) == []


def test_the_engine_and_its_settings_name_the_same_namespace(directory: Path) -> None:
    """Two answers to one question are one too many."""
    with commonplace.open(directory, namespace="team") as book:
        assert (book.namespace, book.settings.store.namespace) == ("team", "team")


def test_a_setting_binds_new_stores_and_an_argument_any(directory: Path, tmp_path: Path, book: Engine) -> None:
    """A preference for new stores must not shut the old ones."""
    book.index_documents(animals("heron", 1))
    preferred = load({"store.path": str(directory)}, environment={"COMMONPLACE_EMBEDDER_NAME": "hashing"})
    with commonplace.open(settings=preferred) as again:
        assert again.index_status().embedder.startswith("minilm@")
    with commonplace.open(tmp_path / "new", settings=preferred) as new:
        new.index_documents(animals("heron", 1))
        assert new.index_status().embedder.startswith("hashing@")
    with pytest.raises(EmbedderMismatchError, match="open it with embedder 'minilm'"):
        commonplace.open(directory, embedder="hashing")


def test_a_store_made_with_ones_own_embedder_asks_for_it(tmp_path: Path) -> None:
    """Commonplace cannot make an embedder that it does not know."""

    class Mine(HashingEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.stamp = Embedding("mine", "1", 64)

    with commonplace.open(tmp_path / "own", embedder=Mine()) as own:
        own.index_documents(animals("heron", 2))
    with pytest.raises(EmbedderMismatchError, match=r"an embedder 'mine' of your own; pass it to `commonplace.open`"):
        commonplace.open(tmp_path / "own")
    with commonplace.open(tmp_path / "own", embedder=Mine()) as own:
        assert found(own, "heron")


def test_every_word_of_a_long_tail_is_found(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the index, a search finds by its words what thousands of others resemble."""
    monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
    chance = random.Random(3)
    words = "amber basalt cedar delta ember fjord garnet harbour indigo juniper kelp lagoon".split()
    texts = [f"# Note {n}\n\nmarkersteady{n} v3.\n\n{' '.join(chance.choices(words, k=90))}" for n in range(3000)]
    book.index_documents(Document(f"n{n}", text) for n, text in enumerate(texts))
    assert book.index_status().waiting == 3000
    for number in (3, 7, 33, 1234, 2999):
        result = book.search(f"markersteady{number}", limit=3, min_score=0.0)
        assert result.hits[0].owner_id == f"n{number}"
        assert result.degraded


def test_a_long_rewriting_keeps_the_index_up_and_a_first_build_does_not(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others search meanwhile, and what the index lacks they must score one by one."""
    behind: list[int] = []

    def project(*arguments: object, **options: object) -> object:
        behind.append(book.index_status().waiting)
        return bring_up_to_date(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(maintenance, "PENDING_LIMIT", 200)
    monkeypatch.setattr(maintenance, "bring_up_to_date", project)
    book.index_documents(animals("heron", 800))
    assert behind == [800]
    behind.clear()
    book.index_documents(animals("heron", 800))
    assert behind == [256, 256, 256, 32]


def test_what_hangs_on_nothing_in_a_graph_is_told_of(tmp_path: Path) -> None:
    """Only a damaged store, or another program, leaves it so."""
    with commonplace.open(tmp_path / "store") as book:
        book.graph.add_episode("Ann lives in Oslo.", uuid="said", reference_time="2026-01-05")
        with book._runtime.store.change_memories("default") as change:
            change.graph.put(Mention("gone", "entity", "gone", 0, 3))
        looked = book.doctor(mend=False).findings
        assert [(each.part, each.mended, each.remedy) for each in looked] == [("store", False, "restore a backup")] * 2
    with commonplace.open(tmp_path / "other") as book:
        book.graph.add_episode("Ann lives in Oslo.", uuid="said", reference_time="2026-01-05")
        with book._runtime.store.change_memories("default") as change:
            [oslo] = change.graph.entities_by_name(["oslo"])["oslo"]
            change.graph.erase_entities([oslo.id])
        [finding] = book.doctor().findings
        assert (finding.problem, finding.mended) == ("There are relations whose target is gone: 1.", False)
        assert finding.remedy == "restore a backup"


def test_what_another_namespace_writes_moves_nothing_of_mine(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that moves would tell how much others write, and make every answer that is remembered useless."""
    ranked = []
    rank = Searcher._rank
    monkeypatch.setattr(Searcher, "_rank", lambda *given: ranked.append(1) or rank(*given))
    with commonplace.open(directory, namespace="mine") as mine, commonplace.open(directory, namespace="b") as theirs:
        mine.remember("The heron parade begins at the lake", id="heron")
        mine.graph.add_episode("heron.ts depends on lake.ts")
        store = mine._runtime.store

        def state() -> list[object]:
            result = mine.search("heron parade", min_score=0.0)
            status = mine.index_status()
            receipt = mine.why(result, result.hits[0].id)
            heads = {name: head for name, head in store.heads().items() if name.endswith("mine")}
            return [heads, status.change, status.indexed_change, status.waiting, receipt, result.hits]

        before, count = state(), len(ranked)
        with store.snapshot():
            head = store.head("mine")
            theirs.remember("What they keep of a heron", id="theirs")
            theirs.index_documents(animals("walrus", 50))
            theirs.graph.add_episode("walrus.ts depends on sea.ts")
            theirs.forget("theirs")
            assert (store.head("mine"), store.head("b")) == (head, Head())
        assert store.head("b").change == 4
        assert (state(), len(ranked)) == (before, count)
        theirs.forget_namespace("b", confirm="b")
        assert (state(), len(ranked)) == (before, count)
