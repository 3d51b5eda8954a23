"""The constants of ranking, each with where it came from; none is fitted on LoCoMo or Cranfield."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.search.candidates import DENSE, LATE, LEXICAL, SPEAKER, TIME

WEIGHTS = {LEXICAL: 0.6, DENSE: 1.0, LATE: 0.85, TIME: 2.0, SPEAKER: 0.5}
"""Weights of the signals in the two-stage method, standardised but for the time's fit, 0–1, and the fitting speaker, 0
or 1, which are plain bonuses.

Those of words and tokens count as far as the words may decide; see `COVERED`."""

DENSE_WEIGHTS: Mapping[str, float] = {"minilm": 1.25}
"""Of embedders whose vectors tell more than words do; any other one has the weight above."""

COVERED = (0.42, 0.72)
"""How far words and late interaction decide beside meaning, by how much of the question the best passage covers
(`Candidates.coverage`): not at all up to the first, wholly from the second on.

Who asks in other words than the answer's shares only chance matches with anything, and standardising would make as much
of these as of real ones. Judged by `scripts/ranking/cross_validate.py`, as are all constants of the fusion."""

RARE = (1.10, 1.85)
"""The same by the best passage's BM25 divided by ln(1 + passages): the rarity that it holds, of the highest that there
is. A long question is never covered, but two rare words of it are no chance. The larger of both counts."""

MEANT = (0.10, 0.25)
"""How far meaning decides where words do, by the best cosine: not at all up to the first, wholly from the second on.

Cosines of unrelated texts reach the second by chance alone. Who asks for an identifier gets what holds it, not what its
letters resemble; where words are no help, the best cosine decides however faint."""

COMPARABLE = frozenset({"minilm", "static"})
"""Embedders whose cosines of unrelated texts have nearly the same mean and deviation: .03–.18 and .09–.11 for questions
and passages of everyday, medquad, cosqa-dev, longmemeval-dev. Those of another one are standardised by themselves."""

TIME_LOG_ODDS = 1.0
"""What a memory that is of the asked time gains in log-odds of relevance; a round guess."""

FADING = 16.0
"""In late interaction a token with p others before it in its passage counts (1 + p / 16)^−½ of what the first one does.

What a passage is about stands at its beginning: a title, a heading, the name of a function, the first sentence. From 4
to 16 all do about equally well, and the largest of them loses least on passages that were turned, whose beginnings say
nothing (docs/benchmarks.md)."""

NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the mean value of those one step and two steps away: half at each step."""

ANSWER_SHARE = 0.25
"""What a turn receives besides of the value of the turn before it, where that asks something: an answer seldom repeats
what it was asked. Less of one that is longer than `SHORT_TURN`, which asks by the way. A round guess: it gains on short
turns, which nothing was fitted on, and loses a little on long ones."""

SHORT_TURN = 60
"""A turn of so many tokens receives all of that, a longer one the less, the longer it is."""

FLOOR = 0.3
"""Where the caller names no least score: what lies below it is held back, a probability of 0.009. Of the questions that
something answers one in two hundred loses for it what would be among five hits."""

FIRST_FLOOR = 0.5
"""Likewise of the best hit, a probability of 0.02: where it lies below, the question is about something else, and
everything is held back. That takes all from one in a hundred of the questions that something answers, from some more in
stores of a few texts."""
