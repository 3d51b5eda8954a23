"""Entities and facts are found by their texts, in namespaces of their own, by the search that finds everything."""

from __future__ import annotations

import pytest
from tests.unit.blas import two_threads
from tests.unit.search.notebook import NAMESPACE, Notebook, model

from commonplace.errors import UsageError
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.search import retrieve
from commonplace.search.request import Request
from commonplace.store.graph import text_owner
from commonplace.store.schema import texts_of
from commonplace.types import Filter, Hit, NewPassage
from commonplace.types.graph import Entity, Relation, Subject

FACTS = (
    Relation("moved", "anna", "berlin", "LIVES_IN", "Anna moved to Berlin in May", 10.0, valid_from=5.0, group="home"),
    Relation("uses", "billing", "postgres", "USES", "The billing service uses Postgres", 20.0),
    Relation("rides", "anna", "bicycle", "RIDES", "Anna rides a bicycle to the office", 30.0),
)


@pytest.fixture
def book(book: Notebook) -> Notebook:
    """Give a notebook with three facts and an entity."""
    maker = PassageMaker(Destination(book.store, model(), model().tokenize, NAMESPACE))

    def passages(what: Entity | Relation, text: str) -> tuple[NewPassage, ...]:
        return maker.complete([maker.prepare(text_owner(what), text, "markdown")])[0].passages

    with book.store.change_memories(NAMESPACE) as change:
        for fact in FACTS:
            change.graph.put_relation(fact, passages(fact, fact.fact))
        berlin = Entity("berlin", "Berlin", "place", 10.0)
        change.graph.put_entity(berlin, passages(berlin, "Berlin, a city where Anna lives"))
    return book


def search(book: Notebook, query: str, kind: Subject = "relation", **wanted: tuple[str, ...] | float) -> list[Hit]:
    namespace = texts_of(NAMESPACE, kind)
    request = Request(query, namespace, 10, "two-stage", Filter(**wanted), 0.0, 100)  # type: ignore[arg-type]
    return list(book.searcher.search(request).hits)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_fact_is_found_under_its_own_id_and_kind(book: Notebook, is_indexed: bool) -> None:
    """At once after it was written, before any index has it, and from the index."""
    if is_indexed:
        book.project()
    hit = search(book, "where did Anna move to")[0]
    assert (hit.kind, hit.owner_id, hit.type, hit.tags, hit.at) == ("relation", "moved", "LIVES_IN", ("home",), 5.0)
    assert hit.text == "Anna moved to Berlin in May"
    assert [hit.owner_id for hit in search(book, "Berlin", "entity")] == ["berlin"]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_types_groups_and_times_choose_facts(book: Notebook, is_indexed: bool) -> None:
    """A type may be the user's own; a group is a tag; a fact counts from when it was known on."""
    if is_indexed:
        book.project()

    def found(**wanted: tuple[str, ...] | float) -> set[str]:
        return {hit.owner_id for hit in search(book, "Anna Berlin billing Postgres bicycle", **wanted)}

    assert found() == {"moved", "uses", "rides"}
    assert found(types=("RIDES", "USES")) == {"uses", "rides"}
    assert found(tags=("home",)) == {"moved"}
    assert found(as_of=20.0) == {"moved", "uses"}
    assert found(kinds=("relation",)) == {"moved", "uses", "rides"}


def test_a_search_among_memories_meets_no_text_of_the_graph(book: Notebook) -> None:
    """The fact says again what a memory said: nobody wants to read it twice."""
    book.remember("a", "Anna moved to Berlin in May.")
    assert book.found("where did Anna move to", min_score=0.0) == ["a"]
    book.project()
    assert book.found("where did Anna move to", min_score=0.0) == ["a"]


def test_a_fact_without_texts_is_not_found_any_more(book: Notebook) -> None:
    """Whoever writes it decides by which words it is found."""
    book.project()
    with book.store.change_memories(NAMESPACE) as change:
        change.graph.put_relation(FACTS[0], ())
    assert "moved" not in {hit.owner_id for hit in search(book, "where did Anna move to")}
    book.project()
    assert "moved" not in {hit.owner_id for hit in search(book, "where did Anna move to")}


def test_kinds_of_a_graph_and_of_users_do_not_mix(book: Notebook) -> None:
    """A kind that a namespace cannot hold is a mistake of the caller."""
    with pytest.raises(UsageError, match=r"kind 'memory' is unknown; use one of entity, relation"):
        search(book, "Anna", kinds=("memory",))
    with pytest.raises(UsageError, match=r"kind 'relation' is unknown; use one of artifact, memory, knowledge"):
        book.search("Anna", wanted=Filter(kinds=("relation",)))


def test_a_search_computes_on_one_thread(book: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a second thread of so small products takes longer than they do."""
    seen, order = [], retrieve.order
    with two_threads() as count:
        monkeypatch.setattr(retrieve, "order", lambda *given: (seen.append(count()), order(*given))[1])
        before = count()
        assert search(book, "where did Anna move to")
        assert (seen[0], count()) == (1, before)


def test_a_number_of_a_query_is_looked_for_only_where_a_word_begins() -> None:
    """So that a query of many letters without a space is read in linear time, not once from each letter."""
    text = "a" * 20 + "1 b2c x_3 42, 7ff"
    words = [(match.start(), match[0]) for match in retrieve._NUMBER.finditer(text)]
    assert [word for _, word in words] == ["a" * 20 + "1", "b2c", "3", "42", "7ff"]
    assert [place for place in range(len(text)) if retrieve._NUMBER.match(text, place)] == [at for at, _ in words]
