"""Whatever the text, an extraction is sound: it never fails, and all it says stands in the text."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.extract import extract
from commonplace.extract.phrases import ANAPHORS, USER
from commonplace.extract.tokens import Tokens
from commonplace.extract.words import CLASS_NOUNS, GROUPS
from commonplace.text.sentences import stretches
from commonplace.types.graph import ENTITY_TYPES, RELATION_TYPES

AT = 1_773_100_800.0
WORDS = [
    *"""
    Mira Okafor Okafor Tom Acme Corp. Oslo Berlin Norway auth.ts src/auth.ts token.ts `load()` Redis Postgres Go the a
    billing service auth module company it he she they we I user is are was uses use used depends depend on of in at for
    from to by and or , . ; : ? ! not no longer never if because that which who said moved switched chose decided prefer
    prefers likes works work left joined lives part caused replaced with over May 2024 since until yesterday next month
    CTO president U.S. Mr. St. A B. 's n't " ( ) [ ] * # - | ``` https://a.bc/d ß İ ſ 東京 é 😀
    """.split(),
    "\n",
    "\n\n",
    "\x00",
    "e\u0301",
]

POINTING = {*ANAPHORS, *CLASS_NOUNS, *GROUPS, USER, "my"}
"""What means something only by what was named before."""

texts = st.one_of(
    st.text(max_size=120),
    st.lists(st.sampled_from(WORDS), max_size=24).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
)
speakers = st.sampled_from(["", "Mira Okafor", "Tom", " ", "we"])


@given(text=texts, speaker=speakers)
def test_all_that_is_said_stands_in_the_text(text: str, speaker: str) -> None:
    found = extract(text, at=AT, speaker=speaker)
    for entity in found.entities:
        assert entity.name
        assert entity.type in ENTITY_TYPES
        assert 0 < entity.confidence <= 1
        assert entity.name not in entity.aliases
        forms = {" ".join(form.split()).casefold() for form in (entity.name, *entity.aliases)}
        ends = 0
        for start, end in entity.spans:
            assert ends <= start < end <= len(text)
            ends = end
            said = " ".join(text[start:end].split())
            assert said.casefold() in forms or said.lower() in POINTING
    for claim in found.claims:
        assert 0 <= claim.source < len(found.entities)
        assert 0 <= claim.target < len(found.entities)
        assert claim.source != claim.target
        assert claim.type in RELATION_TYPES
        assert 0 <= claim.span[0] < claim.span[1] <= len(text)
        assert claim.fact.strip()
        assert 0 < claim.confidence <= 1
        assert claim.valid_from is None or claim.valid_to is None or claim.valid_from < claim.valid_to
    for date in found.dates:
        assert text[date.start : date.end] == date.text


@given(text=texts)
def test_same_text_gives_the_same(text: str) -> None:
    assert extract(text, at=AT) == extract(text, at=AT)


@given(text=texts)
def test_stretches_are_in_order_and_none_is_empty(text: str) -> None:
    ends = 0
    for stretch in stretches(text):
        assert ends <= stretch.start < stretch.end <= len(text)
        ends = stretch.end


@given(text=texts)
def test_words_stand_where_they_say(text: str) -> None:
    tokens = Tokens(text, 0, len(text))
    for place in range(tokens.count):
        written = text[tokens.start[place] : tokens.end[place]]
        assert written.replace("’", "'") == tokens.word[place].replace("’", "'")


UNITS = [
    "Mira uses ",
    "a, ",
    "A and ",
    "of the ",
    "is ",
    "moved to ",
    "`a ",
    "..",
    "A.",
    "(",
    "it ",
    "auth.ts uses b.ts. ",
]


@pytest.mark.parametrize(
    "unit", [*UNITS, "- a\n", "foo, which ", "not ", "Mira, the ", "Mira Okafor said. She lives in Oslo. "]
)
def test_twice_the_text_is_about_twice_the_work(unit: str) -> None:
    """Work is counted in calls, which no busy machine changes."""
    times = 6_000 // len(unit)
    once, twice = (calls_of(unit * count) for count in (times, 2 * times))
    assert twice <= 2.3 * once + 200


def calls_of(text: str) -> int:
    """Return how many functions are called to extract from a text."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        extract(text, at=AT)
    finally:
        sys.setprofile(before)
    return calls
