"""Split text into the WordPiece ids of a BERT-uncased vocabulary; knows no model and adds no marks for start or end.

The rules are those of BERT's "uncased" tokenizers (Devlin et al. 2019; Wu et al. 2016 for the pieces): controls are
dropped, accents stripped, letters lowered, Chinese characters and punctuation set apart, and each word is cut greedily
into the longest pieces that the vocabulary holds, a piece inside a word being written `##piece`. One difference: every
character that Python calls white space separates words, form feed and the like included.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commonplace.text.vocabulary import Vocabulary

UNKNOWN = "[UNK]"
MAX_WORD_LENGTH = 100
"""A longer word is one unknown token, as in the original."""

CACHED_RUNS, CACHED_IN_BULK = 1 << 12, 1 << 15
CACHED_RUN_LENGTH = 40

_DROPPED = frozenset({"Cc", "Cf", "Co"})
_CJK_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A tokenizer over one vocabulary, safe to share between threads.

    What stands between two white spaces is looked up as one run in a bounded cache; a run gives the same ids wherever
    it stands, so the cache never changes a result.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Take the pieces.

        Raises:
            KeyError: the vocabulary has no `[UNK]`.
        """
        self._vocabulary = vocabulary
        self._unknown = _packed([vocabulary[UNKNOWN]])
        self._longest = vocabulary.longest
        self._runs = _Runs(self)

    def encode(self, text: str) -> bytes:
        """Return the ids of the text, uint16, little-endian; any string is accepted."""
        return b"".join(map(self._runs.__getitem__, text.split()))

    def count(self, text: str) -> int:
        """Return how many pieces a text has, where `encode` has one unknown token for a whole word too.

        Of a word outside the vocabulary each known piece counts, and each other character. A word that is too long
        counts by the pieces of its beginning: cutting all of a megabyte takes many seconds.
        """
        found = ((run, self._runs[run]) for run in text.split())
        return sum(len(ids) // 2 if self._unknown not in ids else self._count_run(run) for run, ids in found)

    def expect_many(self) -> None:
        """Cache more from now on, until `forget`: many texts are to come."""
        self._runs.most = CACHED_IN_BULK

    def forget(self) -> None:
        """Empty the cache."""
        self._runs.most = CACHED_RUNS
        self._runs.clear()

    def encode_run(self, run: str) -> bytes:
        """Return the ids of a text without white space, past the cache."""
        return b"".join(map(self._encode_word, _words(run)))

    def _count_run(self, run: str) -> int:
        total = 0
        for word in _words(run):
            begin = word[:MAX_WORD_LENGTH]
            total += -(-sum(1 for _ in self._pieces(begin)) * len(word) // len(begin))
        return total

    def _encode_word(self, word: str) -> bytes:
        if len(word) > MAX_WORD_LENGTH:
            return self._unknown
        if (whole := self._vocabulary.get(word)) is not None:
            return whole.to_bytes(2, "little")
        ids: list[int] = []
        for piece in self._pieces(word):
            if piece is None:
                return self._unknown
            ids.append(piece)
        return _packed(ids)

    def _pieces(self, word: str) -> Iterator[int | None]:
        """Yield the longest pieces of a word, from its beginning; None for a character with which none begins."""
        start, mark = 0, ""
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and (piece := self._vocabulary.get(mark + word[start:end])) is None:
                end -= 1
            yield piece if end > start else None
            start, mark = max(end, start + 1), "##"


def _words(run: str) -> list[str]:
    return [run.lower()] if run.isascii() and run.isalnum() else run.translate(_CHARACTERS).split()


class _Runs(dict[str, bytes]):
    """The cache: a missing run is encoded, and kept if short. Emptied when full: words follow Zipf's law."""

    def __init__(self, tokenizer: WordPiece) -> None:
        super().__init__()
        self.most = CACHED_RUNS
        self._encode = tokenizer.encode_run

    def __missing__(self, run: str) -> bytes:
        ids = self._encode(run)
        if len(run) <= CACHED_RUN_LENGTH:
            if len(self) >= self.most:
                self.clear()
            self[run] = ids
        return ids


class _Characters(dict[int, str]):
    """What becomes of each character, filled as they are met, for `str.translate`; at most one entry a code point."""

    def __missing__(self, code: int) -> str:
        self[code] = replacement = _replacement(code)
        return replacement


def _replacement(code: int) -> str:
    character = chr(code)
    if character == "\ufffd" or unicodedata.category(character) in _DROPPED:
        return ""
    plain = "".join(c for c in unicodedata.normalize("NFD", character) if unicodedata.category(c) != "Mn").lower()
    return f" {plain} " if _stands_alone(character) else plain


def _stands_alone(character: str) -> bool:
    code = ord(character)
    if code < 128:
        return not character.isalnum()
    if unicodedata.category(character)[0] == "P":
        return True
    return any(first <= code <= last for first, last in _CJK_BLOCKS)


def _packed(ids: list[int]) -> bytes:
    return b"".join(number.to_bytes(2, "little") for number in ids)


_CHARACTERS = _Characters()
