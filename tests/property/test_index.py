"""Any sequence of updates leaves the fast index with exactly what the reference holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference_store.index import ExactDenseIndex, ExactLexicalIndex, vectors_of

from commonplace.index.contract import Scope
from commonplace.index.generations import Index
from commonplace.text.tokens import analyse, fields_of, passage_language
from commonplace.types import Embedding, Head, IndexEntry

WORDS = ["apple", "pear", "plum", "loginService", "猫", "黑猫", "the", "\ud800", ""]
NAMESPACES = ["a", "b"]


@st.composite
def entries(draw: st.DrawFn) -> IndexEntry:
    namespace = draw(st.sampled_from(NAMESPACES))
    number = draw(st.integers(1, 6)) + 6 * NAMESPACES.index(namespace)  # no two namespaces share one
    return IndexEntry(
        number,
        number,
        namespace,
        "memory",
        "",
        "",
        tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2))),
        draw(st.sampled_from(WORDS)),
        "",
        "",
        "",
        " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=6))),
        b"",
        bytes(draw(st.lists(st.integers(0, 255), min_size=3, max_size=3))),
    )


steps = st.tuples(st.lists(entries(), max_size=6), st.sets(st.integers(1, 12), max_size=4))


@settings(max_examples=12, deadline=None)
@given(st.lists(steps, min_size=1, max_size=5))
def test_updates_leave_what_a_dictionary_would_hold(history: list[tuple[list[IndexEntry], set[int]]]) -> None:
    """Replacing, deleting, merging and compacting must never lose, double or mix up a passage."""
    held: dict[int, IndexEntry] = {}
    with tempfile.TemporaryDirectory() as directory:
        index = Index(Path(directory) / "index", store_id="store", embedding=Embedding("test", "1", 3))
        assert index.claim(0)
        for change, (added, deleted) in enumerate(history, 1):
            index.update(added, deleted, heads={"n": Head(change)}, rebuild=change == 1)
            held.update((entry.number, entry) for entry in added)
            held = {number: entry for number, entry in held.items() if number not in deleted}
        index.release()
        generation = index.reader()
        assert (generation.fault, generation.documents, index.verify()) == ("", len(held), [])
        lexical, dense = ExactLexicalIndex(held.values()), ExactDenseIndex(held.values())
        query = np.array([0.6, 0.8, 0.0], dtype=np.float32)
        for namespace in NAMESPACES:
            scope = Scope(namespace)
            for word in WORDS:
                expected = lexical.search(analyse(word), scope, 100).numbers
                found = generation.lexical.search(analyse(word), scope, 100).numbers
                assert sorted(found.tolist()) == sorted(expected.tolist())
                known, true = (each.statistics(analyse(word), scope) for each in (generation.lexical, lexical))
                assert (known.documents, known.lengths.tolist()) == (true.documents, true.lengths.tolist())
                assert known.frequencies == true.frequencies
            found, expected = (
                each.search(query, scope, 100, vectors_of(held.values())) for each in (generation.dense, dense)
            )
            assert found.numbers.tolist() == expected.numbers.tolist()


@given(st.text(st.characters(), max_size=200))
def test_terms_of_any_text_hold_no_whitespace_and_can_be_encoded(text: str) -> None:
    """Terms are joined by white space and written as UTF-8."""
    terms = analyse(text)
    assert " ".join(terms).split() == terms
    " ".join(terms).encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "M", "P", "Z"]), max_size=100))
def test_whatever_a_text_is_asked_for_by_its_own_words_is_indexed(text: str) -> None:
    """A query made of the text itself must find it, analysed in the language of what is searched."""
    entry = IndexEntry(1, 1, "n", "memory", "", "", (), "", "", "", "", text, b"", b"")
    assert set(analyse(text, passage_language(entry))) <= set(fields_of(entry)["content"])
