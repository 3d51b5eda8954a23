"""Tell when two texts say the same, and find those that may. It knows how things are written, and no store.

A wrong "same" loses what somebody knew; a wrong "different" only keeps a memory twice.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.text.analysis import analyse
from commonplace.text.digests import blake2b, sha256
from commonplace.text.wording import ACRONYMS, CLOSING, OPENING, fold, is_unit, say_the_same, spaced, unified

# 15 minima in bands of 3 (Broder 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4): sets with a
# Jaccard index of 0.9 share a band with probability 1 - (1 - 0.9^3)^5 = 0.9985, of 0.5 with 0.49, of 0.1 with 0.005.
BANDS: Final = 5
ROWS: Final = 3
FEWEST_STEMS: Final = 3
"""Texts of fewer distinct content stems have no bands: there is too little in them to be nearly alike."""

_PERSON: Final = b"commonplace/1"  # changing it, or how stems are made, makes stored bands worthless
_MINIMA: Final = struct.Struct("<16I")
_BAND: Final = struct.Struct("<B3I")
_GRAM: Final = 5
_SHORT: Final = 8

_QUOTES: Final = {'"': '"', "'": "'", "«": "»", "‹": "›", "「": "」", "『": "』", "`": "`"}
_FINAL: Final = ".,;:!…。、"
# What is written so is a name in some code or a quantity with its unit, where capitals count: -D, /Data, 5MB, a_B.
_VERBATIM: Final = re.compile(r"^-|[\d/\\_$=@<>{}|(]")
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_CONTRACTED: Final = re.compile(r"(?:\b(?:ca|wo|sha))?n't\b|\bcannot\b")  # never `\w+n't`: quadratic in a long word
_NEGATION: Final = re.compile(r"\b(?:not?|never|nor|cannot|without|neither)\b|n't\b")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Signature:
    """What is kept of a text to find those like it.

    Attributes:
        digest: see `digest`.
        bands: 63-bit; texts whose content words nearly agree share one. Empty for very short texts.
    """

    digest: str
    bands: tuple[int, ...]


def normal_form(text: str) -> str:
    """Return the text as it is compared for exact duplicates.

    NFKC, without case but in what looks like code, with single spaces and plain quotes and dashes, without quotes
    around the whole and without final punctuation. A question mark stays: a question is no statement.
    """
    words = unified(text).split()
    form = " ".join(_case(word, words[at - 1] if at else "") for at, word in enumerate(words))
    while True:
        bare = _unended(_unquoted(form))
        if not bare or bare == form:
            return form
        form = bare


def digest(text: str) -> str:
    """Return the SHA-256, hexadecimal, of the text's normal form."""
    return sha256(normal_form(text).encode("utf-8", "surrogatepass")).hexdigest()


def signature(text: str) -> Signature:
    """Return what to store of a text: its digest, and bands by which near duplicates are looked up.

    The values depend on the text alone, never on the process, the machine or a library's version of a hash.
    """
    folded = fold(unified(text))
    stems = set(analyse(_HYPHEN.sub(" ", _CONTRACTED.sub(" ", folded))))
    if len(stems) < FEWEST_STEMS:
        return Signature(digest(text), ())
    if _NEGATION.search(folded):
        stems.add("not")
    minima = list(map(min, *map(_hashes, stems)))
    return Signature(digest(text), tuple(_band(at, minima[at * ROWS : (at + 1) * ROWS]) for at in range(BANDS)))


def is_near_duplicate(new: str, old: str) -> bool:
    """Return whether the two say the same, as far as their words can tell; symmetric, and true of equal texts.

    Any number, name, path, unit, negation, preposition or tense that differs makes them different, as does any word
    added, left out or replaced. A fronted phrase ("On Monday, …") may stand at the end of its sentence, and sentences
    that do not speak of each other may change places.
    """
    return normal_form(new) == normal_form(old) or say_the_same(new, old)


def contained_share(text: str, passage: str) -> float:
    """Return which share, 0–1, of the text's runs of five words stand in the passage too.

    A text of fewer than eight words is contained as a whole (1.0) or not at all.
    """
    words, others = _words(text), _words(passage)
    if not words:
        bare = normal_form(text)
        return 1.0 if bare and bare in normal_form(passage) else 0.0
    if len(words) < _SHORT:
        return 1.0 if f" {' '.join(words)} " in f" {' '.join(others)} " else 0.0
    known = set(_grams(others))
    grams = list(_grams(words))
    return sum(gram in known for gram in grams) / len(grams)


def _case(word: str, before: str) -> str:
    counts = is_unit(word, before) or _VERBATIM.search(word) or word.strip(OPENING + CLOSING) in ACRONYMS
    return word if counts else fold(word)


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    if closing and text.endswith(closing) and not {text[0], closing} & set(inner):
        return inner.strip()
    return text


def _unended(text: str) -> str:
    bare = text.rstrip(_FINAL + " ")
    if bare[-1:].isdigit() and "!" in text[len(bare) :]:
        return bare + "!"  # a factorial, perhaps
    return bare


def _hashes(stem: str) -> tuple[int, ...]:
    data = stem.encode("utf-8", "surrogatepass")
    return _MINIMA.unpack(blake2b(data, digest_size=_MINIMA.size, person=_PERSON).digest())


def _band(number: int, minima: Sequence[int]) -> int:
    packed = _BAND.pack(number, *minima)
    return int.from_bytes(blake2b(packed, digest_size=8, person=_PERSON).digest(), "little") >> 1


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(spaced(unified(text))))


def _grams(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_GRAM)), strict=False)
