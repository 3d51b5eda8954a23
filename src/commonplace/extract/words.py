"""Word lists of the extractor, read from words.txt."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from commonplace.text.words import word_lists

WORDS: Final = word_lists(Path(__file__).with_name("words.txt"))

# People.
FIRST_NAMES: Final = WORDS["FIRST_NAMES"]
AMBIGUOUS_FIRST_NAMES: Final = WORDS["AMBIGUOUS_FIRST_NAMES"]
"""First names that are also plain words or places: alone at the beginning of a sentence they tell nothing."""
SURNAMES: Final = WORDS["SURNAMES"]
"""Last names that are hardly anything else."""
TITLES: Final = WORDS["TITLES"]
"""What may stand before a name, capitalised, without being a part of it."""
ROLES: Final = WORDS["ROLES"]
"""What somebody is for an organisation: `the head of`, `GE spokesman`."""
PUBLIC_ROLES: Final = frozenset("president governor gov senator mayor premier chancellor king queen".split())
"""Who holds one of these for a place lives there."""
KIN: Final = WORDS["KIN"]
"""Who somebody is, before the name: `my sister Mira`."""
SUFFIXES: Final = frozenset("jr sr ii iii iv phd md esq".split())
PARTICLES: Final = frozenset("de del della der den di da dos du van von bin ibn al el la le ben ter zu y".split())
DEMONYMS: Final = WORDS["DEMONYMS"]
# Places.
COUNTRIES: Final = WORDS["COUNTRIES"]
STATES: Final = WORDS["STATES"]
"""States and provinces, with the abbreviations that newspapers use (without their last full stop)."""
POSTAL: Final = WORDS["POSTAL"]
"""Count only behind a place and a comma."""
CITIES: Final = WORDS["CITIES"]
REGIONS: Final = WORDS["REGIONS"]
PLACE_HEADS: Final = WORDS["PLACE_HEADS"]
"""Last words of a place's name."""
PLACE_FRONTS: Final = WORDS["PLACE_FRONTS"]
INTO_PLACE: Final = WORDS["INTO_PLACE"]
# The plain words of English that the grammar knows by their job: what ends a name, what ends a phrase.
DETERMINERS: Final = WORDS["DETERMINERS"]
PREPOSITIONS: Final = WORDS["PREPOSITIONS"]
CONJUNCTIONS: Final = WORDS["CONJUNCTIONS"]
PRONOUNS: Final = WORDS["PRONOUNS"]
BE: Final = frozenset("be am is are was were been being 's 're 'm".split())
HAVE: Final = frozenset("have has had having 've".split())
DO: Final = frozenset("do does did".split())
MODALS: Final = frozenset("would could might may should can shall must ought 'd ca cannot".split())
FUTURE: Final = frozenset("will 'll wo".split())
AUXILIARIES: Final = BE | HAVE | DO | MODALS | FUTURE
NEGATIONS: Final = WORDS["NEGATIONS"]
ADVERBS: Final = WORDS["ADVERBS"]
VERBS: Final = WORDS["VERBS"]
SAYING: Final = WORDS["SAYING"]
"""Verbs behind which a new clause may begin without `that`."""
STOPS: Final = (
    PREPOSITIONS
    | CONJUNCTIONS
    | PRONOUNS
    | AUXILIARIES
    | ADVERBS
    | VERBS
    | DETERMINERS
    | frozenset("to no any each every another least most more less longer 's ' please yes ok okay".split())
)
"""No noun phrase has one of these inside."""
BREAKERS: Final = (
    (PREPOSITIONS | CONJUNCTIONS | PRONOUNS | AUXILIARIES | DETERMINERS | ADVERBS | VERBS)
    - frozenset("may will us past down like let down said kept back".split())
) | WORDS["BREAKERS"]
"""No name has one of these inside, however it is written."""
CALENDAR: Final = WORDS["CALENDAR"]
NOUNS_IN_LY: Final = WORDS["NOUNS_IN_LY"]
"""Words in -ly that are no adverbs in a name: `the nightly job`."""
NOUNS_IN_ING: Final = WORDS["NOUNS_IN_ING"]
"""Words in -ing that name a thing, or tell which one."""
VAGUE: Final = WORDS["VAGUE"]
"""Nouns that name nothing by themselves."""
# Organisations, tools, and what kind of thing a common noun is.
ORGANIZATION_HEADS: Final = WORDS["ORGANIZATION_HEADS"]
TITLED_NOUNS: Final = WORDS["TITLED_NOUNS"]
"""Common nouns and adjectives that titles and headings capitalise; a name with one of them is hardly a person's."""
ORGANIZATION_OF: Final = WORDS["ORGANIZATION_OF"]
"""May be followed by `of` or `for` and more of the name: `University of Texas`, `Centers for Disease Control`."""
ORGANIZATION_FOR: Final = WORDS["ORGANIZATION_FOR"]
ORGANIZATIONS: Final = WORDS["ORGANIZATIONS"]
TOOLS: Final = WORDS["TOOLS"]
PLAIN_TOOLS: Final = WORDS["PLAIN_TOOLS"]
"""Tools that are also plain words: small letters alone do not tell them."""
TOOL_NAMES: Final = WORDS["TOOL_NAMES"]
CONCEPT_ACRONYMS: Final = WORDS["CONCEPT_ACRONYMS"]
KINDS: Final = {
    word: kind for kind in "file project tool organization place event person".split() for word in WORDS[f"KIND {kind}"]
}
"""The type of a thing by the last word of what it is called."""
CLASS_NOUNS: Final = WORDS["CLASS_NOUNS"]
"""Behind or before a name these only say what it is: `the auth.ts file`."""
FILE_ENDINGS: Final = WORDS["FILE_ENDINGS"]
