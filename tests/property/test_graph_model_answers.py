"""Whatever a language model answers, an extraction of it holds nothing that the text does not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import ProviderError
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_extraction import Text, borne_out
from commonplace.types.graph import ENTITY_TYPES, RELATION_TYPES

WORDS = ("Mira", "Okafor", "Oslo", "auth.ts", "Zürich", "東京", "I", "the user", "(x)", "May 2025", "", "\n", ".", "?")
texts = st.lists(st.sampled_from((*WORDS, "uses", "moved to", "İ", "ß")), max_size=30).map(" ".join)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(WORDS), st.text(max_size=20), texts)
entities = st.fixed_dictionaries(
    {"name": scalars, "type": st.one_of(st.sampled_from(ENTITY_TYPES), scalars)},
    optional={"aliases": st.one_of(scalars, st.lists(scalars, max_size=3))},
)
facts = st.fixed_dictionaries(
    {"source": scalars, "target": scalars, "type": st.one_of(st.sampled_from(RELATION_TYPES), scalars)},
    optional={"fact": scalars, "quote": scalars, "valid_from": scalars, "valid_to": scalars, "ended": scalars},
)
answers = st.fixed_dictionaries(
    {
        "entities": st.lists(st.one_of(entities, scalars), max_size=8),
        "facts": st.lists(st.one_of(facts, scalars), max_size=8),
    }
)


@given(st.one_of(answers, scalars, st.dictionaries(st.text(max_size=8), scalars)), texts, st.sampled_from(WORDS))
def test_what_comes_of_an_answer_stands_in_the_text(answer: Any, text: str, speaker: str) -> None:
    try:
        found, _ = borne_out(answer, Text(text, 1.7e9, Kinds(), speaker))
    except ProviderError:
        return
    starts = [each.spans[0] for each in found.entities]
    assert starts == sorted(starts)
    for each in found.entities:
        assert each.name.strip()
        assert each.type in ENTITY_TYPES
        for start, end in each.spans:
            assert text[start:end].strip()
    for claim in found.claims:
        assert claim.source != claim.target
        assert claim.type in RELATION_TYPES
        assert max(claim.source, claim.target) < len(found.entities)
        assert text[slice(*claim.span)].strip()
        assert claim.fact
        assert claim.valid_from is None or claim.valid_to is None or claim.valid_from < claim.valid_to
