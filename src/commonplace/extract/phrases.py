"""Parse the noun phrases before and after a verb, with their lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.extract import words as lists
from commonplace.extract.names import Phrase, kind_of_noun, phrase_of
from commonplace.extract.tokens import Tokens
from commonplace.extract.verbs import FORMS

SPEAKERS: Final = frozenset("i me we us".split())
USER: Final = "user"
PERSONAL: Final = frozenset("he she him her".split())
POINTING: Final = frozenset("it they them this that these those".split())
ANAPHORS: Final = SPEAKERS | PERSONAL | POINTING
_OPENING: Final = frozenset(["both", "either", "only", "just", "also", '"', "“", "*", "_", "["])
_CLOSING: Final = frozenset(['"', "”", "*", "_", "]"])
_BEFORE_LIST: Final = frozenset(["", ",", "and", "both", ":", "(", '"', "“"])
_ACRONYM: Final = 0.6
_MAX_LENGTH: Final = 5
_MAX_ITEMS: Final = 12


class Line:
    """One sentence with its names and dates; the names also by the indexes of their first word and after their last."""

    def __init__(self, tokens: Tokens, mentions: Sequence[Phrase], dated: frozenset[int]) -> None:
        self.tokens, self.mentions, self.dated = tokens, mentions, dated
        self.starting = {mention.first: mention for mention in mentions}
        self.ending = {mention.last: mention for mention in mentions}

    def is_stop(self, index: int) -> bool:
        """Return whether a word cannot be in a noun phrase."""
        lower = self.tokens.lower[index]
        if lower in lists.STOPS or index in self.dated or not (lower[0].isalnum() or lower[0] == "`"):
            return True
        return lower.endswith("ly") and len(lower) > 4 and lower not in lists.NOUNS_IN_LY


def read_behind(line: Line, start: int, *, is_subject: bool = False) -> tuple[list[Phrase], int]:
    """Read a noun phrase or a list of them with `and`; return them and the index after them. A list with `or` is empty.

    A verb that follows makes the last phrase the subject of another clause, unless a subject is read.
    """
    phrases: list[Phrase] = []
    end = start
    while len(phrases) < _MAX_ITEMS:
        parsed = _one_behind(line, start)
        if parsed is None:
            break
        phrase, behind = parsed
        if phrases and (_is_finite(line, phrase.first) or (_is_verb(line, behind) and not is_subject)):
            break
        joint, after = line.tokens.at(behind), line.tokens.at(behind + 1)
        if joint in lists.POSSESSIVE:
            break
        phrases.append(phrase)
        end = start = behind
        if joint == "or" or (joint == "," and after == "or"):
            return [], end
        if joint == "," and after in ("and", "&"):
            start += 2
        elif joint in ("and", "&", "plus"):
            start += 2 if after == "on" else 1
        elif joint == "," and _list_goes_on(line, start + 1):
            start += 1
        else:
            break
    return phrases, end


def _list_goes_on(line: Line, index: int) -> bool:
    """Return whether the phrase after a comma is another item of a list that ends in `and`."""
    for _ in range(_MAX_ITEMS):
        read = _one_behind(line, index)
        if read is None:
            return False
        joint, index = line.tokens.at(read[1]), read[1] + 1
        if joint in ("and", "&") or (joint == "," and line.tokens.at(index) in ("and", "&")):
            return not _is_verb(line, index)
        if joint != ",":
            return False
    return False


def _is_finite(line: Line, index: int) -> bool:
    """Return whether a word after `and` begins another predicate: `uses X and depends on Y`."""
    forms = FORMS.get(line.tokens.lower[index], ())
    return index not in line.starting and any(form.shape in ("s", "ed") for form in forms)


def _is_verb(line: Line, index: int) -> bool:
    """Return whether a word may be a finite verb, which makes the words before it a subject."""
    lower = line.tokens.at(index)
    if lower in lists.FINITE:
        return True
    return index not in line.starting and any(form.shape in ("s", "ed", "base") for form in FORMS.get(lower, ()))


def _one_behind(line: Line, index: int) -> tuple[Phrase, int] | None:
    """Read one noun phrase, with an `of` complement of a common noun; also return the index after it."""
    tokens = line.tokens
    while tokens.at(index) in _OPENING:
        index += 1
    lower = tokens.at(index)
    has_noun = lower in lists.DETERMINERS and index + 1 < tokens.count and not line.is_stop(index + 1)
    if lower in ANAPHORS and not has_noun:
        return _anaphor(line, index), index + 1
    if lower in lists.NO_NOUNS or not lower:
        return None
    is_definite = lower in lists.DETERMINERS
    first = index + 1 if is_definite else index
    # The phrase extends to the next name, verb or word that cannot be in a noun phrase.
    mention, last = None, first
    while last < tokens.count and last - first < _MAX_LENGTH:
        name = line.starting.get(last)
        if name is not None:
            if mention is not None:
                break
            mention, last = name, name.last
        elif line.is_stop(last) or (last > first and _is_finite(line, last)):
            break
        else:
            last += 1
    phrase = _phrase(line, first, last, mention, is_definite=is_definite)
    if phrase is None:
        return None
    if mention is None and tokens.at(last) == "of":
        complement = _one_behind(line, last + 1)
        if complement is not None and not complement[0].anaphor:
            return phrase_of(tokens, phrase.first, complement[0].last, phrase.type, 0.7), complement[1]
    while tokens.at(last) in _CLOSING:
        last += 1
    return phrase, last


def _anaphor(line: Line, index: int) -> Phrase:
    return phrase_of(line.tokens, index, index + 1, "", 0.9, anaphor=line.tokens.lower[index])


def _phrase(line: Line, first: int, last: int, mention: Phrase | None, *, is_definite: bool) -> Phrase | None:
    """Return the phrase of words, by the name among them or the common noun at their end; None if they form none."""
    tokens = line.tokens
    if last <= first:
        return None
    if mention is not None and mention.last == last and mention.first > first and mention.type == "concept":
        # `API` names nothing by itself; `the payments API` does.
        mention = mention if mention.confidence > _ACRONYM or tokens.lower[first] in lists.FRESH else None
    if mention is not None:
        is_code = tokens.word[mention.first][0] == "`"
        # A class noun or a number after a name adds nothing to it: `the auth.ts file`, `Postgres 15`.
        behind = tokens.lower[mention.last : last]
        if is_code or all(word in lists.CLASS_NOUNS or word[0].isdigit() or word == mention.type for word in behind):
            return replace(mention, first=first, last=last)
        first = mention.first
    head = tokens.lower[last - 1]
    if head == USER and last - first == 1:
        return phrase_of(tokens, first, last, "person", 0.8, anaphor=USER)
    word = tokens.lower[first]
    if (
        tokens.word[last - 1][0] == "`"
        or (word.endswith("ing") and len(word) > 5 and word not in lists.NOUNS_IN_ING)  # `becoming healthier`
        or head in lists.VAGUE
        or not any(char.isalpha() for char in head)
        or (head.isascii() and len(head) < 2)
    ):
        return None
    while first < last - 1 and (tokens.lower[first].isdigit() or tokens.lower[first] in lists.FRESH):
        first += 1
    type_, confidence = kind_of_noun(head.rsplit("-", 1)[-1]), 0.7 if mention is None else 0.8
    return phrase_of(tokens, first, last, type_, confidence, is_definite=is_definite)


def read_before(line: Line, end: int) -> tuple[list[Phrase], int]:
    """Read the noun phrase or list that ends before `end`; also return the index of its begin, determiner included."""
    phrases: list[Phrase] = []
    begin = end
    while len(phrases) < _MAX_ITEMS:
        parsed = _one_before(line, end)
        if parsed is None:
            break
        phrase, start = parsed
        joint = line.tokens.at(start - 1)
        # Is this another item of the subject, or the end of another clause?
        is_object = phrase.anaphor in ("it", "them", "him", "us", "me")
        if phrases and (is_object or not (joint in _BEFORE_LIST or joint in lists.CONJUNCTIONS)):
            break
        phrases.insert(0, phrase)
        begin = start
        if joint in ("or", "nor"):
            return [], begin
        if phrase.anaphor and (phrase.anaphor != "i" or line.tokens.at(start - 2) == ","):
            break
        if joint in ("and", "&"):
            end = start - 2 if line.tokens.at(start - 2) == "," else start - 1
        elif joint == "," and len(phrases) > 1:
            end = start - 1
        else:
            break
    return phrases, begin


def _one_before(line: Line, end: int) -> tuple[Phrase, int] | None:
    """Read the noun phrase that ends before `end`; also return the index of its begin."""
    tokens = line.tokens
    while tokens.at(end - 1) in _CLOSING or tokens.at(end - 1) in ("both", "all"):
        end -= 1
    while end - 1 in line.dated:
        end -= 1
    if end <= 0:
        return None
    if tokens.lower[end - 1] in ANAPHORS and end not in line.ending:
        return _anaphor(line, end - 1), end - 1
    mention, first = None, end
    while first > 0 and end - first < _MAX_LENGTH:
        name = line.ending.get(first)
        if name is None:
            if line.is_stop(first - 1) or (first < end and _is_verb(line, first - 1)):
                break
            first -= 1
            continue
        if mention is not None:
            break
        mention, first = name, name.first
        if name.type != "concept" or name.confidence > _ACRONYM:
            break
    is_definite = tokens.at(first - 1) in lists.DETERMINERS
    start = first - 1 if is_definite else first
    phrase = _phrase(line, first, end, mention, is_definite=is_definite)
    before = tokens.at(start - 1)
    if phrase is None or before in lists.NO_NOUNS or (mention is None and phrase.last - phrase.first >= _MAX_LENGTH):
        return None
    if before in lists.VERBS and before not in lists.SAYING:
        return None
    if before not in lists.PREPOSITIONS or before == "because":
        return phrase, start
    # After a preposition, it belongs to the noun before: `the owner of billing`, `the tests in auth.ts`.
    head = _one_before(line, start - 1)
    if head is None or head[0].anaphor:
        return None
    if before == "of" and not head[0].is_name:
        return phrase_of(tokens, head[0].first, phrase.last, head[0].type, 0.7), head[1]
    return head
