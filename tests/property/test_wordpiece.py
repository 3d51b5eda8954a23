"""What holds of the tokenizer for every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.models.static import ModelData
from commonplace.text.tokens import Vocabulary, WordPiece

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return ModelData().vocabulary()


@pytest.fixture(scope="module")
def tokenizer(vocabulary: Vocabulary) -> WordPiece:
    return WordPiece(vocabulary)


@given(text=ANY_TEXT)
def test_every_text_has_ids_of_the_vocabulary(tokenizer: WordPiece, text: str) -> None:
    """Whatever can be stored can be indexed; an id past the table's end would read another file's bytes."""
    packed = tokenizer.encode(text)
    assert len(packed) % 2 == 0
    assert all(int.from_bytes(packed[at : at + 2], "little") < 30522 for at in range(0, len(packed), 2))


@given(text=ANY_TEXT)
def test_the_cache_never_changes_a_result(tokenizer: WordPiece, vocabulary: Vocabulary, text: str) -> None:
    """What was tokenized before must not matter: a passage's ids are compared with a query's of another process."""
    uncached = b"".join(map(WordPiece(vocabulary).encode_run, text.split()))
    assert tokenizer.encode(text) == uncached
    assert tokenizer.encode(text) == uncached


@given(left=ANY_TEXT, right=ANY_TEXT)
def test_a_space_splits_a_text_into_independent_parts(tokenizer: WordPiece, left: str, right: str) -> None:
    """Chunks count their tokens apart; the sum must be that of the whole."""
    assert tokenizer.encode(f"{left} {right}") == tokenizer.encode(left) + tokenizer.encode(right)
