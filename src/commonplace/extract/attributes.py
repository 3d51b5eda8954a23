"""Read what everyday sentences say of things that have one value at a time: editor, day, dose, lead.

The table in attributes.txt says what is read. A newer value ends an older one where the sentence speaks of a change;
what a rule must not decide has a doubt, and a person is asked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final, NamedTuple

from commonplace.dataclasses import replace
from commonplace.extract.entities import THE_USER
from commonplace.extract.modality import doubtful_places, is_hedged, is_lasting, is_sensitive
from commonplace.extract.model import BESIDE, SENSITIVE, UNMARKED, UNSURE
from commonplace.extract.names import kind_of_noun
from commonplace.extract.phrases import Line, Phrase, phrase_of
from commonplace.extract.relations import Statement
from commonplace.extract.words import DEMONYMS, DETERMINERS, KIN, NEGATIONS, PATTERNS, PREPOSITIONS, ROLES, VAGUE, WORDS
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import entries

_NOT: Final = NEGATIONS | {"without", "will", "'ll", "would", "used", "than", "who", "which", "was", "were", "had"}
_NOT_AN_END: Final = frozenset({"almost", "nearly", "hardly", "barely", "never"})
_LABEL: Final = lazy_pattern(r"[ \t>*-]*[^\W\d_][\w .'’()-]{0,40}?[ \t]*:[ \t]+")
_STOPS: Final = WORDS["STOPS"]
_NOT_A_NOUN: Final = WORDS["NOT_A_NOUN"]
_CONDITIONS: Final = WORDS["CONDITIONS"]
"""How somebody or something is for the moment: `on fire`, `happy`."""
_NUMBER: Final = lazy_pattern(r"[+(\d][\d ()/.-]{4,}")
"""Of a telephone, an account or a card: it stays in the memory that says it, and names nothing."""
_MARKUP: Final = lazy_pattern(r"[*\"“”|<>#_]")
_VALUE: Final = lazy_pattern(r"^[`$€£]|\d|[^\W\d_a-zß-öø-ÿ]")
_OWNED: Final = lazy_pattern(r"(?:(?P<by>[Mm]y)|(?P<who>[A-Z][\w-]*(?: [A-Z][\w-]*)?)['’]s?) +(?P<what>.+)")
_OWN: Final = lazy_pattern(r"(?:(?:i(?: have|'ve)?|have|got) )?(?:(?:a|my) )?", re.IGNORECASE)
"""What may precede `new job at` and `first day at` of the speaker."""
_MANY: Final = (KIN - WORDS["ONE_OF_A_KIND"]) | WORDS["MANY"]
"""What people have many of."""
_MORE_ROLES: Final = ROLES | frozenset("landlord dentist tutor supervisor host chef plumber electrician".split())
_MAX_SENTENCE: Final = 300
_MAX_WORDS: Final = 5
_SURE: Final = 0.7
"""Confidence in the type of a name in the place of a value."""


class _Row(NamedTuple):
    """A way to say something, from attributes.txt."""

    relation: str
    aspect: str
    flags: frozenset[str]
    pattern: re.Pattern[str]


def _rows() -> Iterator[_Row]:
    head = ""
    for line in entries(Path(__file__).with_name("attributes.txt")):
        if not line.startswith(" "):
            head = line
            continue
        relation, _, aspect = head.partition(" ")
        marks, _, way = line.strip().partition("  ")
        pattern = lazy_pattern(rf"(?:^|(?<=\s)|(?=['’]))(?:{way.strip()})(?= |$)", re.IGNORECASE)
        yield _Row(relation, aspect, frozenset([*marks.split()[0], *marks.split()[1:]]), pattern)


_ROWS: Final = tuple(_rows())
_NO_FLAGS: Final = frozenset[str]()


GONE: Final = "GONE"
"""What is said of something that is used, owned or done no longer."""
NOBODY: Final = "nobody"
"""Placeholder of whoever used it."""


class Attributes:
    """Reads one sentence, clause by clause."""

    def __init__(self, line: Line, speaker: str, *, is_spoken: bool = False) -> None:
        """Take over a sentence.

        Args:
            is_spoken: it begins with who speaks: `Mira: I moved to Oslo`.
        """
        self._line = line
        self._owner = speaker or THE_USER
        tokens = line.tokens
        self._tokens = tokens
        self._begin = tokens.start[0]
        self._is_sure = True
        while (label := _LABEL.match(tokens.text, self._begin, tokens.end[-1])) is not None:
            self._is_sure = self._is_sure and (is_spoken or PATTERNS["lead"].match(label[0]) is not None)
            self._begin, is_spoken = label.end(), False
        self._text = tokens.text[self._begin : tokens.end[-1]].replace("’", "'").rstrip(" .!\n")
        is_open = PATTERNS["open"].search(self._text) is not None or is_hedged(self._text)
        self._is_sure = self._is_sure and not is_open
        self._is_change = False
        self._is_sensitive = is_sensitive(self._text)
        self._subject: tuple[int, str] | None = None
        self._thing: tuple[int, str] | None = None

    def statements(self) -> Iterator[Statement]:
        if not 3 < len(self._text) <= _MAX_SENTENCE or "\n\n" in self._text:
            return
        doubtful = doubtful_places(self._tokens)
        for begin, start, said in self._clauses():
            change = PATTERNS["change"]
            self._is_change = bool(change.search(self._text[begin : start + len(said)]) or change.match(said))
            place, last = self._place(start), self._place(start + len(said))
            words = self._tokens.lower[place : last + 1]
            is_end = PATTERNS["end"].search(said) is not None and _NOT_AN_END.isdisjoint(words)
            if (doubtful[place : last + 1] and doubtful[min(last, self._tokens.count) - 1]) or "?" in said:
                continue
            if (gone := self._gone(start, said)) is not None:
                yield gone
            if not is_end and not _NOT.isdisjoint(words):
                continue
            text = PATTERNS["end"].sub(lambda found: " " * len(found[0]), said) if is_end else said
            bought = PATTERNS["bought"].search(text)
            if bought is not None:
                self._thing = start + bought.start(1), bought[1]
            if (found := self._of_clause(start, text, is_end=is_end)) is not None:
                yield found

    def _clauses(self) -> Iterator[tuple[int, int, str]]:
        """Yield where each begins, where it begins behind `from now on` and the like, and its words."""
        begin = 0
        for match in [*PATTERNS["clause"].finditer(self._text), None]:
            end = len(self._text) if match is None else match.start()
            first = begin
            lead = PATTERNS["lead"].match(self._text, begin, end)
            while lead is not None:
                begin = lead.end()
                lead = PATTERNS["lead"].match(self._text, begin, end)
            if end - begin > 3:
                yield first, begin, self._text[begin:end]
            begin = end if match is None else match.end()

    def _of_clause(self, start: int, text: str, *, is_end: bool) -> Statement | None:
        role = PATTERNS["role"].search(text)
        if role is not None and (held := self._held(start, text, role, is_end=is_end)) is not None:
            return held
        for row in _ROWS:
            match = row.pattern.search(text)
            if match is None or (row.aspect == "place" and PATTERNS["for a while"].search(text)):
                continue
            if (found := self._by_row(row, start, text, match, is_end=is_end)) is not None:
                return found
        match = PATTERNS["is"].search(text)
        return None if match is None else self._is(start, text, match, is_end=is_end)

    def _held(self, start: int, text: str, role: re.Match[str], *, is_end: bool) -> Statement | None:
        """Read `Ines is the product owner`, and `Zed is my editor now`, which needs a word of change."""
        what, is_mine = role["role"], role["whose"] == "my"
        holder = self._value(start, text[: role.start()], "name")
        if holder is None or not (self._is_change if is_mine else what.rsplit(" ", 1)[-1] in _MORE_ROLES):
            return None
        of = role["of"] or ""
        who = "i" if is_mine else "we"
        source = self._subject_of(start + role.start("of"), of) if of else self._anaphor(start, who)
        if source is None:
            return None
        found = self._statement(source, holder, "RELATED_TO", what, start, is_end=is_end)
        return found if is_end or not is_mine or _MANY.isdisjoint(what.split()[-1:]) else replace(found, doubt=BESIDE)

    def _by_row(self, row: _Row, start: int, text: str, match: re.Match[str], *, is_end: bool) -> Statement | None:
        groups, flags, aspect = match.groupdict(), row.flags, row.aspect
        before, behind = (start, text[: match.start()]), (start + match.end(), text[match.end() :])
        subject = self._subject_of(*before, has_rest=True)
        value: Phrase | None
        if groups.get("value"):
            thing = self._value(*behind, "")
            aspect = f"{aspect} {thing.name.lower()}" if thing is not None else aspect
            value = self._phrase(start + match.start("value"), groups["value"])
        elif "<" in flags:
            is_named = before[1].split()[-1:] != [] and before[1].split()[-1][0].isupper()
            value = self._value(*before, "name") if is_named else None
            subject = self._subject_of(*behind)
        else:
            value = self._value(*behind, "on" if "on" in flags else "name" if "name" in flags else "")
        if groups.get("of"):
            subject = self._subject_of(start + match.start("of"), groups["of"])
        if "i" in flags:
            # `We` are the speaker and theirs, as is a `New job`.
            if match[0].lower().startswith(("new ", "first ")):
                subject = self._anaphor(start, "i") if _OWN.fullmatch(before[1]) and self._is_sure else None
            elif subject is not None and subject.anaphor in ("we", "i"):
                subject = self._anaphor(subject.start - self._begin, "i")
            elif subject is not None and subject.type != "person":
                subject = subject if subject.mention is not None and subject.type == "concept" else None
        if subject is None or value is None or not _fits(row, subject, value):
            return None
        aspect = "" if "+" in flags else aspect
        found = self._statement(subject, value, row.relation, aspect, start + match.start(), is_end=is_end, flags=flags)
        if "<" in flags or found.doubt or self._is_lasting(value, start + len(text)):
            return found
        return replace(found, doubt=BESIDE if "~" in flags else UNSURE)

    def _is_lasting(self, value: Phrase, stop: int) -> bool:
        """Return whether something is said for good: `is at 10:15 now`, not `for a week`, `today`, `in one case`."""
        said = self._tokens.text[value.end : self._begin + stop]
        is_brief = PATTERNS["for a while"].search(said) or PATTERNS["today"].search(said)
        return not is_brief and is_lasting(self._tail(value.end, stop))

    def _tail(self, end: int, stop: int) -> list[str]:
        """Return the words from a character of the text up to the end of a clause, without dates."""
        tokens = self._tokens
        places = range(bisect_left(tokens.start, end), bisect_left(tokens.start, self._begin + stop))
        return [tokens.lower[place] for place in places if place not in self._line.dated]

    def _is(self, start: int, text: str, match: re.Match[str], *, is_end: bool) -> Statement | None:
        """Read `my landlord is Mr. Weber`, `Rent is 900 euros`, `it's an iPhone now`, `the standup is at 9:30`."""
        said, rest, place = text[: match.start()].strip(), text[match.end() :], start
        if said.lower() == "it" and self._thing is not None:
            place, said = self._thing[0], self._thing[1].strip()
        is_favourite = "favourite" in said or "favorite" in said  # which may be any word
        kind = "on" if match[0].endswith(" at") else "" if is_favourite else "value"
        value = self._value(start + match.end(), rest, kind)
        if value is None or not said or value.name.lower() in DEMONYMS or PATTERNS["other"].search(said):
            return None
        owned, is_soft = _OWNED.fullmatch(PATTERNS["new"].sub("", said)), False
        if owned is not None:
            aspect = owned["what"].lower()
            if not _is_noun_phrase(aspect):
                return None
            source = self._anaphor(place, "i") if owned["by"] else self._subject_of(place, owned["who"])
            is_soft = not _MANY.isdisjoint(aspect.split()[-1:])
        else:
            is_defined = re.match(r" an? ", rest) is not None
            if is_defined or (said.split()[0].lower() not in ("the", "our") and not (said[0].isupper() and start == 0)):
                return None
            bare = PATTERNS["article"].sub("", PATTERNS["new"].sub("", said), count=1)
            if not _is_noun_phrase(bare.lower()) or _VALUE.search(bare[1:]):
                return None
            source = self._subject_of(place, said)
            # A value says when a thing is, how much of which unit, or what it is.
            unit = value.name.split()[1:] if value.name[0].isdigit() else []
            aspect = "when" if PATTERNS["day"].match(value.name) else " ".join(("is", *unit))
        is_condition = value.name.lower() in _CONDITIONS and PATTERNS["named"].search(aspect) is None
        if is_condition or source is None or source.anaphor not in ("", "i", "we"):
            return None
        relation = "PREFERS" if is_favourite else "RELATED_TO"
        found = self._statement(source, value, relation, aspect, start + match.start(), is_end=is_end)
        is_lasting = found.doubt or self._is_lasting(value, start + len(text))
        return replace(found, doubt=BESIDE if is_soft and not is_end else found.doubt if is_lasting else UNSURE)

    def _gone(self, start: int, text: str) -> Statement | None:
        """Read `AWS is shut down`, `we left Netlify`, and what takes the place of something."""
        if PATTERNS["for a while"].search(self._text) or PATTERNS["passing"].search(self._text):
            return None
        ways = ("gone", "dropped", "switched", "replaced", "instead")
        how, match = next(((way, found) for way in ways if (found := PATTERNS[way].search(text))), ("", None))
        is_exchange = match is not None and "y" in match.groupdict()
        if match is None or not (how in ("gone", "dropped") or _NOT.isdisjoint(text.lower().split())):
            return None
        kind = "name" if how == "gone" else ""
        old = self._value(start + match.start("x"), PATTERNS["tail"].sub("", match["x"]), kind)
        new = self._value(start + match.start("y"), match["y"], "") if is_exchange else None
        if how == "dropped":
            self._subject = start, text.split(maxsplit=1)[0]
        if how in ("gone", "dropped"):
            source: Phrase | None = self._anaphor(start, NOBODY if how == "gone" else "i")
        else:
            source = self._subject_of(start, text[: match.start()], has_rest=True)
        if source is None or old is None or (is_exchange and new is None):
            return None
        ends = [old] if new is None else [old, new]
        is_inside = how == "gone" and self._tokens.at(old.first - 1) in ("at", "in", "of")
        is_other = any(each.type in ("place", "person") or not each.name[0].isalpha() for each in ends)
        if is_other or is_inside or not (is_exchange or _VALUE.search(old.name)):
            return None
        end = self._begin + start + match.end() if how == "gone" else max(each.end for each in ends)
        is_first = not self._text[:start].strip(" ,").lower().startswith(("in ", "on ", "at ", "for ", "during "))
        tail = self._tail(end, start + len(text))
        # Who quits Vim with `:q` goes on using it.
        is_whole = not match.groupdict().get("what") and tail[:1] != ["with"] and is_lasting(tail)
        doubt = SENSITIVE if self._is_sensitive else "" if is_first and is_whole and self._is_sure else UNSURE
        return Statement(source, old, GONE, self._place(start), self._tokens.count, doubt=doubt, successor=new)

    def _statement(
        self,
        source: Phrase,
        target: Phrase,
        relation: str,
        aspect: str,
        verb: int,
        *,
        is_end: bool,
        flags: Set[str] = _NO_FLAGS,
    ) -> Statement:
        is_change = ("!" in flags or self._is_change) and self._is_sure
        doubt = "" if is_change else BESIDE if "~" in flags else UNMARKED if self._is_sure else UNSURE
        return Statement(
            source,
            target,
            relation,
            self._place(verb),
            self._tokens.count,
            is_event="!" in flags,
            is_end=is_end,
            confidence=0.8,
            new_type="organization" if relation == "WORKS_FOR" else "",
            aspect=aspect,
            doubt=doubt if aspect or is_end else "",
        )

    def _place(self, at: int) -> int:
        """Return the place of the word at a character of the sentence."""
        return min(bisect_left(self._tokens.end, self._begin + at + 1), self._tokens.count - 1)

    def _phrase(self, at: int, said: str) -> Phrase:
        at += len(said) - len(said.lstrip())
        name = said.strip()
        start = self._begin + at
        first = self._place(at)
        for mention in self._line.mentions:
            if mention.start == start and mention.end == start + len(name):
                found = phrase_of(mention)
                return replace(found, confidence=max(found.confidence, _SURE))
        head = name.split()[-1].lower() if name else ""
        kind = kind_of_noun(head)
        if head in KIN:
            kind = "person"
        elif kind in ("person", "organization"):
            kind = "concept"
        return Phrase(first, first + 1, start, start + len(name), name, kind, 0.7)

    def _anaphor(self, at: int, word: str) -> Phrase:
        start = self._begin + at
        first = self._place(at)
        return Phrase(first, first, start, start, word, "", 0.9, None, word)

    def _subject_of(self, at: int, said: str, *, has_rest: bool = False) -> Phrase | None:
        """Return what a clause is about; without a subject of its own, that of the clause before."""
        plain = PATTERNS["subject tail"].sub("", PATTERNS["only"].sub("", said.strip(' "“')))
        if not plain and has_rest and self._subject is not None:
            at, plain = self._subject
        words = plain.lower().split()
        if not 0 < len(words) <= _MAX_WORDS or words[-1] in PREPOSITIONS or words[-1].endswith(("n't", "n’t")):
            return None
        at += max(said.find(plain), 0)
        if has_rest:
            self._subject = (at, plain)
        if words[-1] in ("i", "we"):
            return self._anaphor(at + len(plain) - len(words[-1]), words[-1])
        if plain.lower() in ("everything", "all of it", "it all"):
            return self._anaphor(at, "we")
        is_clear = _is_noun_phrase(PATTERNS["article"].sub("", plain.lower(), count=1)) and not _MARKUP.search(plain)
        if not is_clear or PATTERNS["other"].search(plain) or self._place(at) in self._line.dated:
            return None
        article = PATTERNS["article"].match(plain)
        bare = PATTERNS["new"].sub("", plain[article.end() :] if article else plain)
        if article and words[0] == "my":
            found = self._phrase(at, plain)
            return replace(found, name=f"{self._owner}'s {bare}", end=found.start, confidence=_SURE)
        phrase = self._phrase(at + plain.find(bare), bare)
        is_anything = phrase.mention is None and phrase.name.lower() in VAGUE
        return None if is_anything or (article and words[0] not in ("the", "our")) else phrase

    def _value(self, at: int, said: str, kind: str) -> Phrase | None:
        """Return the words of a value, up to what no longer belongs to it."""
        rest = said.lstrip()
        at += len(said) - len(rest)
        only = re.match(r"(?!A\b(?: now)?$)(?:only |even |at |a new |an |a |the |my |our )+", rest, re.I)
        if only is not None:
            at, rest = at + only.end(), rest[only.end() :]
        named = max((one.end for one in self._line.mentions if one.start == self._begin + at), default=0)
        words: list[str] = []
        end = at
        for word in rest.split(" "):
            bare = word.lower().strip(".,")
            # A value ends before a date, but `Office 2019` is a name.
            is_dated = self._begin + end >= named and self._place(end) in self._line.dated
            is_behind = bare in ("in", "of") if kind == "on" else is_dated
            if len(words) >= _MAX_WORDS or not word or bare in _STOPS or (words and is_behind):
                break
            words.append(word)
            end += len(word) + 1
        name = " ".join(words).rstrip(".,;:!")
        is_grade = name == "A"
        is_small = not is_grade and name.lower() in DETERMINERS | VAGUE | _NOT_A_NOUN
        if is_small or not any(map(str.isalnum, name)) or _MARKUP.search(name) or _NUMBER.fullmatch(name):
            return None
        is_day = PATTERNS["day"].match(name) is not None
        fits = {"on": is_day, "name": not is_day and _VALUE.search(name), "value": _VALUE.search(words[0])}
        return self._phrase(at, name) if fits.get(kind, True) else None


def _fits(row: _Row, subject: Phrase, value: Phrase) -> bool:
    """Return whether what a row says can be said of these: people have a home and no place, nobody uses a place."""
    if "led" in row.flags:
        is_led = subject.mention is not None or kind_of_noun(subject.name.split()[-1]) in ("project", "organization")
        return is_led and subject.type not in ("person", "place")
    if row.aspect == "place":
        is_thing = subject.type != "person" and not subject.anaphor
        return is_thing and value.name[0].isalpha() and value.name.lower() not in _CONDITIONS
    return row.relation != "USES" or value.type not in ("place", "person")


def _is_noun_phrase(words: str) -> bool:
    """Return whether words may be a noun with what belongs to it, and no clause."""
    some = words.split()
    return (
        0 < len(some) <= _MAX_WORDS
        and _NOT_A_NOUN.isdisjoint(some)
        and not any(
            (word in PREPOSITIONS and word not in ("of", "for")) or word in ("is", "are", "was", "not", "and", "that")
            for word in some
        )
    )
