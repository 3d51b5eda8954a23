"""Compare texts: equality of meaning, near-duplicate signatures, containment.

A wrong "same" loses knowledge; a wrong "different" only keeps a memory twice.

Everything written counts except case, punctuation, contractions and a few words without content. The order counts
too: a moved word can change the meaning.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.hashes import blake2b, sha256
from commonplace.text.tokens import UNSPACED_RUN, analyse
from commonplace.text.words import word_lists

_SAME_SIGNS: Final = str.maketrans(
    {**dict.fromkeys("‘’‛ʼ＇", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u200b\u2060\ufeff\u00ad", "")
)
# NFKC turns these into plain digits: "10²" would become "102".
_RAISED: Final = lazy_pattern("[²³¹¼-¾⁰-₉⅐-⅟↉①-⒛⓪-⓿❶-➓]")
ACRONYMS: Final = frozenset({"IT", "US", "WHO"})  # words with another meaning in lower case
_BULLET: Final = lazy_pattern(r"^[ \t]*(?:[-*+•]|#{1,6})[ \t]+", re.MULTILINE)
OPENING: Final = "\"'([{«¿¡*`"
CLOSING: Final = "\"')]}»,;:!?….*`。、"
_SENTENCE_ENDS: Final = frozenset(".!?…。")
_LETTERS: Final = lazy_pattern(r"[^\W\d_]+(?:'[^\W\d_]+)?(?:-[^\W\d_]+)*")
_EMPTY, _COUNTED, _WITH_BE, _WEEKDAYS = word_lists(Path(__file__).with_name("similarity.txt")).values()
_FORMS: Final = {**dict.fromkeys(("is", "are", "am", "be", "been"), "be"), "has": "have", "does": "do"}
_TAILS: Final = {"'re": "be", "'m": "be", "'ll": "will", "'ve": "have"}
_BROKEN: Final = {"cannot": "can", "can't": "can", "won't": "will", "shan't": "shall"}


def unified(text: str) -> str:
    """Return the text in one Unicode form: NFKC, plain quotes and dashes, nothing invisible, `10²` as `10^2`."""
    if not text.isascii():
        text = _RAISED.sub(r"^\g<0>", text.translate(_SAME_SIGNS))
        text = unicodedata.normalize("NFKC", text).translate(_SAME_SIGNS)
    return text


def fold(text: str) -> str:
    """Return the case-folded text in NFKC."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.casefold()).casefold())


def spaced(text: str) -> str:
    """Separate the characters of scripts written without spaces, so that each is a word."""
    return text if text.isascii() else UNSPACED_RUN.sub(lambda run: f" {'  '.join(run[0])} ", text)


def _content(text: str) -> list[str]:
    """Return the content of a text, in order: folded words, and numbers, names and signs as written.

    Commas and other closing punctuation serve only to find the ends of sentences.
    """
    content: list[str] = []
    previous, is_first = "", True
    for chunk in spaced(unified(_BULLET.sub("", text))).split():
        middle = chunk.lstrip(OPENING).rstrip(CLOSING)
        closing = chunk[len(chunk.rstrip(CLOSING)) :]
        if not chunk.strip("-"):  # dashes between words are like commas
            words = ["-"] if previous[-1:].isdigit() else []
        elif not middle.strip("-"):
            words = [chunk] if set(chunk) & set("*[]{}") else []
        elif (middle == "A" and not is_first) or middle in ACRONYMS or is_unit(middle, previous):  # plan A
            words = [middle]
        elif _LETTERS.fullmatch(middle):
            words = [word for part in middle.split("-") for word in _spelt_out(part)]
        else:
            # Keep quotes and brackets: they are part of code and data, and 5" means inches.
            words = [chunk.lstrip("(*`").rstrip("),;:!?….*`。、") or middle]
        for word in words:
            if word in _COUNTED and previous == "a":  # "few" means hardly any, "a few" means some
                content.append("a")
            elif word in _WEEKDAYS and content[-1:] == ["on"]:
                content.pop()
            content.append(word)
            is_first = False
        previous = fold(middle)
        if not _SENTENCE_ENDS.isdisjoint(closing):
            content += ["?"] if "?" in closing else []
            is_first = True
    return content


def is_unit(word: str, before: str) -> bool:
    """Return whether a word may be a unit, whose capitals count: 5 MW is not 5 mW."""
    return len(word) <= 3 and before[-1:].isdigit() and not word.islower()


def _spelt_out(written: str) -> list[str]:
    """Return the words that a written word stands for: two for "don't", none for "the"."""
    folded = fold(written)
    if folded in _EMPTY:
        return []
    if folded in _BROKEN:
        return [_BROKEN[folded], "not"]
    stem, mark, tail = folded.partition("'")
    if mark and tail == "t" and stem.endswith("n"):
        return [_FORMS.get(stem[:-1], stem[:-1]), "not"]
    if mark and tail == "s":
        return [stem, "be" if stem in _WITH_BE else "'s"]
    if mark and mark + tail in _TAILS:
        return [stem, _TAILS[mark + tail]]
    return [_FORMS.get(folded, folded)]


# 15 minima in bands of 3 (Broder 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4): sets with a
# Jaccard index of 0.9 share a band with probability 1 - (1 - 0.9^3)^5 = 0.9985, of 0.5 with 0.49, of 0.1 with 0.005.
BANDS: Final = 5
ROWS: Final = 3
MIN_STEMS: Final = 3
"""Minimum distinct content stems of a text with bands: shorter texts are too short to be near duplicates."""
_PERSON: Final = b"commonplace/1"  # changing this, or the stems, invalidates stored bands
_MINIMA: Final = struct.Struct("<16I")
_BAND: Final = struct.Struct("<B3I")
_GRAM: Final = 5
_SHORT: Final = 8
_QUOTES: Final = {'"': '"', "'": "'", "«": "»", "‹": "›", "「": "」", "『": "』", "`": "`"}
_FINAL: Final = ".,;:!…。、"
# Words of this form are names in code or quantities with units, whose capitals count: -D, /Data, 5MB, a_B.
_VERBATIM: Final = lazy_pattern(r"^-|[\d/\\_$=@<>{}|(]")
_HYPHEN: Final = lazy_pattern(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_CONTRACTED: Final = lazy_pattern(r"(?:\b(?:ca|wo|sha))?n't\b|\bcannot\b")  # never `\w+n't`: quadratic in a long word
_NEGATION: Final = lazy_pattern(r"\b(?:not?|never|nor|cannot|without|neither)\b|n't\b")
_WORD: Final = lazy_pattern(r"\w+")


@dataclass(frozen=True, slots=True)
class Signature:
    """The stored values of a text by which similar texts are found.

    Attributes:
        digest: see `digest`.
        bands: 63-bit numbers; texts with nearly the same content words share one. Empty for very short texts.
    """

    digest: str
    bands: tuple[int, ...]


def normal_form(text: str) -> str:
    """Return the form of a text in which exact duplicates are equal.

    NFKC, case-folded except for words that look like code, with single spaces and plain quotes and dashes, without
    enclosing quotes and final punctuation. A question mark stays: a question is no statement.
    """
    words = unified(text).split()
    form = " ".join(
        word
        if is_unit(word, before) or _VERBATIM.search(word) or word.strip(OPENING + CLOSING) in ACRONYMS
        else fold(word)
        for before, word in zip(["", *words], words, strict=False)
    )
    while True:
        closing, inner = _QUOTES.get(form[:1]), form[1:-1]
        is_quoted = closing and form.endswith(closing) and not {form[0], closing} & set(inner)
        bare = inner.strip() if is_quoted else form
        ending = bare[len(bare.rstrip(_FINAL + " ")) :]
        bare = bare.removesuffix(ending)
        if bare[-1:].isdigit() and "!" in ending:
            bare += "!"  # a factorial, perhaps
        if not bare or bare == form:
            return form
        form = bare


def digest(text: str) -> str:
    """Return the SHA-256, hexadecimal, of the text's normal form."""
    return sha256(normal_form(text).encode("utf-8", "surrogatepass")).hexdigest()


def signature(text: str) -> Signature:
    """Return the digest of a text and the bands by which near duplicates are looked up.

    The values depend only on the text, not on the process, the machine or a library's version of a hash.
    """
    folded = fold(unified(text))
    stems = set(analyse(_HYPHEN.sub(" ", _CONTRACTED.sub(" ", folded))))
    if len(stems) < MIN_STEMS:
        return Signature(digest(text), ())
    if _NEGATION.search(folded):
        stems.add("not")
    hashes = (_hash(stem.encode("utf-8", "surrogatepass"), _MINIMA.size) for stem in stems)
    minima = list(map(min, *map(_MINIMA.unpack, hashes)))
    bands = (_BAND.pack(at, *minima[at * ROWS : (at + 1) * ROWS]) for at in range(BANDS))
    return Signature(digest(text), tuple(int.from_bytes(_hash(band, 8), "little") >> 1 for band in bands))


def is_near_duplicate(new: str, old: str) -> bool:
    """Return whether two texts have the same content; symmetric, and true for equal texts.

    They differ if any number, name, path, unit, negation, preposition or tense differs, or if any word with content is
    added, left out, replaced or moved.
    """
    if normal_form(new) == normal_form(old):
        return True
    content = _content(new)
    return bool(content) and content == _content(old)  # two texts without content are not duplicates


def contained_share(text: str, passage: str) -> float:
    """Return the share, 0–1, of the text's runs of five words that the passage contains.

    A text of fewer than eight words is contained as a whole (1.0) or not at all.
    """
    words, targets = (_WORD.findall(fold(spaced(unified(each)))) for each in (text, passage))
    if not words:
        bare = normal_form(text)
        return 1.0 if bare and bare in normal_form(passage) else 0.0
    if len(words) < _SHORT:
        return 1.0 if f" {' '.join(words)} " in f" {' '.join(targets)} " else 0.0
    grams, known = (list(zip(*(each[start:] for start in range(_GRAM)), strict=False)) for each in (words, targets))
    return sum(map(set(known).__contains__, grams)) / len(grams)


def _hash(data: bytes, size: int) -> bytes:
    return blake2b(data, digest_size=size, person=_PERSON).digest()
