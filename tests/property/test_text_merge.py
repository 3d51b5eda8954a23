"""Whatever is merged: nothing is lost, nothing stands twice, and no order matters."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from commonplace.consolidation.text_merge import MergeSource, merge, merged_id, merged_memory, sources_of
from commonplace.text.sentences import units_of
from commonplace.text.similarity import normal_form
from commonplace.types import TIERS, MemoryRecord, Owner, StoredMemory

DAY = datetime(2026, 5, 1, tzinfo=UTC)
WORDS = st.sampled_from("Anna Bob Rome tea milk likes reads writes deploys the a of in not 3 7 May fast slow".split())
SENTENCES = st.lists(WORDS, min_size=2, max_size=6).map(lambda words: f"X{' '.join(words)} so.")
PIECES = st.one_of(
    SENTENCES,
    SENTENCES.map(lambda sentence: f"\n- {sentence}"),
    SENTENCES.map(lambda sentence: f"\n\n# {sentence}\n\n"),
    WORDS.map(lambda word: f"\n\n```\n{word} = 1\n```\n\n"),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map(" ".join)
ANY = st.text(min_size=1, max_size=60)


def _sources(texts: list[str], days: int) -> list[MergeSource]:
    return [MergeSource(f"m{place}", text, DAY + timedelta(days=place * days)) for place, text in enumerate(texts)]


@given(st.lists(TEXTS | ANY, min_size=2, max_size=4), st.integers(0, 1))
def test_no_unit_of_any_source_is_lost(texts: list[str], days: int) -> None:
    merged = merge(_sources(texts, days)).text
    form = " ".join(normal_form(merged).split())
    for text in texts:
        for unit in units_of(text):
            assert unit.body in merged or normal_form(unit.body) in form or _is_said(unit.key, merged)


def _is_said(key: str, merged: str) -> bool:
    return any(key == unit.key for unit in units_of(merged))


@given(st.lists(TEXTS, min_size=2, max_size=4))
def test_no_sentence_stands_twice(texts: list[str]) -> None:
    merged = merge(_sources(texts, 0))
    keys = [unit.key for unit in units_of(merged.text) if not unit.is_heading]
    if merged.text not in texts and not merged.conflicts:
        assert len(keys) == len(set(keys))


@given(st.lists(TEXTS | ANY, min_size=2, max_size=4), st.integers(0, 1), st.randoms(use_true_random=False))
def test_the_order_of_the_sources_does_not_matter(texts: list[str], days: int, chance: object) -> None:
    sources = _sources(texts, days)
    shuffled = list(sources)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merge(shuffled) == merge(sources)


@given(st.lists(SENTENCES, min_size=2, max_size=4))
def test_merging_what_was_merged_with_its_sources_changes_nothing(texts: list[str]) -> None:
    sources = _sources(texts, 0)
    merged = merge(sources)
    if not merged.conflicts:
        assert merge([MergeSource("m", merged.text, DAY), *sources]).text == merged.text


@given(ANY | TEXTS)
def test_units_and_gaps_are_the_text(text: str) -> None:
    assert "".join(unit.gap + unit.text for unit in units_of(text)) == text.rstrip()


def _memory(id_: str, record: MemoryRecord, tags: tuple[str, ...]) -> StoredMemory:
    return StoredMemory(1, Owner(id_, "memory", tags=tags, at=record.born_at), record, record.born_at)


RECORDS = st.builds(
    MemoryRecord,
    content=TEXTS,
    tier=st.sampled_from(TIERS),
    category=st.sampled_from(["", "fact", "decision"]),
    entities=st.lists(st.sampled_from(["Anna", "Bob", "Rome"]), unique=True).map(tuple),
    source=st.sampled_from(["", "mail", "chat"]),
    origin=st.sampled_from(["user", "agent", "tool", "web"]),
    trust=st.sampled_from([0.3, 0.6, 0.8, 1.0]),
    metadata=st.sampled_from(["{}", '{"a": 1}', '{"a": 2, "b": [1]}']),
    born_at=st.integers(1, 10**9).map(float),
    last_used=st.integers(1, 10**9).map(float),
    use_count=st.integers(0, 100),
    strength=st.sampled_from([1.0, 1.3, 2.0]),
    uses=st.lists(st.integers(1, 10**9).map(float), max_size=16).map(tuple),
)
MEMORIES = st.lists(st.tuples(RECORDS, st.sets(st.sampled_from("xyz")).map(sorted).map(tuple)), min_size=2, max_size=5)


@given(MEMORIES, st.floats(0, 1), st.randoms(use_true_random=False))
def test_nothing_that_is_kept_of_the_sources_is_lost(
    given_: list[tuple[MemoryRecord, tuple[str, ...]]], cohesion: float, chance: object
) -> None:
    memories = [_memory(f"m{place}", record, tags) for place, (record, tags) in enumerate(given_)]
    records = [record for record, _ in given_]
    text = merge(sources_of(memories)).text
    owner, record = merged_memory(memories, "new", text, cohesion)
    assert set(owner.tags) == {tag for _, tags in given_ for tag in tags}
    assert set(record.entities) == {entity for each in records for entity in each.entities}
    assert record.derived_from == tuple(memory.owner.id for memory in memories)
    assert set(json.loads(record.metadata)) == {name for each in records for name in json.loads(each.metadata)}
    assert record.trust == min(each.trust for each in records)
    assert record.origin in {each.origin for each in records if each.trust == record.trust}
    born = [each.born_at for each in records]
    assert (owner.at, record.born_at) == (max(born), min(born)), "news of the last, and known since the first"
    assert record.last_used == max(each.last_used for each in records)
    assert record.use_count == sum(each.use_count for each in records)
    assert max(each.strength for each in records) <= record.strength <= 2.0
    assert len(record.uses) == min(16, sum(len(each.uses) for each in records))
    assert TIERS.index(record.tier) == max(TIERS.index(each.tier) for each in records)
    shuffled = list(memories)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merged_memory(shuffled, "new", merge(sources_of(shuffled)).text, cohesion) == (owner, record)


@given(st.lists(ANY, min_size=2, max_size=5, unique=True))
def test_the_id_of_a_merged_memory_is_that_of_its_sources(ids: list[str]) -> None:
    assert merged_id(ids) == merged_id(ids[::-1])
    assert len({merged_id(ids), merged_id(ids, 1), merged_id(ids[1:])}) == 3
