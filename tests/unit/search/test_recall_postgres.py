"""In a namespace of which few passages are candidates, PostgreSQL finds what the index beside a file finds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from tests import postgres
from tests.unit.search.notebook import Notebook, notebook

from commonplace.index import dense
from commonplace.search import recall_postgres
from commonplace.store import postings
from commonplace.store.postgres import Address, PostgresConnections, make
from commonplace.types import Document, Filter

WORDS = (
    "billing login session token invoice payment kitchen garden train station doctor school printer database server "
    "deployment release meeting Monday coffee window bridge river mountain paper letter phone camera music piano"
).split()


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 14))).capitalize() + "."


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Notebook, Notebook]:
    """The same passages beside a file and in PostgreSQL, most of them packed there; half of them have a tag."""
    monkeypatch.setattr(postings, "TAIL", 100)
    monkeypatch.setattr(postings, "MERGED", 3)
    monkeypatch.setattr(postings, "LARGE", 200)
    monkeypatch.setattr(recall_postgres, "ALL_EXACT", 100)
    monkeypatch.setattr(recall_postgres, "CANDIDATES", 50)
    monkeypatch.setattr(dense, "CANDIDATES", 100)
    rng = random.Random(7)
    documents = [Document(f"d{n}", sentence(rng), tags=("even",) if n % 2 == 0 else ()) for n in range(600)]
    local, stored = (notebook(name, tmp_path / name) for name in ("sqlite", "postgres"))
    for book in (local, stored):
        for begin in range(0, len(documents), 150):
            book.index_documents(*documents[begin : begin + 150])
        found = book.store.owner_numbers(book.namespace, "artifact", [f"d{n}" for n in range(0, 600, 9)])
        book.store.delete_owners(book.namespace, list(found.values()))
    local.project()
    return local, stored


@pytest.mark.parametrize("few_owners", [2_000, 10])
def test_the_first_five_are_those_of_an_index(
    books: tuple[Notebook, Notebook], few_owners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_postgres, "_FEW_OWNERS", few_owners)
    monkeypatch.setattr(recall_postgres, "_LOOKED_UP", 40)
    local, stored = books
    assert stored.store._connections.rows("SELECT count(*) FROM segments", {"namespace": None})[0][0] >= 2
    rng = random.Random(11)
    questions = [" ".join(rng.sample(WORDS, 3)) for _ in range(40)]
    for wanted in (Filter(), Filter(tags=("even",))):
        same = [
            local.found(each, limit=5, stage1_limit=10, wanted=wanted)
            == stored.found(each, limit=5, stage1_limit=10, wanted=wanted)
            for each in questions
        ]
        assert sum(same) >= 0.95 * len(same)
    assert stored.store.check() == []
    for book in books:
        book.close()


def test_of_few_passages_in_scope_all_vectors_are_compared(
    books: tuple[Notebook, Notebook], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the index does: a filter leaves 80 of 680 passages, and ten would be candidates."""
    monkeypatch.setattr(recall_postgres, "CANDIDATES", 10)
    monkeypatch.setattr(recall_postgres, "CANDIDATES_PER_HIT", 1)
    local, stored = books
    for book in books:
        rng = random.Random(13)
        book.index_documents(*(Document(f"few{n}", sentence(rng), tags=("few",)) for n in range(80)))
    local.project()
    for question in (" ".join(rng.sample(WORDS, 3)) for _ in range(5)):
        asked = {"wanted": Filter(tags=("few",)), "method": "semantic", "limit": 10, "stage1_limit": 10}
        assert stored.found(question, **asked) == local.found(question, **asked)
    for book in books:
        book.close()


def test_the_vectors_of_a_large_namespace_are_found_by_its_index(
    books: tuple[Notebook, Notebook], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (postings, recall_postgres):
        monkeypatch.setattr(module, "LEAST_INDEXED", 500)
    _, stored = books
    questions = [" ".join(random.Random(n).sample(WORDS, 3)) for n in range(10)]

    def found(wanted: Filter) -> list[list[str]]:
        stored.index_documents(Document("another", "Xylophone."))  # what was found before is not given again
        return [stored.found(each, limit=5, method="semantic", wanted=wanted) for each in questions]

    with monkeypatch.context() as patched:  # all are compared
        patched.setattr(recall_postgres, "ALL_EXACT", 2_000)
        whole, even = found(Filter()), found(Filter(tags=("even",)))
    connections = stored.store._connections
    assert isinstance(connections, PostgresConnections)
    dsn = connections.address._dsn
    postgres.run(dsn, "CREATE EXTENSION vector")
    make(Address(postgres.of_database(str(conninfo_to_dict(dsn)["dbname"])), "", 10.0))
    asked: list[object] = []
    nearest = postings.PostingsReader.nearest

    def signs(self: postings.PostingsReader, *given: Any, **named: Any) -> Any:
        if not named["is_ahead"]:
            asked.append(named["owners"])
        return nearest(self, *given, **named)

    monkeypatch.setattr(postings.PostingsReader, "nearest", signs)
    assert found(Filter()) == whole
    assert asked == []
    monkeypatch.setattr(recall_postgres, "ALL_EXACT", 2_000)
    assert found(Filter(tags=("even",))) == even
    assert len(asked) == 10
