"""Compare texts: equality of meaning, near-duplicate signatures, containment.

A wrong "same" loses what somebody knew; a wrong "different" only keeps a memory twice.

Everything that is written counts unless it is known not to: case, punctuation, a few words that carry nothing, plain
inflection and, in long texts, evident slips of the pen.

`hashlib` gives the same digests and loads OpenSSL first, which takes 3.7 MB of a process that should stay under 50.
It is faster on much data: whoever reads whole files takes that one.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.patterns import late_pattern
from commonplace.text.hashes import blake2b, sha256
from commonplace.text.tokens import analyse, without_unspaced
from commonplace.text.words import word_lists

_LONG: Final = 12
_MIN_SHARED: Final = 0.9
_MIN_TO_MOVE: Final = 3


_SAME_SIGNS: Final = str.maketrans(
    {**dict.fromkeys("‘’‛ʼ＇", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u200b\u2060\ufeff\u00ad", "")
)
# NFKC makes plain digits of these, and "10²" would read as "102".
_RAISED: Final = late_pattern("[²³¹¼-¾⁰-₉⅐-⅟↉①-⒛⓪-⓿❶-➓]")
ACRONYMS: Final = frozenset({"IT", "US", "WHO"})  # words of another meaning when written small

_BULLET: Final = late_pattern(r"^[ \t]*(?:[-*+•]|#{1,6})[ \t]+", re.MULTILINE)
OPENING: Final = "\"'([{«¿¡*`"
CLOSING: Final = "\"')]}»,;:!?….*`。、"
_SENTENCE_ENDS: Final = frozenset(".!?…。")
_LETTERS: Final = late_pattern(r"[^\W\d_]+(?:'[^\W\d_]+)?(?:-[^\W\d_]+)*")
_EMPTY, _COUNTED, _WITH_BE, _WEEKDAYS, _FRONTS, _BOUND, _NO_PLURALS, _CONFUSABLE = word_lists(
    Path(__file__).with_name("similarity.txt")
).values()
_FORMS: Final = {**dict.fromkeys(("is", "are", "am", "be", "been"), "be"), "has": "have", "does": "do"}
_TAILS: Final = {"'re": "be", "'m": "be", "'ll": "will", "'ve": "have"}
_BROKEN: Final = {"cannot": "can", "can't": "can", "won't": "will", "shan't": "shall"}
_SUFFIX: Final = late_pattern(r"(?:ings?|ed|ers?|e?s|ions?|ly)$")
_VOWELS: Final = frozenset("aeiou")


@dataclass(frozen=True, slots=True)
class _Token:
    """One thing of a text that counts: a word, folded, or a number, name or sign as written.

    Attributes:
        is_plain: written small and of letters alone, so neither a name nor code.
        is_progressive: an -ing form after a form of "be", which was dropped for it.
    """

    key: str
    is_plain: bool = False
    is_progressive: bool = False


def say_the_same(new: str, old: str) -> bool:
    """Return whether the texts have the same words in the same order, as the module understands "same".

    A phrase in front ("On Monday, …") may stand at the end of its sentence, and sentences that do not speak of each
    other may change places. Texts without a word or sign that counts never say the same.
    """
    ours, theirs = _sentences(new), _sentences(old)
    if not ours or not theirs:
        return False
    if _agree(_joined(ours), _joined(theirs)):
        return True
    ours, theirs = list(map(_Sentence.with_front_last, ours)), list(map(_Sentence.with_front_last, theirs))
    return _agree(_joined(ours), _joined(theirs)) or _are_shuffled(ours, theirs)


def unified(text: str) -> str:
    """Return the text in one Unicode form: NFKC, plain quotes and dashes, nothing invisible, `10²` as `10^2`."""
    if not text.isascii():
        text = _RAISED.sub(r"^\g<0>", text.translate(_SAME_SIGNS))
        text = unicodedata.normalize("NFKC", text).translate(_SAME_SIGNS)
    return text


def fold(text: str) -> str:
    """Return the text without case, again in NFKC."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.casefold()).casefold())


def spaced(text: str) -> str:
    """Set the characters of scripts written without spaces apart, so that each is a word."""
    if text.isascii() or not without_unspaced(text)[1]:
        return text
    return "".join(f" {char} " if without_unspaced(char)[1] else char for char in text)


@dataclass(slots=True)
class _Sentence:
    """The tokens of a sentence; the first `front` of them are a phrase before a comma that could stand at its end."""

    tokens: list[_Token] = field(default_factory=list)
    first: str = ""
    front: int = 0

    def add(self, token: _Token, before: str) -> None:
        """Append a token, and drop a word before it that carries nothing there."""
        last = self.tokens[-1].key if self.tokens else ""
        if token.key in _COUNTED and before == "a":
            self.tokens.append(_Token("a"))
        elif token.key in _WEEKDAYS and last == "on":
            self.tokens.pop()
        elif token.is_plain and token.key.endswith("ing") and last == "be":
            self.tokens.pop()
            token = _Token(token.key, is_plain=True, is_progressive=True)
        self.tokens.append(token)

    def with_front_last(self) -> _Sentence:
        """Return "We rest on Monday" for "On Monday, we rest"; a question mark stays at the end."""
        end = len(self.tokens) - (self.tokens[-1:] == [_QUESTION])
        moved = self.tokens[self.front : end] + self.tokens[: self.front] + self.tokens[end:]
        return _Sentence(moved, self.first)


_QUESTION: Final = _Token("?")


def _sentences(text: str) -> list[_Sentence]:
    """Return the sentences that have tokens. Commas and the like are only looked at to find their ends."""
    chunks = spaced(unified(_BULLET.sub("", text))).split()
    found = [_Sentence()]
    before, is_code = "", False
    for chunk in chunks:
        sentence = found[-1]
        ticks = chunk.count("`")
        middle = chunk.lstrip(OPENING).rstrip(CLOSING)
        closing = chunk[len(chunk.rstrip(CLOSING)) :]
        for token in _tokens(chunk, middle, before, is_first=not sentence.tokens):
            sentence.add(_Token(token.key) if is_code or ticks else token, before)
        is_code ^= ticks % 2 == 1
        before = fold(middle)
        sentence.first = sentence.first or before
        if "," in closing and not sentence.front and sentence.first in _FRONTS:
            sentence.front = len(sentence.tokens)
        if not _SENTENCE_ENDS.isdisjoint(closing):
            if "?" in closing:
                sentence.tokens.append(_QUESTION)
            found.append(_Sentence())
    return [sentence for sentence in found if sentence.tokens]


def _tokens(chunk: str, middle: str, before: str, *, is_first: bool) -> list[_Token]:
    if not middle.strip("-"):
        return _signs(chunk, before)
    is_grade = middle == "A" and not is_first  # plan A
    if is_grade or middle in ACRONYMS or is_unit(middle, before):
        return [_Token(middle)]
    if not _LETTERS.fullmatch(middle):
        # Quotes and brackets stay: of code and data they are a part, and 5" are inches.
        return [_Token(chunk.lstrip("(*`").rstrip("),;:!?….*`。、") or middle)]
    return [token for part in middle.split("-") for token in _word(part)]


def _signs(chunk: str, before: str) -> list[_Token]:
    """Return what a chunk without letters and digits says: commas, and dashes between words, say nothing."""
    if not chunk.strip("-"):
        return [_Token("-")] if before[-1:].isdigit() else []
    return [_Token(chunk)] if set(chunk) & set("*[]{}") else []


def is_unit(word: str, before: str) -> bool:
    """Return whether it may be a unit, of which capitals count: 5 MW is not 5 mW."""
    return len(word) <= 3 and before[-1:].isdigit() and not word.islower()


def _word(written: str) -> list[_Token]:
    """Return the tokens of a word of letters and perhaps an apostrophe: two for "don't", none for "the"."""
    folded = fold(written)
    if folded in _EMPTY:
        return []
    if folded in _BROKEN:
        return [_Token(_BROKEN[folded]), _Token("not")]
    stem, mark, tail = folded.partition("'")
    if mark and tail == "t" and stem.endswith("n"):
        return [_Token(_FORMS.get(stem[:-1], stem[:-1])), _Token("not")]
    if mark and tail == "s":
        return [_Token(stem), _Token("be" if stem in _WITH_BE else "'s")]
    if mark and mark + tail in _TAILS:
        return [_Token(stem), _Token(_TAILS[mark + tail])]
    return [_Token(_FORMS.get(folded, folded), is_plain=written.islower())]


def _joined(sentences: Iterable[_Sentence]) -> list[_Token]:
    return [token for sentence in sentences for token in sentence.tokens]


def _agree(ours: Sequence[_Token], theirs: Sequence[_Token]) -> bool:
    """Return whether the tokens are the same one by one, but for inflection and, in long texts, slips."""
    if len(ours) != len(theirs):
        return False
    odd = 0
    for mine, other in zip(ours, theirs, strict=True):
        if mine.key == other.key:
            continue
        if not (mine.is_plain and other.is_plain):
            return False
        if _bases(mine).isdisjoint(_bases(other)):
            if not _is_slip(mine.key, other.key):
                return False
            odd += 1
    if not odd:
        return True
    content = len({token.key for token in ours if len(token.key) > 3})
    return content >= _LONG and content - odd >= _MIN_SHARED * content


def _are_shuffled(ours: Sequence[_Sentence], theirs: Sequence[_Sentence]) -> bool:
    """Return whether these are the same sentences in another order, of which none speaks of another."""
    if len(ours) != len(theirs) or any(len(sentence.tokens) < _MIN_TO_MOVE for sentence in ours):
        return False
    if not _BOUND.isdisjoint(token.key for token in _joined(ours)):
        return False
    written, others = (Counter(tuple(t.key for t in each.tokens) for each in side) for side in (ours, theirs))
    return written == others


def _bases(token: _Token) -> set[str]:
    """Return the word and what it may be a plural, a third person or, after "be", an -ing form of; never a past tense.

    A past tense is another statement: what we used we may use no longer.
    """
    word = token.key
    bases = {word}
    if (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is", "ics"))
        and word not in _NO_PLURALS
    ):
        bases.add(word[:-1])
        if word.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
            bases.add(word[:-2])
        if word.endswith("ies"):
            bases.add(word[:-3] + "y")
    if token.is_progressive and len(word) > 4:
        bases |= {word[:-3] + "e", word[:-3] if len(word) > 5 else word}
        if word[-4] == word[-5]:
            bases.add(word[:-4])
    return bases


def _is_slip(mine: str, other: str) -> bool:
    """Return whether one of two words is the other with a slip of the pen.

    Without a dictionary a slip cannot be told from another word, so that only slips count which seldom make one: in
    long words, within them, two letters exchanged, one left out or doubled, or one vowel for another. First and last
    letters stay: most opposites (increase and decrease, employer and employee) differ there.
    """
    short, long = sorted((mine, other), key=len)
    if len(_SUFFIX.sub("", short)) < 6 or len(short) < 7 or short[0] != long[0] or short[-1] != long[-1]:
        return False
    if mine in _CONFUSABLE or other in _CONFUSABLE or len(long) - len(short) > 1:
        return False
    at = next((at for at, (one, two) in enumerate(zip(short, long, strict=False)) if one != two), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    if short[at + 2 :] == long[at + 2 :] and short[at : at + 2] == long[at : at + 2][::-1]:
        return True
    return short[at + 1 :] == long[at + 1 :] and {short[at], long[at]} <= _VOWELS


# 15 minima in bands of 3 (Broder 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", 3.4): sets with a
# Jaccard index of 0.9 share a band with probability 1 - (1 - 0.9^3)^5 = 0.9985, of 0.5 with 0.49, of 0.1 with 0.005.
BANDS: Final = 5
ROWS: Final = 3
MIN_STEMS: Final = 3
"""Texts of fewer distinct content stems have no bands: there is too little in them to be nearly alike."""

_PERSON: Final = b"commonplace/1"  # changing it, or how stems are made, makes stored bands worthless
_MINIMA: Final = struct.Struct("<16I")
_BAND: Final = struct.Struct("<B3I")
_GRAM: Final = 5
_SHORT: Final = 8

_QUOTES: Final = {'"': '"', "'": "'", "«": "»", "‹": "›", "「": "」", "『": "』", "`": "`"}
_FINAL: Final = ".,;:!…。、"
# What is written so is a name in some code or a quantity with its unit, where capitals count: -D, /Data, 5MB, a_B.
_VERBATIM: Final = late_pattern(r"^-|[\d/\\_$=@<>{}|(]")
_HYPHEN: Final = late_pattern(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_CONTRACTED: Final = late_pattern(r"(?:\b(?:ca|wo|sha))?n't\b|\bcannot\b")  # never `\w+n't`: quadratic in a long word
_NEGATION: Final = late_pattern(r"\b(?:not?|never|nor|cannot|without|neither)\b|n't\b")
_WORD: Final = late_pattern(r"\w+")


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
    form = " ".join(
        word
        if is_unit(word, before) or _VERBATIM.search(word) or word.strip(OPENING + CLOSING) in ACRONYMS
        else fold(word)
        for before, word in zip(["", *words], words, strict=False)
    )
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
    if len(stems) < MIN_STEMS:
        return Signature(digest(text), ())
    if _NEGATION.search(folded):
        stems.add("not")
    hashes = (_hash(stem.encode("utf-8", "surrogatepass"), _MINIMA.size) for stem in stems)
    minima = list(map(min, *map(_MINIMA.unpack, hashes)))
    bands = (_BAND.pack(at, *minima[at * ROWS : (at + 1) * ROWS]) for at in range(BANDS))
    return Signature(digest(text), tuple(int.from_bytes(_hash(band, 8), "little") >> 1 for band in bands))


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


def _hash(data: bytes, size: int) -> bytes:
    return blake2b(data, digest_size=size, person=_PERSON).digest()


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(spaced(unified(text))))


def _grams(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_GRAM)), strict=False)
