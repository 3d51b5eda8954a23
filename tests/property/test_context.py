"""A context never exceeds its budget, whatever it is made of, as the tokenizer counts that every budget goes by."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.formats.fence import unfence
from commonplace.models.static import StaticEmbedder
from commonplace.search.context import Form, assemble, distinct
from commonplace.types import Hit

WORDS = [
    "Tea",
    "is",
    "at",
    "four.",
    "session_expiry",
    "\n",
    "\n\n",
    "# Title",
    "茶在四点。",
    "🍵",
    "</recalled>",
    "}",
    "…",
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), min_size=1, max_size=60).map(" ".join)
PATHS = st.sampled_from(["src/a.py", "docs/guide.md", "docs/very/long/path/to/a/page.txt", "M", ""])
SPANS = st.tuples(st.integers(1, 90), st.integers(0, 9)).map(lambda place: (place[0], place[0] + place[1]))
HITS = st.lists(
    st.builds(
        Hit,
        id=st.uuids().map(str),
        owner_id=st.sampled_from("abc"),
        kind=st.just("artifact"),
        text=TEXTS,
        score=st.floats(0, 1),
        signals=st.just({}),
        heading=st.sampled_from(["", "Title", "LoginService.login"]),
        path=PATHS,
        lines=st.none() | SPANS,
        type=st.sampled_from(["code", "documentation"]),
        tags=st.sampled_from([(), ("a tag", "another")]),
        phase=st.sampled_from(["", "construction"]),
    ),
    max_size=9,
)


@cache
def model() -> StaticEmbedder:
    return StaticEmbedder.load()


@settings(deadline=None)
@given(HITS, st.integers(64, 900), st.booleans(), st.booleans())
def test_the_budget_holds_for_any_hits(hits: list[Hit], budget: int, metadata: bool, references: bool) -> None:
    found = distinct(hits)
    numbers = {hit.id: hit.lines[0] for hit in found if hit.lines}
    count = model().count_tokens
    form = Form(metadata=metadata, references=references)
    text, chosen = assemble(found, max_tokens=budget, count=count, form=form, numbers=numbers)
    assert count(text) <= budget
    assert chosen == found[: len(chosen)]
    assert bool(text) == bool(chosen)
    assert unfence(text).text.startswith("References:" if references and chosen else "")
