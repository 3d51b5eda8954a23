"""Whatever happens to memories, the graph says what those say that are live, and nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError
from commonplace.types.graph import GraphFilter

IDS = ("a", "b", "c")
TEXTS = (
    "Mira Okafor lives in Berlin.",
    "Mira Okafor moved to Munich.",
    "Tom Chen works for Acme in Berlin.",
    "Mira: I work for Globex.",
    "short answers are better",
)

steps = st.one_of(
    st.tuples(st.just("remember"), st.sampled_from(IDS), st.sampled_from(TEXTS)),
    st.tuples(st.just("update"), st.sampled_from(IDS), st.sampled_from(TEXTS)),
    st.tuples(st.sampled_from(["tag", "archive", "restore", "forget", "touch"]), st.sampled_from(IDS), st.just("")),
)


def do(book: Engine, what: str, id_: str, text: str) -> None:
    if what == "remember":
        book.remember(text, id=id_, force=True)
    elif what == "update":
        book.update(id_, text)
    elif what == "tag":
        book.update(id_, tags=["t"])
    elif what == "restore":
        book.restore_memory(id_)
    else:
        getattr(book, what)(id_)


def facts(book: Engine) -> set[tuple[str, str, str]]:
    graph = book._runtime.store.graph("default")
    found = graph.list_relations(GraphFilter(with_past=True))
    names = {
        each.id: each.name
        for each in graph.entities([end for one in found for end in (one.source, one.target)]).values()
    }
    return {(names[each.source], each.type, names[each.target]) for each in found}


@settings(max_examples=15, deadline=None)
@given(st.lists(steps, max_size=8))
def test_the_graph_says_what_live_memories_say(done: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as place:
        clock = Clock()
        with commonplace.open(Path(place) / "a", embedder="hashing", clock=clock) as book:
            for what, id_, text in done:
                clock.move(days=0.01)
                try:
                    do(book, what, id_, text)
                except NotFoundError:
                    continue
            live = {each.id: each for each in book.list()}
            named = {id_: each.version for id_, each in live.items() if each.content != TEXTS[-1]}
            episodes = book._runtime.store.graph("default")
            # What is said again after it was contradicted was also said before.
            held = {id_: [each.version for each in episodes.episodes_of_memory(id_)][-1:] for id_ in IDS}
            assert held == {id_: [named[id_]] if id_ in named else [] for id_ in IDS}
            assert book.doctor().findings == ()
            with commonplace.open(Path(place) / "b", embedder="hashing", clock=clock) as fresh:
                for each in live.values():
                    fresh.remember(each.content, id=each.id, force=True, at=each.at)
                assert facts(book) == facts(fresh)
                assert book.graph.counts().entities == fresh.graph.counts().entities
