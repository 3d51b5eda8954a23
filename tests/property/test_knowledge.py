"""Texts of maps, configurations and re-ranked orders, for any values."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.knowledge.config import MemoryConfig, reranked
from commonplace.knowledge.maps import STANDARD_FIELDS, checked_maps, text_of

words = st.text(string.ascii_lowercase + " äß東", max_size=8)
keys = st.one_of(st.sampled_from(STANDARD_FIELDS), words)
values = st.recursive(
    st.one_of(words, st.integers(-5, 5), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
maps = st.dictionaries(keys, values, max_size=5)
configs = st.builds(
    MemoryConfig,
    sqlite_enabled=st.booleans(),
    sqlite_path=words,
    vector_enabled=st.booleans(),
    rerank_enabled=st.booleans(),
    rerank_model=words.map(lambda word: f"m{word}"),
    rerank_top_k=st.integers(1, 1000),
    retrieval_factor=st.integers(1, 100),
    use_batch_rerank=st.booleans(),
)
vectors = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=4)


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts_in(each)]


@example({"content": [], "description": ["aa"], "": {"description": "a"}})
@given(maps)
def test_the_text_of_a_map_does_not_depend_on_how_it_is_written_down(given_map: dict[str, Any]) -> None:
    again = dict(reversed(given_map.items()))
    assert text_of(given_map) == text_of(again) == text_of(json.loads(json.dumps(given_map)))
    (first,), (second,) = checked_maps("a", [given_map])[0], checked_maps("a", [again])[0]
    assert first == second
    assert json.loads(first.metadata) == given_map


@given(maps)
def test_a_map_without_standard_texts_gives_every_text_it_holds(given_map: dict[str, Any]) -> None:
    text = text_of(given_map)
    standard = [given_map[name] for name in STANDARD_FIELDS if isinstance(given_map.get(name), str)]
    wanted = [each for each in standard if each.strip()] or texts_in(given_map)
    assert all(each in text for each in wanted)
    assert bool(text) == bool(wanted)


@given(configs)
def test_a_configuration_comes_back_in_both_spellings(config: MemoryConfig) -> None:
    document = config.to_json()
    snake = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): each for name, each in document.items()}
    assert MemoryConfig.from_json(json.dumps(document)) == MemoryConfig.from_json(snake) == config


@given(
    st.lists(words, min_size=1, max_size=6),
    st.lists(st.tuples(words, st.one_of(st.floats(), st.none(), words), st.one_of(st.none(), st.integers(-2, 8)))),
    st.integers(1, 8),
)
def test_whatever_a_re_ranker_says_only_the_order_is_its(
    candidates: list[str], said: list[tuple[str, Any, int | None]], top_k: int
) -> None:
    """No candidate is invented, none comes twice, and as many come as are wanted and there are."""

    class Odd:
        def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[dict[str, Any]]:
            named = {"content": candidates[0], "score": 0.5}
            return [named, *({"content": text, "score": score, "index": index} for text, score, index in said)]

    found = reranked(Odd(), "query", candidates, top_k)
    places = [place for place, _ in found]
    assert len(set(places)) == len(places) == min(top_k, len(candidates))
    assert set(places) <= set(range(len(candidates)))
    assert all(0.0 <= score <= 1.0 for _, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
