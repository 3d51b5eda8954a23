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

ABSTAIN_BELOW = 0.72
"""Where the caller names no cut: a query whose best hit is below this is about nothing in the index.

A quarter of log-odds above the anchor. Of that, none, a quarter below and a half above, it serves both ends best on the
sets that may be fitted on, each judged by a scale that was fitted without it: 95 % of the first relevant hits stay, and
nine in ten unanswerable queries get nothing."""

DEFAULT_MIN_SCORE = 0.4
"""Where the caller names no cut: what hits must reach once the best one is good enough. Nearly all first relevant hits
do, and in a store of a few texts what shares no word with the query does not."""
