"""Extract attributes with one value at a time from everyday sentences: editor, day, dose, lead.

The table is in attributes.txt. A newer value ends an older one if the sentence speaks of a change; a statement that
must not be decided by rule carries a doubt, and a person is asked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final, NamedTuple

from commonplace.dataclasses import replace
from commonplace.dates.vocabulary import THROUGH
from commonplace.extract import words as lists
from commonplace.extract.entities import THE_USER
from commonplace.extract.modality import doubtful_places, is_hedged, is_lasting, report_end
from commonplace.extract.model import BESIDE, SENSITIVE, UNMARKED, UNSURE
from commonplace.extract.names import Phrase, kind_of_noun
from commonplace.extract.phrases import Line
from commonplace.extract.relations import SINCE, Statement
from commonplace.extract.words import PATTERNS, WORDS
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import sections

_NOT: Final = lists.NEGATIONS | lists.NO_FACTS
_SCOPES: Final = ("in ", "on ", "at ", "for ", "during ")
"""Beginnings of sentences about a part: `in staging, we left Netlify`."""
_LABEL: Final = lazy_pattern(r"[ \t>*-]*(?![Cc]orrection:)[^\W\d_][\w .'’()-]{0,40}?[ \t]*:[ \t]+")
_NUMBER: Final = lazy_pattern(r"[+(\d][\d ()/.-]{4,}")
"""Numbers of telephones, accounts or cards, which are no values; they stay in the memory alone."""
_MARKUP: Final = lazy_pattern(r"[*\"“”|<>#_]")
_VALUE: Final = lazy_pattern(r"^[`$€£]|\d|[^\W\d_a-zß-öø-ÿ]")
_OWNED: Final = lazy_pattern(r"(?:(?P<by>[Mm]y)|(?P<who>[A-Z][\w-]*(?: [A-Z][\w-]*)?)['’]s?) +(?P<what>.+)")
_OWN: Final = lazy_pattern(r"(?:(?:i(?: have|'ve)?|have|got) )?(?:(?:a|my) )?", re.IGNORECASE)
"""Text that may precede `new job at` and `first day at` if they are about the speaker."""
_MANY: Final = (lists.KIN - lists.ONE_OF_A_KIND) | lists.MANY
"""Nouns of which a person has several."""
_IN_CLAUSES: Final = lists.NOT_A_NOUN.union(lists.PREPOSITIONS - {"of", "for"}, "is are was not and that".split())
_MAX_SENTENCE: Final = 300
_MAX_WORDS: Final = 5
_SURE: Final = 0.7
"""Minimum confidence in the type of a name that is a value."""


class _Row(NamedTuple):
    relation: str
    aspect: str
    flags: frozenset[str]
    pattern: re.Pattern[str]


def _rows() -> Iterator[_Row]:
    lines = sections(Path(__file__).with_name("attributes.txt"))
    for head, line in ((head, line) for head, below in lines.items() for line in below):
        relation, _, aspect = head.partition(" ")
        marks, _, way = line.strip().partition("  ")
        pattern = lazy_pattern(rf"(?:^|(?<=\s)|(?=['’]))(?:{way.strip()})(?= |$)", re.IGNORECASE)
        yield _Row(relation, aspect, frozenset([*marks.split()[0], *marks.split()[1:]]), pattern)


_ROWS: Final = tuple(_rows())


GONE: Final = "GONE"
"""Relation of statements about what is no longer used, owned or done."""
NOBODY: Final = "nobody"
"""Placeholder for an unnamed user of what is gone."""


class Attributes:
    """Reads one sentence, clause by clause; `is_spoken`: it begins with a speaker's label, `Mira: I moved to Oslo`."""

    def __init__(self, line: Line, speaker: str, *, is_spoken: bool) -> None:
        self._line = line
        self._owner = speaker or THE_USER
        self._tokens = tokens = line.tokens
        self._begin = tokens.start[0]
        self._is_sure = True
        while (label := _LABEL.match(tokens.text, self._begin, tokens.end[-1])) is not None:
            self._is_sure = self._is_sure and (is_spoken or PATTERNS["lead"].match(label[0]) is not None)
            self._begin, is_spoken = label.end(), False
        opener = PATTERNS["correction"].match(tokens.text, self._begin, tokens.end[-1])
        self._begin = self._begin if opener is None else opener.end()
        self._is_corrected = opener is not None
        self._text = tokens.text[self._begin : tokens.end[-1]].replace("’", "'").rstrip(" .!\n")
        self._rather = PATTERNS["rather"].search(self._text)
        if self._rather is not None:  # `not Dana but Raj` is read like `Raj`, at the same offsets
            first, last = self._rather.span()
            verb = " " * (self._rather.start("verb") - first) + (self._rather["verb"] or "")
            self._text = f"{self._text[:first]}{verb:<{last - first}}{self._text[last:]}"
        self._text = PATTERNS["passive"].sub(lambda match: " " * len(match[0]), self._text)
        is_open = PATTERNS["open"].search(self._text) is not None or is_hedged(self._text)
        self._is_sure = self._is_sure and not is_open
        self._is_change = False
        self._subject: tuple[int, str] | None = None
        self._thing: tuple[int, str] | None = None

    def statements(self) -> Iterator[Statement]:
        if not 3 < len(self._text) <= _MAX_SENTENCE or "\n\n" in self._text:
            return
        doubtful = doubtful_places(self._tokens)
        for begin, start, clause in self._clauses():
            change, said = PATTERNS["change"], self._text[begin : start + len(clause)]
            self._is_change = self._is_corrected or bool(change.search(said) or change.match(clause))
            index, last = self._place(start), self._place(start + len(clause))
            begins = [begin - self._begin for begin in self._tokens.start[index : last + 1]]
            words = [self._tokens.lower[index + n] for n, at in enumerate(begins) if self._text[at : at + 1] != " "]
            is_end = PATTERNS["end"].search(clause) is not None and lists.NOT_AN_END.isdisjoint(words)
            if (doubtful[index : last + 1] and doubtful[min(last, self._tokens.count) - 1]) or "?" in clause:
                continue
            yield from self._gone(start, clause)
            if not is_end and not _NOT.isdisjoint(words):
                continue
            text = PATTERNS["end"].sub(lambda match: " " * len(match[0]), clause) if is_end else clause
            bought = PATTERNS["bought"].search(text)
            if bought is not None:
                self._thing = start + bought.start(1), bought[1]
            if (statement := self._of_clause(start, text, is_end=is_end)) is not None:
                yield statement

    def excluded(self, statement: Statement) -> Phrase | None:
        """Return what a sentence says that the value of a statement is not: `Raj, not Dana`, `not Dana but Raj`."""
        rather = self._rather
        if rather is not None and rather.start("y") == statement.target.start - self._begin:
            lasts = rather["verb"] is None or self._is_lasting(statement.target, len(self._text))
            return self._value(rather.start("x"), rather["x"], "value") if lasts else None
        behind = max(statement.source.end, statement.target.end) - self._begin
        value = self._denied(self._begin + max(behind, 0))
        # `For recipes, Vim, not Emacs` and `Vim, not Emacs, for recipes` leave Emacs for other things.
        if self._text.lower().startswith(_SCOPES) and self._place(0) not in self._line.dated:
            return None
        return value if value is not None and self._is_lasting(value, len(self._text)) else None

    def _denied(self, end: int) -> Phrase | None:
        """Return what is named after `, not` or `instead of` at character `end` of the text, None without that."""
        match = PATTERNS["and not"].match(self._text, end - self._begin)
        return None if match is None else self._value(match.start("x"), match["x"], "value")

    def _clauses(self) -> Iterator[tuple[int, int, str]]:
        """Yield the start of each clause, its start after `from now on`, `Tom says that` and the like, and its text."""
        first = begin = 0
        for match in [*PATTERNS["clause"].finditer(self._text), None]:
            end = len(self._text) if match is None else match.start()
            while (behind := self._lead_end(begin, end)) > begin:
                begin = behind
            is_clause = end - begin > 3
            if is_clause:
                yield first, begin, self._text[begin:end]
            begin = end if match is None else match.end()
            first = begin if is_clause else first

    def _lead_end(self, begin: int, end: int) -> int:
        """Return the offset after a leading `from now on`, `since May` or `Tom says that`, `begin` if there is none."""
        if begin >= end:
            return begin
        tokens, first, last = self._tokens, self._place(begin), self._place(end - 1) + 1
        behind = first
        while tokens.lower[first] in SINCE and behind in self._line.dated:
            behind += 1
        if behind == first or not THROUGH.isdisjoint(tokens.lower[first:behind]):
            if (lead := PATTERNS["lead"].match(self._text, begin, end)) is not None:
                return lead.end()
            behind = report_end(tokens, first, last)
        return begin if behind == first else end if behind >= last else tokens.start[behind] - self._begin

    def _of_clause(self, start: int, text: str, *, is_end: bool) -> Statement | None:
        role = PATTERNS["role"].search(text)
        if role is not None and (by_role := self._held(start, text, role, is_end=is_end)) is not None:
            return by_role
        for row in _ROWS:
            match = row.pattern.search(text)
            if match is None or (row.aspect == "place" and PATTERNS["for a while"].search(text)):
                continue
            if "!" in row.flags and PATTERNS["undone"].search(self._text):
                return None
            if (by_row := self._by_row(row, start, text, match, is_end=is_end)) is not None:
                return by_row
        match = PATTERNS["is"].search(text)
        return None if match is None else self._is(start, text, match, is_end=is_end)

    def _held(self, start: int, text: str, role: re.Match[str], *, is_end: bool) -> Statement | None:
        """Read `Ines is the product owner`, and `Zed is my editor now`, which must speak of a change."""
        post, is_mine = role["role"], role["whose"] == "my"
        holder = self._value(start, text[: role.start()], "name")
        is_said = self._is_change or self._rather is not None
        if holder is None or not (is_said if is_mine else post.rsplit(" ", 1)[-1] in lists.ROLES | lists.MORE_ROLES):
            return None
        subject = role["of"] or ""
        pronoun = "i" if is_mine else "we"
        source = self._subject_of(start + role.start("of"), subject) if subject else self._anaphor(start, pronoun)
        if source is None:
            return None
        fact = self._statement(source, holder, "RELATED_TO", post, start, is_end=is_end)
        return fact if is_end or not is_mine or _MANY.isdisjoint(post.split()[-1:]) else replace(fact, doubt=BESIDE)

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
            # `We` and a `New job` are about the speaker.
            if match[0].lower().startswith(("new ", "first ")):
                subject = self._anaphor(start, "i") if _OWN.fullmatch(before[1]) and self._is_sure else None
            elif subject is not None and subject.anaphor in ("we", "i"):
                subject = self._anaphor(subject.start - self._begin, "i")
            elif subject is not None and subject.type != "person":
                subject = subject if subject.is_name and subject.type == "concept" else None
        if subject is None or value is None or not _fits(row, subject, value, groups.get("of", "")):
            return None
        aspect = "" if "+" in flags else aspect
        fact = self._statement(subject, value, row.relation, aspect, start + match.start(), is_end=is_end, flags=flags)
        is_before = "<" in flags
        is_brief = is_before and PATTERNS["for a while"].search(text)
        if fact.doubt or (not is_brief if is_before else self._is_lasting(value, start + len(text))):
            return fact
        return replace(fact, doubt=BESIDE if "~" in flags else UNSURE)

    def _is_lasting(self, value: Phrase, stop: int) -> bool:
        """Return whether a value is meant to last: `is at 10:15 now`, not `for a week`, `today`, `in one case`."""
        text = self._tokens.text[value.end : self._begin + stop]
        is_brief = PATTERNS["for a while"].search(text) or PATTERNS["today"].search(text)
        return not is_brief and is_lasting(self._tail(value.end, stop))

    def _tail(self, end: int, stop: int) -> list[str]:
        """Return the words from character `end` of the text to offset `stop`, without dates and `instead of Dana`."""
        tokens = self._tokens
        if (value := self._denied(end)) is not None:
            end = value.end
        places = range(bisect_left(tokens.start, end), bisect_left(tokens.start, self._begin + stop))
        return [tokens.lower[index] for index in places if index not in self._line.dated]

    def _is(self, start: int, text: str, match: re.Match[str], *, is_end: bool) -> Statement | None:
        """Read `my landlord is Mr. Weber`, `Rent is 900 euros`, `it's an iPhone now`, `the standup is at 9:30`."""
        verb = self._place(start + match.start())
        while verb - 1 in self._line.dated:  # `my manager from next week is …`
            verb -= 1
        noun = text[: max(0, self._tokens.start[verb] - self._begin - start)].strip()
        rest, offset = text[match.end() :], start
        if noun.lower() == "it" and self._thing is not None:
            offset, noun = self._thing[0], self._thing[1].strip()
        is_favourite = "favourite" in noun or "favorite" in noun  # a favourite may be any word
        kind = "on" if match[0].endswith(" at") else "" if is_favourite else "value"
        value = self._value(start + match.end(), rest, kind)
        if value is None or not noun or value.name.lower() in lists.DEMONYMS or PATTERNS["other"].search(noun):
            return None
        owned, is_soft = _OWNED.fullmatch(PATTERNS["new"].sub("", noun)), False
        if owned is not None:
            aspect = owned["what"].lower()
            if not _is_noun_phrase(aspect):
                return None
            source = self._anaphor(offset, "i") if owned["by"] else self._subject_of(offset, owned["who"])
            is_soft = not _MANY.isdisjoint(aspect.split()[-1:])
        else:
            is_defined = re.match(r" an? ", rest) is not None
            if is_defined or (noun.split()[0].lower() not in ("the", "our") and not (noun[0].isupper() and start == 0)):
                return None
            bare = PATTERNS["article"].sub("", PATTERNS["new"].sub("", noun), count=1)
            if not _is_noun_phrase(bare.lower()) or _VALUE.search(bare[1:]):
                return None
            source = self._subject_of(offset, noun)
            # A value says when a thing is, how much of which unit, or what it is.
            unit = value.name.split()[1:] if value.name[0].isdigit() else []
            aspect = "when" if PATTERNS["day"].match(value.name) else " ".join(("is", *unit))
        is_condition = value.name.lower() in lists.CONDITIONS and PATTERNS["named"].search(aspect) is None
        if is_condition or source is None or source.anaphor not in ("", "i", "we"):
            return None
        relation = "PREFERS" if is_favourite else "RELATED_TO"
        verb_offset = self._tokens.start[verb] - self._begin  # a date before the verb belongs to it
        fact = self._statement(source, value, relation, aspect, verb_offset, is_end=is_end)
        holds = fact.doubt or self._is_lasting(value, start + len(text))
        return replace(fact, doubt=BESIDE if is_soft and not is_end else fact.doubt if holds else UNSURE)

    def _gone(self, start: int, text: str) -> Iterator[Statement]:
        """Read `AWS is shut down`, `we left Netlify`, and replacements."""
        if PATTERNS["for a while"].search(self._text) or PATTERNS["passing"].search(self._text):
            return
        forms = ("gone", "dropped", "switched", "replaced", "instead")
        form, match = next(((name, hit) for name in forms if (hit := PATTERNS[name].search(text))), ("", None))
        is_exchange = match is not None and "y" in match.groupdict()
        if match is None or not (form in ("gone", "dropped") or _NOT.isdisjoint(text.lower().split())):
            return
        kind = "name" if form == "gone" else ""
        old = self._value(start + match.start("x"), PATTERNS["tail"].sub("", match["x"]), kind)
        new = self._value(start + match.start("y"), match["y"], "") if is_exchange else None
        if form == "dropped":
            self._subject = start, text.split(maxsplit=1)[0]
        if form in ("gone", "dropped"):
            source: Phrase | None = self._anaphor(start, NOBODY if form == "gone" else "i")
        else:
            source = self._subject_of(start, text[: match.start()], has_rest=True)
        if source is None or old is None or (is_exchange and new is None):
            return
        ends = [old] if new is None else [old, new]
        is_inside = form == "gone" and self._tokens.at(old.first - 1) in ("at", "in", "of")
        is_other = any(phrase.type in ("place", "person") or not phrase.name[0].isalpha() for phrase in ends)
        if is_other or is_inside or not (is_exchange or _VALUE.search(old.name)):
            return
        end = self._begin + start + match.end() if form == "gone" else max(phrase.end for phrase in ends)
        is_first = not self._text[:start].strip(" ,").lower().startswith(_SCOPES)
        tail = self._tail(end, start + len(text))
        # `I quit Vim with :q` does not end its use.
        what = match.groupdict().get("what") or ""
        own = _OWNED.fullmatch(what)  # `switched my editor from Vim to Emacs`
        is_whole = tail[:1] != ["with"] and is_lasting(tail)
        doubt = "" if is_first and is_whole and self._is_sure else UNSURE
        doubt = SENSITIVE if PATTERNS["sensitive"].search(self._text) else doubt
        gone = Statement(source, old, GONE, self._place(start), self._tokens.count, doubt=doubt, successor=new)
        if own is None and what:  # `switched billing from MySQL to Postgres` is about billing, and perhaps about us
            if (thing := self._subject_of(start + match.start("what"), what)) is not None:
                yield replace(gone, source=thing)
            gone = replace(gone, doubt=doubt or UNSURE)
        yield gone if own is None else replace(gone, aspect=own["what"].lower())

    def _statement(
        self,
        source: Phrase,
        target: Phrase,
        relation: str,
        aspect: str,
        verb: int,
        *,
        is_end: bool,
        flags: Set[str] = frozenset(),
    ) -> Statement:
        is_change = ("!" in flags or self._is_change) and self._is_sure
        if aspect == "when" and PATTERNS["hour"].match(target.name):
            aspect = "hour"  # `at 10:00` does not contradict `on Monday`
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

    def _place(self, offset: int) -> int:
        return min(bisect_left(self._tokens.end, self._begin + offset + 1), self._tokens.count - 1)

    def _phrase(self, offset: int, text: str) -> Phrase:
        offset += len(text) - len(text.lstrip())
        name = text.strip()
        start = self._begin + offset
        first = self._place(offset)
        for mention in self._line.mentions:
            if mention.start == start and mention.end == start + len(name):
                return replace(mention, confidence=max(mention.confidence, _SURE))
        head = name.split()[-1].lower() if name else ""
        kind = kind_of_noun(head)
        if head in lists.KIN:
            kind = "person"
        elif kind in ("person", "organization"):
            kind = "concept"
        return Phrase(first, first + 1, start, start + len(name), name, kind, 0.7)

    def _anaphor(self, offset: int, word: str) -> Phrase:
        start = self._begin + offset
        first = self._place(offset)
        return Phrase(first, first, start, start, word, "", 0.9, anaphor=word)

    def _subject_of(self, offset: int, text: str, *, has_rest: bool = False) -> Phrase | None:
        """Return the subject of a clause; without one of its own, that of the clause before."""
        plain = PATTERNS["subject tail"].sub("", PATTERNS["only"].sub("", text.strip(' "“')))
        if not plain and has_rest and self._subject is not None:
            offset, plain = self._subject
        words = plain.lower().split()
        if not 0 < len(words) <= _MAX_WORDS or words[-1] in lists.PREPOSITIONS or words[-1].endswith(("n't", "n’t")):
            return None
        offset += max(text.find(plain), 0)
        if has_rest:
            self._subject = (offset, plain)
        if words[-1] in ("i", "we"):
            return self._anaphor(offset + len(plain) - len(words[-1]), words[-1])
        if plain.lower() in ("everything", "all of it", "it all"):
            return self._anaphor(offset, "we")
        is_clear = _is_noun_phrase(PATTERNS["article"].sub("", plain.lower(), count=1)) and not _MARKUP.search(plain)
        if not is_clear or PATTERNS["other"].search(plain) or self._place(offset) in self._line.dated:
            return None
        article = PATTERNS["article"].match(plain)
        bare = PATTERNS["new"].sub("", plain[article.end() :] if article else plain)
        if article and words[0] == "my":
            owned = self._phrase(offset, plain)
            return replace(owned, name=f"{self._owner}'s {bare}", end=owned.start, confidence=_SURE)
        phrase = replace(self._phrase(offset + plain.find(bare), bare), is_definite=article is not None)
        is_anything = not phrase.is_name and phrase.name.lower() in lists.VAGUE
        return None if is_anything or (article and words[0] not in ("the", "our")) else phrase

    def _value(self, offset: int, text: str, kind: str) -> Phrase | None:
        """Return the phrase of a value: its leading words, up to a date or a word that cannot belong to it."""
        rest = text.lstrip()
        offset += len(text) - len(rest)
        lead = re.match(r"(?!A\b(?: now)?$)(?:only |even |at |a new |an |a |the |my |our )+", rest, re.I)
        if lead is not None:
            offset, rest = offset + lead.end(), rest[lead.end() :]
        name_end = max((item.end for item in self._line.mentions if item.start == self._begin + offset), default=0)
        words: list[str] = []
        end = offset
        parts = rest.split(" ")
        lengths = range(min(_MAX_WORDS, len(parts)), 0, -1)
        day = next((n for n in lengths if PATTERNS["day"].match(" ".join(parts[:n]).rstrip(".,;:!"))), 0)
        for number, word in enumerate(parts):
            bare = word.lower().strip(".,")
            # A value ends before a date, but `Office 2019` is a name.
            is_dated = self._begin + end >= name_end and self._place(end) in self._line.dated
            is_behind = bare in ("in", "of") if kind == "on" else is_dated
            is_stop = len(words) >= _MAX_WORDS or not word or bare in WORDS["STOPS"] or (words and is_behind)
            if number >= day and is_stop:
                break
            words.append(word)
            end += len(word) + 1
        name = " ".join(words).rstrip(".,;:!")
        is_grade = name == "A"
        is_small = not is_grade and name.lower() in lists.DETERMINERS | lists.VAGUE | lists.NOT_A_NOUN
        is_day = PATTERNS["day"].match(name) is not None
        is_number = not is_day and _NUMBER.fullmatch(name)
        if is_small or not any(map(str.isalnum, name)) or _MARKUP.search(name) or is_number:
            return None
        fits = {"on": is_day, "name": not is_day and _VALUE.search(name), "value": _VALUE.search(words[0])}
        return self._phrase(offset, name) if fits.get(kind, True) else None


def _fits(row: _Row, subject: Phrase, value: Phrase, said: str) -> bool:
    """Return whether a row fits subject and value: people have a home, not a place, and nobody uses a place."""
    if "led" in row.flags:
        words = subject.name.lower().split()
        is_led = any(kind_of_noun(word) in ("project", "organization") for word in (words[0], words[-1]))
        is_area = said == subject.name and said.endswith("ing")  # `billing`, not `the building`
        return (is_led or is_area or subject.is_name) and subject.type not in ("person", "place")
    if row.aspect == "place":
        is_thing = subject.type != "person" and not subject.anaphor
        return is_thing and value.name[0].isalpha() and value.name.lower() not in lists.CONDITIONS
    return row.relation != "USES" or value.type not in ("place", "person")


def _is_noun_phrase(words: str) -> bool:
    """Return whether words may be a noun phrase, and not a clause."""
    parts = words.split()
    return 0 < len(parts) <= _MAX_WORDS and _IN_CLAUSES.isdisjoint(parts)
