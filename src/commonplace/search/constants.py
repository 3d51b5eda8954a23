"""The constants of ranking, each with where it came from; none is fitted on LoCoMo or Cranfield."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from commonplace.search.candidates import DENSE, LATE, LEXICAL, SPEAKER, TIME

WEIGHTS = {LEXICAL: 0.6, DENSE: 1.0, LATE: 0.85, TIME: 2.0, SPEAKER: 0.5}
"""Weights of the signals in the two-stage method, standardised but for the time's fit, 0–1, and the fitting speaker, 0
or 1, which are plain bonuses.

Those of words and tokens count as far as the words may decide; see `SHARE`."""

SHARE = (0.33, 0.66)
"""How far words and late interaction decide beside meaning, by the best passage's share of the query's words
(`Candidates.words`): not at all up to the first, wholly from the second on.

Where no passage holds much of what is asked in its words, those that do match are chance matches, and standardising
would make as much of them as of real ones. Judged by `scripts/ranking/cross_validate.py`, as are all constants of the
fusion."""

MANY = (1.10, 1.85)
"""The same by the best passage's BM25 divided by ln(1 + passages): the rarity that it holds, of the highest that there
is. A long question is never covered, but two rare words of it are no chance. The larger of both counts."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is known of an embedder's cosines.

    Attributes:
        weight: of the standardised cosine.
        alike: how far words and late interaction decide by the best cosine, as by `SHARE`; None where that is not
            known. Where a question resembles something that is stored, it shares its words; where it does not, it
            may be put in others.
    """

    weight: float = WEIGHTS[DENSE]
    alike: tuple[float, float] | None = None


MEANINGS: Mapping[str, Meaning] = {"minilm": Meaning(1.25, (0.40, 0.70))}
"""Of the embedders for which it was fitted; any other one has the defaults."""

COMPARABLE = frozenset({"minilm", "static"})
"""Embedders whose cosines of unrelated texts have nearly the same mean and deviation: .03–.18 and .09–.11 for questions
and passages of everyday, medquad, cosqa-dev, longmemeval-dev. Those of another one are standardised by themselves."""

TIME_LOG_ODDS = 1.0
"""What a memory that is of the asked time gains in log-odds of relevance; a round guess."""

FADING = 16.0
"""In late interaction a token with p others before it in its passage counts (1 + p / 16)^−½ of what the first one does.

What a passage is about stands at its beginning: a title, a heading, the name of a function, the first sentence. Chosen
by `scripts/ranking/cross_validate.py`: from 4 to 16 all do about equally well, and the largest of them loses least on
passages that were turned, whose beginnings say nothing."""

NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the mean value of those one step and two steps away: half at each step."""

ANSWER_SHARE = 0.25
"""What a turn receives besides of the value of the turn before it, where that asks something: an answer seldom repeats
what it was asked."""

SHORT_TURN = 60
"""A turn of so many tokens receives all of that, a longer one the less, the longer it is."""

FLOOR = 0.3
"""Where the caller names no least score: what lies below it is held back, a probability of 0.01. Of the questions that
something answers one in a hundred gets nothing for it, and one in two hundred loses what would be among five hits."""


def meaning_of(embedder: str) -> Meaning:
    """Return what is known of an embedder of that name."""
    return MEANINGS.get(embedder, Meaning())
