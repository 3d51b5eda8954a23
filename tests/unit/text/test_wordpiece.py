"""The tokenizer gives the ids of BERT's own; the expected ones come from the Hugging Face `tokenizers` package."""

from __future__ import annotations

import pytest

from commonplace.models.static import ModelData
from commonplace.text.tokens import CACHED_IN_BULK, CACHED_RUNS, Vocabulary, WordPiece

SENTENCES = {
    "We chose Postgres for billing.": [2057, 4900, 2695, 17603, 2015, 2005, 25640, 1012],
    "loginService() raised a KeyError at auth.ts:42": [
        *[8833, 7076, 2121, 7903, 2063, 1006, 1007, 2992, 1037, 3145, 2121, 29165, 2012],
        *[8740, 2705, 1012, 24529, 1024, 4413],
    ],
    "Crème brûlée, naïve İstanbul ΟΔΟΣ": [
        *[13675, 21382, 7987, 9307, 2063, 1010, 15743, 9960, 1169, 29722, 29730, 29733],
    ],
    "東京タワーは高い": [1879, 1755, 1709, 30262, 30265, 30198, 1981, 1647],
    "한국어 문장": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1459, 30014, 30021, 30000, 30006, 30025],
    "unaffable embeddings": [14477, 20961, 3468, 7861, 8270, 4667, 2015],
    "zero\u200bwidth\tand\u00a0spaces": [5717, 9148, 11927, 2232, 1998, 7258],
    "x" * 101 + " y": [100, 1061],
    "the 😀 emoji": [1996, 100, 7861, 29147, 2072],
    "snake_case_name != CamelCase": [7488, 1035, 2553, 1035, 2171, 999, 1027, 19130, 18382],
    "¿Qué? «¡Sí!» — “quoted”…": [1094, 10861, 1029, 1077, 1067, 9033, 999, 1090, 1517, 1523, 9339, 1524, 1529],
    "a\x00b\ufffdc": [5925],
    "Straße ﬁne ①": [2358, 27807, 1984, 2638, 100],
    "C++/C# & $5.00 ^~`|": [1039, 1009, 1009, 1013, 1039, 1001, 1004, 1002, 1019, 1012, 4002, 1034, 1066, 1036, 1064],
    "   \n\t ": [],
    "": [],
}


def ids(packed: bytes) -> list[int]:
    return [int.from_bytes(packed[place : place + 2], "little") for place in range(0, len(packed), 2)]


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece(ModelData().vocabulary())


@pytest.mark.parametrize(("text", "expected"), SENTENCES.items())
def test_a_sentence_has_the_ids_of_the_original_tokenizer(tokenizer: WordPiece, text: str, expected: list[int]) -> None:
    """The table's rows were learned under these ids; another split would look up other words' vectors."""
    assert ids(tokenizer.encode(text)) == expected


@pytest.mark.parametrize("text", [*SENTENCES, "e\u0301te\u0301 and 1\u2044" + "y" * 300])
def test_a_text_is_cut_into_parts_that_have_as_many_tokens_as_it(tokenizer: WordPiece, text: str) -> None:
    parts = list(tokenizer.cut(text))
    assert "".join(part for part, _ in parts) == text.rstrip()
    assert sum(number for _, number in parts) == tokenizer.count(text)


def test_a_part_is_a_token_where_characters_correspond(tokenizer: WordPiece) -> None:
    cut = list(tokenizer.cut("We chose  Postgres."))
    assert cut == [("We", 1), (" chose", 1), ("  Post", 1), ("gre", 1), ("s", 1), (".", 1)]
    assert list(tokenizer.cut("e\u0301te\u0301 x")) == [("e\u0301te\u0301", 2), (" x", 1)]


def test_marks_written_out_in_a_text_are_plain_text(tokenizer: WordPiece) -> None:
    """Text comes from anywhere; it must not be able to name the model's own marks."""
    assert ids(tokenizer.encode("[SEP]")) == [1031, 19802, 1033]


def test_white_space_of_every_kind_separates_words(tokenizer: WordPiece) -> None:
    """A form feed between two pages must not glue their words together."""
    assert tokenizer.encode("a\x0cb\x1cc\u2028d") == tokenizer.encode("a b c d")


def test_a_lone_surrogate_is_an_unknown_token(tokenizer: WordPiece) -> None:
    """Broken file names and chat exports hold them; indexing must not stop there."""
    assert ids(tokenizer.encode("a \ud800 b")) == [1037, 100, 1038]


def test_a_word_of_a_million_letters_is_one_unknown_token(tokenizer: WordPiece) -> None:
    """Minified files and base64 have such words, and cutting them greedily would take minutes."""
    assert ids(tokenizer.encode("x" * 1_000_000)) == [100]


def test_known_words_count_as_the_tokens_that_they_are(tokenizer: WordPiece) -> None:
    for text in ("", "We chose Postgres, twice.", "forgetting-curves caf\u00e9 \u6771\u4eac"):
        assert tokenizer.count(text) == len(ids(tokenizer.encode(text)))


def test_a_word_counts_by_its_pieces_however_long_or_unknown_it_is() -> None:
    """A model reads no word of 190 letters as one token: a budget that counts it so is none."""
    small = WordPiece(Vocabulary(b"[UNK]\na\nab\n##b\n##c\n"))
    assert [small.count(text) for text in ("abc", "abd", "ddd", "abc abd")] == [2, 2, 3, 4]
    assert small.count("ab" * 95) == len(ids(small.encode("ab"))) + 188  # no piece goes on with an a
    assert small.count("d" * 1_000_000) == 1_000_000


def test_a_piece_outside_the_vocabulary_makes_the_whole_word_unknown() -> None:
    """A half-known word would otherwise be taken for its known half."""
    assert ids(WordPiece(Vocabulary(b"[UNK]\nab\n##c\n")).encode("abc abd c")) == [1, 2, 0, 0]


def test_pieces_are_the_longest_that_fit() -> None:
    """Greedy longest match is the rule that the vocabulary was made for."""
    assert ids(WordPiece(Vocabulary(b"[UNK]\na\nab\n##b\n##c\n")).encode("abc")) == [2, 4]


def test_a_full_cache_gives_the_same_ids(tokenizer: WordPiece) -> None:
    """The cache is emptied when full; a long index run passes that point many times."""
    text = " ".join(f"w{number}" for number in range(CACHED_RUNS + 100))
    assert tokenizer.encode(text) == tokenizer.encode(text)


def test_a_forgetful_tokenizer_gives_the_same_ids(tokenizer: WordPiece) -> None:
    """Giving memory back must not change what a text is."""
    before = tokenizer.encode("forgetting curves")
    tokenizer.forget()
    assert tokenizer.encode("forgetting curves") == before


def test_few_words_are_kept_except_while_many_are_to_come(tokenizer: WordPiece) -> None:
    """A server would hold the ids of every word it ever met."""
    text = " ".join(f"w{number}" for number in range(2 * CACHED_RUNS))
    ids_of_text = tokenizer.encode(text)
    assert 0 < len(tokenizer._runs) <= CACHED_RUNS
    tokenizer.expect_many()
    assert tokenizer.encode(text) == ids_of_text
    assert 2 * CACHED_RUNS <= len(tokenizer._runs) <= CACHED_IN_BULK
    tokenizer.forget()
    assert tokenizer.encode(text) == ids_of_text
    assert len(tokenizer._runs) <= CACHED_RUNS
