"""Analyse a query into words and the index terms of each, with spelling variants."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.languages import ENGLISH, STOP_WORDS, TASK_WORDS, natural_language
from commonplace.text.tokens import UNSPACED_RUN, analyse, bigrams, without_unspaced, words_in, written_words
from commonplace.text.words import patterns

_Repeated = TypeVar("_Repeated", bound=Hashable)
MAX_REPEATS: Final = 3
"""A word that a query says more often counts no more: a pasted log is no question about its commonest word."""
LONG_TASK: Final = 12
"""A question of fewer words, without the commonest, is taken as it is."""
MIN_SUBJECT, MAX_SUBJECT = 3, 0.75
"""So is one of which fewer words, or a larger part, say what it is about."""
_WORD: Final = lazy_pattern(r"\w+(?:[_.:/-]\w+)*")
_HAN: Final = lazy_pattern("([\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+)")
_HIRAGANA: Final = lazy_pattern("[\u3041-\u3096\u309d-\u309f]+")
_KANA: Final = lazy_pattern("[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff]")
_HANGUL: Final = lazy_pattern("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")
_ASKING: Final = patterns(Path(__file__).with_name("question_words.txt"))
# Each joins words, and is part of one elsewhere: 都 is "all", and the end of Chengdu.
_JOINS_IN_CHINESE: Final = frozenset(
    "的了是在有和与與跟也都就还還把被这這那个個到去来來要会會能可对對从從给給得着過过他她它最该該用做叫"
)


@dataclass(frozen=True, slots=True)
class QueryWords:
    """A query as the lexical index reads it.

    Attributes:
        words: the terms of each word, one for each language whose stem differs, in order; a word that is said twice
            appears twice, at most `MAX_REPEATS`, but one of a script without spaces once: its pieces overlap.
        pairs: pairs of characters across the border of two words, or in what only joins or asks: a passage that holds
            one is the better, but one that does not lacks no word.
    """

    words: tuple[tuple[str, ...], ...]
    pairs: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, in order, each as often as there are words with it, at most `MAX_REPEATS`."""
        return _within_repeats(chain(chain.from_iterable(self.words), self.pairs))


def analyse_query(text: str, languages: Iterable[str] = ()) -> QueryWords:
    """Return the words of a query with their terms as English and in each of the languages given.

    The stop words that are dropped are those of the query's own language. Of Chinese, Japanese and Korean, words that
    only ask or join are dropped, unless there are no others.
    """
    text = unicodedata.normalize("NFKC", text)
    unspaced = _unspaced(text)
    rest = written_words(without_unspaced(text)[0])
    spaced = _spaced(rest, natural_language(text), languages)
    if not spaced and not unspaced.words:
        spaced = _spaced(rest, "", languages)
    return QueryWords((*_within_repeats(spaced), *unspaced.words), unspaced.pairs)


def terms_of_words(text: str, languages: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the terms of each word of a text of scripts with spaces, as English and in the languages given.

    Stop words have none.
    """
    own = natural_language(text)
    spoken = dict.fromkeys((ENGLISH, *languages))
    return {
        word: tuple(dict.fromkeys(chain.from_iterable(words_in(each, own)[word] for each in spoken)))
        for word in text.split()
    }


def subject_of(text: str) -> str:
    """Return what a long task is about: its words without those by which people ask for work, in order.

    "" if it is short, holds few of these or hardly anything else, or is not in English. Judged by all its words, a
    long task seems to be answered by little of what answers it: nothing repeats how it asks.
    """
    if natural_language(text) != ENGLISH:
        return ""
    written = [word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS]
    kept = [
        word
        for word in written
        if not (word.isalpha() and (word.islower() or word.istitle())) or _task_terms().isdisjoint(analyse(word))
    ]
    is_about = MIN_SUBJECT <= len(set(kept)) <= MAX_SUBJECT * len(written)
    return " ".join(kept) if len(written) >= LONG_TASK and is_about else ""


@cache
def _task_terms() -> frozenset[str]:
    return frozenset(chain.from_iterable(map(analyse, TASK_WORDS)))


def _spaced(written: list[str], own: str, languages: Iterable[str]) -> list[tuple[str, ...]]:
    # The same stop words whatever the stems, so that the terms of a word are adjacent.
    each = [
        chain.from_iterable(map(words_in(language, own).__getitem__, written))
        for language in dict.fromkeys((ENGLISH, *languages))
    ]
    return [tuple(dict.fromkeys(terms)) for terms in zip(*each, strict=True)]


def _within_repeats(items: Iterable[_Repeated]) -> tuple[_Repeated, ...]:
    counts: Counter[_Repeated] = Counter()
    kept = []
    for item in items:
        counts[item] += 1
        if counts[item] <= MAX_REPEATS:
            kept.append(item)
    return tuple(kept)


def _unspaced(text: str) -> QueryWords:
    """Return the words of scripts written without spaces: pairs of characters, and of Han each character besides."""
    runs = [] if text.isascii() else UNSPACED_RUN.findall(text)
    if not runs:
        return QueryWords(())
    is_japanese = _KANA.search(text) is not None
    words: list[str] = []
    pairs: list[str] = []
    for run in runs:
        if _HANGUL.fullmatch(run):
            parts = [] if _ASKING["asked in Korean"].fullmatch(run) else [run]
            words += [pair for part in parts for pair in bigrams(_ASKING["ends in Korean"].sub("", part))]
        elif is_japanese:
            parts = list(filter(None, _ASKING["asked in Japanese"].split(run)))
            words += [word for part in parts for word in _japanese(part, is_whole=part == run)]
        else:
            parts = list(filter(None, _ASKING["asked in Chinese"].split(run)))
            words += [
                word
                for part in parts
                for word in (_han(part, _JOINS_IN_CHINESE) if _HAN.fullmatch(part) else bigrams(part))
            ]
        pairs += [pair for part in parts for pair in map("".join, pairwise(part)) if not _HIRAGANA.fullmatch(pair)]
    if not words:
        words = [term for run in runs for term in bigrams(run)]
    known = dict.fromkeys(words)
    return QueryWords(
        tuple((term,) for term in known), tuple(pair for pair in dict.fromkeys(pairs) if pair not in known)
    )


def _han(run: str, joining: frozenset[str] = frozenset()) -> list[str]:
    """Return the pairs and characters of Han, but for those that join."""
    pairs = [pair for pair in map("".join, pairwise(run)) if joining.isdisjoint(pair)]
    return pairs + [character for character in run if character not in joining]


def _japanese(part: str, *, is_whole: bool) -> list[str]:
    """Return the words of Han and Katakana, and of Hiragana what is left without particles and endings."""
    words: list[str] = []
    end = 0
    for kana in _HIRAGANA.finditer(part):
        words += _by_script(part[end : kana.start()])
        end = kana.end()
        left = kana[0]
        while found := _ASKING["ends in Japanese"].search(left):
            left = left[: found.start()]
        begins = kana.start() == 0 and is_whole
        front = None if begins else _ASKING["fronts in Japanese"].match(left)
        if front is None and kana.start():
            continue  # the ending of the word before it
        left = left if front is None else left[front.end() :]
        words += bigrams(left) if len(left) > 1 else []
    return words + _by_script(part[end:])


def _by_script(run: str) -> list[str]:
    parts = filter(None, _HAN.split(run))
    return [word for part in parts for word in (_han(part) if _HAN.match(part) else bigrams(part))]


MIN_LENGTH: Final = 5
"""A shorter word is one slip away from too many others."""
_LONG: Final = 9
"""From here on a word may have two slips."""
MAX_WORDS: Final = 16
"""A longer query is a text, of which some word is always known."""
WORDS: Final = lazy_pattern(r"[^\W\d_]+")


def slips(word: str) -> int:
    """Return how many edits a misspelt word may be away from the intended one."""
    return 0 if len(word) < MIN_LENGTH else 1 if len(word) < _LONG else 2


def edits(one: str, other: str, most: int) -> int:
    """Return how many edits lead from one word to the other, `most` + 1 for more than `most`.

    An edit is a character more, less or other, or two neighbours exchanged (optimal string alignment).
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        earlier, before, row = before, row, [place]
        for at, wanted in enumerate(other, 1):
            cost = min(row[-1] + 1, before[at] + 1, before[at - 1] + (letter != wanted))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                cost = min(cost, earlier[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def respelled(query: str, is_word: Callable[[str], bool], near: Callable[[str], Iterable[str]]) -> str:
    """Return a query with its misspelt words corrected; a long one unchanged.

    Args:
        is_word: returns whether a word is known, so that it is left as it is.
        near: returns texts that may hold the correct spelling of an unknown word.
    """
    if len(WORDS.findall(query)) > MAX_WORDS:
        return query

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        return word if not slips(word) or is_word(word) else meant(word, near(word)) or word

    return WORDS.sub(replaced, query)


def meant(word: str, texts: Iterable[str]) -> str:
    """Return the word of the texts that corrects a misspelt one: the nearest, then the commonest; "" for none.

    Both begin alike, and differ by one character in length at most: few slips are other than that, and most words that
    are ("methane", "methadone") are other words.
    """
    most, written = slips(word), word.casefold()
    counts = Counter(found for text in texts for found in set(WORDS.findall(text)))
    near = [
        (distance, -count, known)
        for known, count in counts.items()
        if known[0].casefold() == written[0]
        and abs(len(known) - len(word)) <= 1
        and (distance := edits(written, known.casefold(), most)) <= most
    ]
    return min(near)[2] if near else ""
