"""The English words of date expressions, and the word reader of the parser.

Only a few hundred words are kept at a time, so a long text costs no memory.
"""

from __future__ import annotations

from typing import NamedTuple

from commonplace.lazy_regex import lazy_pattern

MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
PLAIN_MONTHS = frozenset({"january", "february", "july", "september", "october", "november", "december"})
"""Month names with no other meaning, such as a person or a verb."""
VERB_MONTHS = frozenset({"may", "march", "mar", "jun", "dec", "sep", "oct", "apr", "jan", "feb", "jul", "aug", "nov"})
"""Names that are other words in lower case, or too short to be reliable."""

WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {name: number for number, name in enumerate(WEEKDAY_NAMES)}
WEEKDAY_SHORT = {name[:3]: number for name, number in WEEKDAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3}
NOT_BEFORE_WEEKDAY = frozenset("black ash good maundy shrove holy casual fat cyber easter bloody super palm".split())

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season, in the northern hemisphere."""

_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {name: number for number, name in enumerate(f"{_ONES} eighteen nineteen".split(), 1)}
NUMBERS |= {name: 10 * number for number, name in enumerate(_TENS.split(), 2)}
ORDINALS = {name: number for number, name in enumerate("first second third fourth fifth".split(), 1)}
VAGUE = {"few": (2, 5), "several": (3, 7)}
"""Smallest and greatest number that each vague word can mean."""

UNITS = {name: (name, 1) for name in "second minute hour day week month quarter year".split()}
UNITS |= {"min": ("minute", 1), "hr": ("hour", 1), "yr": ("year", 1), "fortnight": ("week", 2), "decade": ("year", 10)}
UNITS |= {f"{name}s": value for name, value in UNITS.items()}
CALENDAR_UNITS = ("week", "month", "quarter", "year")
"""Units that can follow `last`, `this`, `next` and `the end of the`."""

DAYPARTS = frozenset({"morning", "afternoon", "evening", "night"})

EDGES = {"beginning": 0, "start": 0, "middle": 1, "end": 2, "early": 0, "mid": 1, "late": 2}
"""The third of a period that each word means; the first four are followed by `of`."""
EDGE_NOUNS = frozenset({"beginning", "start", "middle", "end"})

ALL = frozenset({"month", "year", "season", "day"})
PREPOSITIONS = {
    **dict.fromkeys("during throughout".split(), ALL),
    **dict.fromkeys("on at of for around about".split(), frozenset({"day"})),
    "in": frozenset({"month", "year", "season"}),
    "by": frozenset({"year", "day"}),
    "from": frozenset({"year", "day", "season"}),
    "over": frozenset({"day", "season"}),
    "within": frozenset[str](),
    "circa": frozenset({"year"}),
}
"""The kinds of doubtful dates that each preposition confirms: `in May` is a date, `at May` is not."""
BOUNDS = {
    "since": "since", "before": "before", "after": "after", "until": "until", "till": "until",
    "up to": "until", "up until": "until", "up till": "until", "prior to": "before", "ever since": "since",
    "starting": "since", "beginning": "since",
}  # fmt: skip
EVERY = frozenset({"every", "each", "any", "per", "alternate"})
THROUGH = frozenset({"to", "until", "till", "through", "thru", "-"})

COUNTED = frozenset("people ms kb mb gb px rpm hz km m kg usd percent x times".split())
NOT_COUNTED = frozenset("was is has does this its his us as vs s always perhaps towards".split())
MEASURES = frozenset("%°*+=×$€£")
LOOSE_FOLLOWERS = frozenset(
    ". , ? ! ; ) we i you they he she the and with when about at for on in from by but was did because our my".split()
) | {""}
"""Words that can follow a month written `may` or `march`, but not a verb."""
PAST_PARTICIPLES = frozenset(
    "time times once twice done built run runs ran took takes made written finish finishes complete completes "
    "read learn learned sold grew doubled".split()
)
"""Words that make a following `in two weeks` a duration, as do all words in -ed."""

HOLIDAYS = frozenset("christmas xmas boxing year halloween valentine thanksgiving easter friday".split())
TELLING = frozenset(
    {*MONTHS, *WEEKDAYS, *WEEKDAY_SHORT, *SEASONS, *UNITS, *HOLIDAYS, *DAYPARTS}
    | {"yesterday", "today", "tonight", "tomorrow", "weekend"}
)
"""Every date without four digits has one of these, or a quarter."""

DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
BACK = frozenset({"last", "past", "previous"})
AHEAD = frozenset({"next", "coming", "upcoming"})
DEICTICS = BACK | AHEAD | {"this", "current"}
NAMES = (
    frozenset({"christmas", "xmas", "boxing", "new", "halloween", "valentine", "thanksgiving", "easter", "good"})
    | {"q1", "q2", "q3", "q4"}
    | MONTHS.keys() | WEEKDAYS.keys() | WEEKDAY_SHORT.keys() | SEASONS.keys()
)  # fmt: skip
"""First words of a date by calendar name, besides digits."""
STARTS = (
    frozenset({"the", "a", "an", "as", "couple", "half", "between", "up", "prior", "ever", "weekend"})
    | {"very"}
    | NAMES | EVERY | DEICTICS | DAYS.keys() | NUMBERS.keys() | ORDINALS.keys() | VAGUE.keys() | UNITS.keys()
    | EDGES.keys() | PREPOSITIONS.keys() | BOUNDS.keys()
)  # fmt: skip
"""First words of a date expression, besides digits; other words are skipped."""


TOKEN = lazy_pattern(r"\w+|[^\w\s]")
GAP = 3
"""Maximum white-space characters inside an expression; more, or an empty line, is a break."""
BEHIND, BATCH = 8, 256
GLUE = frozenset("_/.-@#$\\")
"""Marks that make the word directly after them part of something longer."""
LIKE = str.maketrans("’‘–—−", "''---")


class Word(NamedTuple):
    """A word, a number or one punctuation mark.

    Attributes:
        lower: in lower case, with plain apostrophes and dashes; "" at the ends of the text and at breaks.
        glued: whether it directly follows the previous word.
    """

    text: str
    lower: str
    start: int
    end: int
    glued: bool

    @property
    def is_number(self) -> bool:
        """Whether it is one to four plain digits; longer ones are never part of a date."""
        return len(self.text) <= 4 and self.text.isascii() and self.text.isdigit()

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper()


BREAK = Word("", "", -1, -1, False)


class Words:
    """The words of a text by their number; `BREAK` before the first and after the last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._matches = TOKEN.finditer(text)
        self._kept: list[Word] = []
        self._base = 0
        self._read = 0

    def __getitem__(self, index: int) -> Word:
        place = index - self._base
        if place < 0:
            return BREAK
        while place >= len(self._kept):
            match = next(self._matches, None)
            if match is None:
                return BREAK
            start, end = match.span()
            gap = start - self._read
            if gap > GAP or (gap > 1 and self.text.count("\n", self._read, start) > 1):
                self._kept.append(BREAK)
            text = match.group()
            self._kept.append(Word(text, text.lower().translate(LIKE), start, end, gap == 0 and start > 0))
            self._read = end
        return self._kept[place]

    def has(self, index: int) -> bool:
        """Return whether the text has a word or break of this number."""
        return self[index] is not BREAK or index - self._base < len(self._kept)

    def skip(self, index: int, *lower: str) -> int:
        """Return the number of the next word if this one is any of `lower`, else its own number."""
        return index + 1 if self[index].lower in lower else index

    def after(self, offset: int, index: int) -> int:
        """Return the number of the first word, or break, from `index` on that is not before a place in the text."""
        while self[index] is not BREAK and self[index].start < offset:
            index += 1
        return index

    def is_in_name(self, index: int) -> bool:
        """Return whether a word is part of an identifier, or is called or assigned: `date.today()`, `today = 1`."""
        word, behind = self[index], self[index + 1]
        if (word.glued and self[index - 1].lower in GLUE) or behind.lower == "=":
            return True
        return behind.glued and (behind.lower in "(_@/\\" or (behind.lower == "." and self[index + 2].glued))

    def forget(self, index: int) -> None:
        """Drop words too far before a word to affect it."""
        spare = index - self._base - BEHIND
        if spare >= BATCH:
            del self._kept[:spare]
            self._base += spare
