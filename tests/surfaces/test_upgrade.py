"""A store changes its embedder: everything in it, while it is used, from the library and from the command line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.stubs import tiny_minilm
from tests.surfaces.conftest import Program

import commonplace
from commonplace.engine import Engine
from commonplace.errors import EmbedderMismatchError, ProviderError, StoreBusyError, UsageError
from commonplace.locks import FileLock
from commonplace.models import cross_encoder
from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.minilm import WEIGHTS, MinilmEmbedder
from commonplace.models.registry import AbsentEmbedder
from commonplace.types import Document, Embedding


class Stopping(HashingEmbedder):
    """Embeds so many batches, and then fails; or calls something before each."""

    def __init__(self, batches: int = 10**6, before: object = None) -> None:
        super().__init__()
        self._left = batches
        self._before = before

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        if callable(self._before):
            self._before()
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        return super().embed(texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a memory of two versions, documents, a graph, knowledge, and another namespace."""
    path = tmp_path_factory.mktemp("template") / "store"
    with commonplace.open(path, "other", embedder="static") as other:
        other.remember("What another namespace holds about kettles", id="theirs")
    with commonplace.open(path) as engine:
        engine.remember("Billing uses MySQL", id="m")
        engine.update("m", "Billing uses Postgres")
        engine.index_documents([Document(f"d{number}", f"Note {number} on the harbour") for number in range(600)])
        engine.graph.add_episode("Ann works for Acme.")
        engine.knowledge.index_knowledge("TravelAgent", [{"cityName": "Seoul"}])
    return path


@pytest.fixture
def book(template: Path, path: Path) -> Iterator[Engine]:
    shutil.copytree(template, path)
    with commonplace.open(path) as engine:
        yield engine


def found(book: Engine, query: str) -> list[str]:
    return [hit.owner_id for hit in book.search(query, min_score=0.0, method="semantic").hits]


def stamps(book: Engine) -> tuple[str, bool]:
    status = book.index_status()
    return status.embedder, status.upgrade is None


class TestUpgrading:
    def test_everything_is_embedded_and_found_by_the_new_vectors(self, book: Engine) -> None:
        """All namespaces, past versions, graph and knowledge; the index is made anew for the other dimensions."""
        book._runtime.store.begin_reembedding(HashingEmbedder().stamp)
        passages = len(book._runtime.store.unembedded(10_000))
        book._runtime.store.drop_reembedding()
        report = book.index_upgrade("hashing")
        assert (report.before, report.embedder) == ("static@2/256", str(HashingEmbedder().stamp))
        assert (report.passages, report.resumed) == (passages, 0)
        assert passages > 603
        status = book.index_status()
        assert (status.embedder, status.upgrade, status.fault, status.waiting) == (report.embedder, None, "", 0)
        assert found(book, "Billing uses Postgres")[0] == "m"
        assert book.graph.search_entities("Ann")
        assert book.knowledge.retrieve_relevant_knowledge("TravelAgent", "Seoul")
        assert book.doctor().is_healthy
        with commonplace.open(book.directory, "other") as other:
            assert found(other, "kettles") == ["theirs"]

    def test_it_leads_back(self, book: Engine) -> None:
        before = book._runtime.store.tokens("default", range(1, 700))
        book.index_upgrade("hashing")
        book.index_upgrade("static")
        assert book._runtime.store.tokens("default", range(1, 700)) == before
        assert stamps(book) == ("static@2/256", True)

    def test_the_present_embedder_leaves_all_as_it_is(self, book: Engine) -> None:
        change = book.index_status().change
        report = book.index_upgrade("static")
        assert (report.before, report.passages) == (report.embedder, 0)
        assert book.index_status().change == change

    def test_a_store_without_vectors_takes_any(self, path: Path) -> None:
        with commonplace.open(path) as empty:
            assert empty.index_upgrade("hashing").before == "none yet"
            assert empty.remember("One thing").id
            assert empty.index_status().embedder.startswith("hashing@")

    def test_one_that_was_ended_goes_on_where_it_was(self, book: Engine) -> None:
        """The old vectors answer meanwhile; status and doctor say how far it is, and how to go on or give up."""
        with pytest.raises(KeyboardInterrupt):
            book.index_upgrade(Stopping(batches=2))
        upgrade = book.index_status().upgrade
        assert upgrade is not None
        assert (upgrade.embedding.name, upgrade.done) == ("hashing", 512)
        assert found(book, "Billing uses Postgres")[0] == "m"
        [finding] = [each for each in book.doctor().findings if each.part == "embedder"]
        assert finding.problem.startswith("the change of the embedder to hashing@1/64 was interrupted: 512 of ")
        assert finding.remedy == (
            "continue with `commonplace index upgrade --embedder hashing`, "
            "or cancel with `commonplace index upgrade --embedder static`"
        )
        report = book.index_upgrade("hashing")
        assert (report.resumed, report.passages) == (512, upgrade.total - 512)
        assert stamps(book) == (str(HashingEmbedder().stamp), True)

    def test_it_is_given_up_with_the_present_embedder(self, book: Engine) -> None:
        with pytest.raises(KeyboardInterrupt):
            book.index_upgrade(Stopping(batches=1))
        report = book.index_upgrade("static")
        assert (report.given_up, report.passages) == (str(HashingEmbedder().stamp), 0)
        assert stamps(book) == ("static@2/256", True)
        assert book.doctor().is_healthy
        assert book.index_upgrade("static").given_up == ""

    def test_an_embedder_that_fails_half_way_says_how_far_it_came(self, book: Engine) -> None:
        """What was paid for is kept, and whoever pays wants to know that."""
        total = book.index_status().counts["passages"]

        class Failing(Stopping):
            def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
                try:
                    return super().embed(texts)
                except KeyboardInterrupt:
                    raise ProviderError("the API is out of order", status=503, remedy="try again later") from None

        with pytest.raises(ProviderError) as told:
            book.index_upgrade(Failing(batches=2))
        assert str(told.value).startswith("the embedder was not changed, 512 of ")
        assert str(told.value).endswith(
            "have their new vector: the API is out of order; try again later; the same command continues"
        )
        assert told.value.status == 503
        assert total > 512
        assert book.index_upgrade("hashing").resumed == 512

    def test_what_is_written_and_forgotten_meanwhile_is_right_afterwards(self, book: Engine, path: Path) -> None:
        """Another process goes on as ever; a forgotten text leaves no new vector behind."""
        other = commonplace.open(path)
        waiting = [lambda: other.forget("d1"), lambda: other.remember("Late news of the lighthouse", id="late")]
        book.index_upgrade(Stopping(before=lambda: waiting and waiting.pop()()))
        assert "late" in found(book, "Late news of the lighthouse")
        assert "d1" not in found(book, "Note 1 on the harbour")
        assert book._runtime.store.check() == []
        assert "late" in found(other, "Late news of the lighthouse")
        other.close()

    def test_an_embedder_of_ones_own_is_taken_and_nonsense_is_not(self, book: Engine) -> None:
        with pytest.raises(UsageError, match="unknown embedder 'nonsense'"):
            book.index_upgrade("nonsense")
        with pytest.raises(UsageError, match="give a name, or an object with `embed`"):
            book.index_upgrade(7)  # type: ignore[arg-type]
        assert stamps(book) == ("static@2/256", True)

    @pytest.mark.parametrize(
        "answer",
        [
            lambda texts: [[1.0] * 64] * (len(texts) + 1),
            lambda texts: [[1.0] * 63] * len(texts),
            lambda texts: [[float("nan")] * 64] * len(texts),
            lambda texts: [],
        ],
    )
    def test_what_is_no_vector_for_each_text_is_refused(self, book: Engine, answer: Any) -> None:
        """An embedder may be somebody's own; the store keeps what it has."""

        class Odd(HashingEmbedder):
            def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
                return answer(texts)  # type: ignore[no-any-return]

        with pytest.raises(ProviderError, match="something other than a vector for each of 256 texts"):
            book.index_upgrade(Odd())
        assert book.index_status().embedder == "static@2/256"

    def test_an_embedder_without_a_stamp_is_refused(self, book: Engine) -> None:
        """The contract of knowledge has such ones; nobody could tell a store's vectors from another's."""

        class Stampless:
            stamp = "mine"

            def embed(self, *texts: str) -> list[list[float]]:
                return [[1.0] for _ in texts]

        with pytest.raises(UsageError, match="an object with `embed` and a `stamp`"):
            book.index_upgrade(Stampless())  # type: ignore[arg-type]

    def test_two_at_once_are_refused(self, book: Engine, path: Path) -> None:
        """One would drop what the other made."""
        with FileLock(path / "upgrade.lock").hold(1), pytest.raises(StoreBusyError, match="index status"):
            book.index_upgrade("hashing")


class TestOthersThatHaveTheStoreOpen:
    def test_they_take_up_the_new_embedder_with_their_next_call(self, book: Engine, path: Path) -> None:
        """A server that runs all day needs no restart, whatever it does next."""
        others = [commonplace.open(path) for _ in range(4)]
        for other in others:
            assert found(other, "Billing uses Postgres")[0] == "m"
        others[0].remember("So that it has a keeper", id="before")
        book.index_upgrade("hashing")
        others[0].remember("A memory by the new embedder", id="after")
        assert found(others[1], "A memory by the new embedder")[0] == "after"
        others[2].forget("before")
        assert others[2].doctor().is_healthy
        others[3].index_documents([Document("new", "A document by the new embedder")])
        assert found(book, "A document by the new embedder")[0] == "new"
        assert book._runtime.store.check() == []
        for other in others:
            other.close()

    def test_a_long_run_goes_on_by_the_new_embedder(self, book: Engine, path: Path) -> None:
        """It was begun by the old one, and must not fail after an hour."""
        other = commonplace.open(path)

        def documents() -> Iterator[Document]:
            for number in range(300):
                if number == 280:
                    book.index_upgrade("hashing")
                yield Document(f"n{number}", f"New note {number} on the lighthouse")

        assert other.index_documents(documents()).passages == 300
        assert other._runtime.store.check() == []
        assert found(other, "New note 299 on the lighthouse")
        assert other.index_status().counts["owners"] > 900
        other.close()

    def test_memories_of_the_process_stay_found(self, book: Engine, path: Path) -> None:
        """They have a store of their own, which no other process can change."""
        other = commonplace.open(path)
        other.remember("A passing thought of the lighthouse", tier="ultra", id="ultra")
        book.index_upgrade("hashing")
        assert "ultra" in [hit.owner_id for hit in other.search("passing thought of the lighthouse").hits]
        other.close()

    def test_one_that_cannot_have_the_embedder_says_so(self, book: Engine, path: Path) -> None:
        """Vectors of an embedder that only another program has."""

        class Own(HashingEmbedder):
            def __init__(self) -> None:
                super().__init__()
                self.stamp = Embedding("own", "1", self.stamp.dimensions)

        other = commonplace.open(path)
        book.index_upgrade(Own())
        with pytest.raises(EmbedderMismatchError, match="an embedder 'own' of your own; pass it to"):
            other.search("harbour")
        with pytest.raises(EmbedderMismatchError, match="pass it to"):
            other.remember("One thing")
        with pytest.raises(EmbedderMismatchError, match="pass it to"):
            commonplace.open(path)
        other.close()
        with commonplace.open(path, embedder=Own()) as own:
            assert found(own, "Billing uses Postgres")[0] == "m"


class TestGraphsWhileItChanges:
    """Their texts are embedded anew by whoever takes something out of them, in the transaction that does."""

    @pytest.fixture
    def told(self, path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Engine]:
        """A store with a graph whose embedder another process changes just before this one begins a change."""
        with commonplace.open(path) as book, commonplace.open(path) as other:
            book.graph.add_episode("Agnes Abernathy works for Quillfeather.", uuid="stays", reference_time="2026-01-05")
            book.graph.add_episode("Agnes Abernathy uses the kettle.", uuid="goes", reference_time="2026-01-06")
            change_memories, left = book._runtime.store.change_memories, list(range(getattr(request, "param", 1)))

            def changing(*arguments: Any, **named: Any) -> Any:
                if left and left.pop() == 0:
                    other.index_upgrade("hashing")
                return change_memories(*arguments, **named)

            monkeypatch.setattr(book._runtime.store, "change_memories", changing)
            yield book
            assert left == []
            assert book._runtime.store.check() == []
            assert book.doctor().findings == ()
            assert stamps(book) == (str(HashingEmbedder().stamp), True)
            assert book.graph.search_entities("Agnes Abernathy")

    @pytest.mark.parametrize("dry_run", [True, False])
    def test_what_forgetting_leaves_has_vectors_of_the_new_one(self, told: Engine, dry_run: bool) -> None:
        receipt = told.forget("goes", dry_run=dry_run)
        assert receipt.counts["episodes"] == 1

    @pytest.mark.parametrize("told", [1, 2, 3], indirect=True)
    def test_what_is_cleaned_of_secrets_has_vectors_of_the_new_one(self, told: Engine) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
        with told._runtime.store._connections.writing() as db:
            db.execute("UPDATE entities SET summary = ?", (f"has {secret}",))
        assert told.doctor(secrets=True).findings
        assert not any(secret in entity.summary for entity in told.graph.search_entities("Agnes Abernathy"))


class TestAnotherEmbedderThanTheStores:
    def test_opening_with_it_says_what_to_do(self, book: Engine, path: Path) -> None:
        book.close()
        with pytest.raises(EmbedderMismatchError) as told:
            commonplace.open(path, embedder="hashing")
        assert str(told.value).endswith(
            "open it with embedder 'static', or change its embedder with `commonplace index upgrade --embedder hashing`"
        )

    def test_a_store_of_another_release_is_searched_by_words_until_it_is_upgraded(
        self, book: Engine, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A new table makes other vectors. What is stored stays there to be read, found and embedded anew."""
        book.close()
        newer = Embedding("hashing", "2", HashingEmbedder().stamp.dimensions)
        with commonplace.open(path) as now:
            now.index_upgrade("hashing")
        monkeypatch.setattr("commonplace.models.hashing.VERSION", newer.version)
        with commonplace.open(path) as later:
            assert isinstance(later._runtime.embedder, AbsentEmbedder)
            result = later.search("Billing uses Postgres")
            assert result.hits[0].owner_id == "m"
            assert result.degraded
            assert any("index upgrade --embedder hashing" in notice for notice in result.notices)
            with pytest.raises(EmbedderMismatchError, match="index upgrade --embedder hashing"):
                later.remember("One thing")
            assert [each.part for each in later.doctor().findings] == ["embedder"]
            assert later.index_upgrade("hashing").embedder == str(newer)
            assert not later.search("Billing uses Postgres").degraded
            assert later.remember("One thing").id


class TestATransformerThatIsNotWhole:
    """Its weights are in the wheel; a disk, a copy or a clean-up may have spoilt them."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return where the transformer's files lie, here of one of chance weights."""
        place = tiny_minilm.write(tmp_path / "tiny")
        monkeypatch.setattr(MinilmEmbedder, "load", lambda: MinilmEmbedder(place))
        return place

    @pytest.fixture
    def filled(self, tmp_path: Path, place: Path) -> Path:
        path = tmp_path / "of-the-transformer"
        with commonplace.open(path, embedder="minilm") as book:
            book.remember("Billing uses Postgres.")
            assert not book.recall("Billing uses Postgres").degraded
            assert not book.doctor().findings
        return path

    @pytest.mark.parametrize(("damage", "told"), [("missing", "is missing"), ("cut short", "bytes, expected")])
    def test_a_store_goes_on_by_words_and_says_so(self, damage: str, told: str, place: Path, filled: Path) -> None:
        weights = place / WEIGHTS
        if damage == "missing":
            weights.unlink()
        else:
            weights.write_bytes(weights.read_bytes()[:-1])
        with commonplace.open(filled) as book:
            result = book.recall("which database has billing, Postgres?")
            assert [hit.text for hit in result.hits] == ["Billing uses Postgres."]
            assert result.degraded
            assert any(told in notice and "reinstall Commonplace" in notice for notice in result.notices)
            (finding,) = book.doctor().findings
            assert (finding.part, finding.remedy) == ("embedder", "reinstall Commonplace")
            assert told in finding.problem
            book.remember("The office is in Lisbon.")
            assert book.recall("where is the office, Lisbon?").hits[0].text == "The office is in Lisbon."
            assert book.index_status().unembedded > 0
        tiny_minilm.write(place)
        with commonplace.open(filled) as book:
            assert not book.doctor().findings
            assert not book.recall("Billing uses Postgres").degraded
            assert book.index_status().unembedded == 0

    def test_damaged_corrections_are_found(self, place: Path, filled: Path) -> None:
        """Memories are compared without a reading then, and only this says why."""
        (place / cross_encoder.WEIGHTS).unlink()
        with commonplace.open(filled) as book:
            (finding,) = book.doctor().findings
        assert (finding.part, finding.remedy) == ("embedder", "reinstall Commonplace")
        assert "cross_encoder.bin is missing" in finding.problem

    def test_another_embedder_can_be_taken(self, place: Path, filled: Path) -> None:
        """Who cannot install anything is not left with half a store."""
        (place / WEIGHTS).unlink()
        with commonplace.open(filled) as book:
            book.index_upgrade("static")
            assert not book.recall("Billing uses Postgres").degraded
            assert not book.doctor().findings

    def test_a_flipped_bit_is_found_by_doctor(self, place: Path, filled: Path) -> None:
        """Vectors are a little wrong then, and nothing else tells."""
        data = bytearray((place / WEIGHTS).read_bytes())
        data[len(data) // 2] ^= 1
        (place / WEIGHTS).write_bytes(data)
        with commonplace.open(filled) as book:
            assert not book.recall("Billing uses Postgres").degraded
            (finding,) = book.doctor().findings
            assert (finding.part, finding.remedy) == ("embedder", "reinstall Commonplace")
            assert "has sha256" in finding.problem


class TestCommandLine:
    def test_the_command_upgrades_and_says_what_it_did(
        self, bare: Program, book: Engine, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also to the transformer, here one of chance weights."""
        book.close()
        monkeypatch.setattr(MinilmEmbedder, "load", lambda: MinilmEmbedder(tiny_minilm.write(tmp_path / "tiny")))
        store = f"--store={path}"
        done = bare.json("index", "upgrade", "--embedder", "minilm", store)
        assert (done["before"], done["embedder"], done["resumed"]) == ("static@2/256", "minilm@2/32", 0)
        assert "embedder  minilm@2/32" in bare.run("index", "status", store).stdout
        assert "static@2/256: " in bare.run("index", "upgrade", "--embedder", "static", store).stdout
        assert "made by static@2/256 already" in bare.run("index", "upgrade", "--embedder", "static", store).stdout

    def test_a_build_may_name_the_embedder_of_artifacts(self, bare: Program) -> None:
        Path("notes.md").write_text("# Boats\n\nThe ferry leaves at nine.\n")
        bare.run("init")
        bare.run("index", "build", "--embedder", "hashing")
        done = bare.json("index", "upgrade", "--embedder", "hashing", "--for", "artifacts")
        assert done["before"] == done["embedder"]
        assert bare.json("search", "ferry")["artifacts"][0]["path"] == "notes.md"

    def test_status_and_doctor_tell_of_one_that_was_ended(self, bare: Program, book: Engine, path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            book.index_upgrade(Stopping(batches=1))
        book.close()
        store = f"--store={path}"
        assert "upgrade  to hashing@" in bare.run("index", "status", store).stdout
        assert bare.json("index", "status", store)["upgrade"]["done"] == 256
        told = bare.run("doctor", store, code=1).stdout
        assert "embedder: the change of the embedder to hashing@1/64 was interrupted" in " ".join(told.split())
        shown = bare.run("index", "upgrade", "--embedder", "static", store).stdout
        assert shown == "Cancelled the change to hashing@1/64.\nThe vectors are made by static@2/256 already.\n"
