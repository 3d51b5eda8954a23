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
"""Maximum times that a repeated word of a query counts: a pasted log does not ask about its commonest word."""
LONG_TASK: Final = 12
"""Minimum words of a long task, without stop words; `subject_of` leaves shorter ones alone."""
MIN_SUBJECT, MAX_SUBJECT = 3, 0.75
"""Minimum number, and maximum share, of a long task's words that form its subject."""
_WORD: Final = lazy_pattern(r"\w+(?:[_.:/-]\w+)*")
_HAN: Final = lazy_pattern("([\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+)")
_HIRAGANA: Final = lazy_pattern("[\u3041-\u3096\u309d-\u309f]+")
_KANA: Final = lazy_pattern("[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff]")
_HANGUL: Final = lazy_pattern("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")
_ASKING: Final = patterns(Path(__file__).with_name("question_words.txt"))
# Each joins words, but can also be part of one: 都 is "all", and the end of Chengdu.
_JOINS_IN_CHINESE: Final = frozenset(
    "的了是在有和与與跟也都就还還把被这這那个個到去来來要会會能可对對从從给給得着過过他她它最该該用做叫"
)


@dataclass(frozen=True, slots=True)
class QueryWords:
    """A query as the lexical index reads it.

    Attributes:
        words: the terms of each word, one for each language whose stem differs, in order; a repeated word appears up to
            `MAX_REPEATS` times, but a word of a script without spaces once: its pieces overlap.
        pairs: pairs of characters across a word border, or in words that only join or ask: a passage with one scores
            higher, but a passage without it lacks no word.
    """

    words: tuple[tuple[str, ...], ...]
    pairs: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, in order, each once per word that has it, at most `MAX_REPEATS` times."""
        return _within_repeats(chain(chain.from_iterable(self.words), self.pairs))


def analyse_query(text: str, languages: Iterable[str] = ()) -> QueryWords:
    """Return the words of a query with their terms as English and in each of `languages`.

    Stop words of the query's own language are dropped. In Chinese, Japanese and Korean, words that only ask or join are
    dropped. If no other words remain, these are kept.
    """
    text = unicodedata.normalize("NFKC", text)
    unspaced = _unspaced(text)
    rest = written_words(without_unspaced(text)[0])
    spaced = _spaced(rest, natural_language(text), languages)
    if not spaced and not unspaced.words:
        spaced = _spaced(rest, "", languages)
    return QueryWords((*_within_repeats(spaced), *unspaced.words), unspaced.pairs)


def terms_of_words(text: str, languages: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the terms of each word of a text in scripts with spaces, as English and in each of `languages`.

    Stop words have no terms.
    """
    own = natural_language(text)
    stemmers = dict.fromkeys((ENGLISH, *languages))
    return {
        word: tuple(dict.fromkeys(chain.from_iterable(words_in(stemmer, own)[word] for stemmer in stemmers)))
        for word in text.split()
    }


def subject_of(text: str) -> str:
    """Return the subject of a long task: its words, in order, without stop words and words that ask for work.

    Return "" if the task is short, is not in English, or has few such words or hardly any others. Scored by all its
    words, a long task would match its own answers poorly, since they do not repeat how it asks.
    """
    if natural_language(text) != ENGLISH:
        return ""
    written = [word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS]
    subject = [
        word
        for word in written
        if not (word.isalpha() and (word.islower() or word.istitle())) or _task_terms().isdisjoint(analyse(word))
    ]
    is_about = MIN_SUBJECT <= len(set(subject)) <= MAX_SUBJECT * len(written)
    return " ".join(subject) if len(written) >= LONG_TASK and is_about else ""


@cache
def _task_terms() -> frozenset[str]:
    return frozenset(chain.from_iterable(map(analyse, TASK_WORDS)))


def _spaced(written: list[str], own: str, languages: Iterable[str]) -> list[tuple[str, ...]]:
    # The same stop words for all stemmers, so that the terms of a word align.
    each = [
        chain.from_iterable(map(words_in(language, own).__getitem__, written))
        for language in dict.fromkeys((ENGLISH, *languages))
    ]
    return [tuple(dict.fromkeys(terms)) for terms in zip(*each, strict=True)]


def _within_repeats(items: Iterable[_Repeated]) -> tuple[_Repeated, ...]:
    counts: Counter[_Repeated] = Counter()
    limited = []
    for item in items:
        counts[item] += 1
        if counts[item] <= MAX_REPEATS:
            limited.append(item)
    return tuple(limited)


def _unspaced(text: str) -> QueryWords:
    """Return the words of scripts written without spaces: pairs of characters, and for Han also single characters."""
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
    distinct = dict.fromkeys(words)
    further = tuple(pair for pair in dict.fromkeys(pairs) if pair not in distinct)
    return QueryWords(tuple((term,) for term in distinct), further)


def _han(run: str, joining: frozenset[str] = frozenset()) -> list[str]:
    """Return the pairs and characters of Han, except those that join words."""
    pairs = [pair for pair in map("".join, pairwise(run)) if joining.isdisjoint(pair)]
    return pairs + [character for character in run if character not in joining]


def _japanese(part: str, *, is_whole: bool) -> list[str]:
    """Return the words of Han and Katakana, and of Hiragana without particles and endings."""
    words: list[str] = []
    end = 0
    for kana in _HIRAGANA.finditer(part):
        words += _by_script(part[end : kana.start()])
        end = kana.end()
        left = kana[0]
        while ending := _ASKING["ends in Japanese"].search(left):
            left = left[: ending.start()]
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
"""Minimum length of a word to correct: a shorter one is one edit away from too many others."""
_LONG: Final = 9
"""Length from which a word may have two edits."""
MAX_WORDS: Final = 16
"""Maximum words of a query to correct: a longer query is a text, in which some word is always known."""
WORDS: Final = lazy_pattern(r"[^\W\d_]+")


def slips(word: str) -> int:
    """Return the maximum number of edits between a misspelt word and the intended one."""
    return 0 if len(word) < MIN_LENGTH else 1 if len(word) < _LONG else 2


def edits(left: str, right: str, most: int) -> int:
    """Return the number of edits between two words, or `most` + 1 if it exceeds `most`.

    An edit inserts, deletes or replaces a character, or swaps two neighbours (optimal string alignment).
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for row_index, letter in enumerate(left, 1):
        earlier, before, row = before, row, [row_index]
        for column, target in enumerate(right, 1):
            cost = min(row[-1] + 1, before[column] + 1, before[column - 1] + (letter != target))
            if row_index > 1 and column > 1 and letter == right[column - 2] and left[row_index - 2] == target:
                cost = min(cost, earlier[column - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def respelled(query: str, is_word: Callable[[str], bool], near: Callable[[str], Iterable[str]]) -> str:
    """Return a query with its misspelt words corrected; a long one unchanged.

    Args:
        is_word: returns whether a word is known; known words are left unchanged.
        near: returns texts that may contain the correct spelling of an unknown word.
    """
    if len(WORDS.findall(query)) > MAX_WORDS:
        return query

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        return word if not slips(word) or is_word(word) else find_correction(word, near(word)) or word

    return WORDS.sub(replaced, query)


def find_correction(word: str, texts: Iterable[str]) -> str:
    """Return the word of the texts that corrects a misspelt one: the nearest, then the commonest; "" for none.

    Both have the same first letter, and their lengths differ by at most one: few misspellings differ more, and most
    words that do ("methane", "methadone") are different words.
    """
    most, written = slips(word), word.casefold()
    counts = Counter(candidate for text in texts for candidate in set(WORDS.findall(text)))
    near = [
        (distance, -count, spelling)
        for spelling, count in counts.items()
        if spelling[0].casefold() == written[0]
        and abs(len(spelling) - len(word)) <= 1
        and (distance := edits(written, spelling.casefold(), most)) <= most
    ]
    return min(near)[2] if near else ""
