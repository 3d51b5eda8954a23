"""The constants of ranking, each with where it came from; none is fitted on LoCoMo or Cranfield."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.search.candidates import DENSE, LATE, LEXICAL, TIME

WEIGHTS = {LEXICAL: 1.0, DENSE: 1.0, LATE: 0.7, TIME: 1.0}
"""Weights of the standardised signals in the two-stage method, judged by `scripts/ranking/cross_validate.py`.

With a late weight of 1 sets whose passages begin with what they are about gain a little more, but one whose beginnings
say nothing falls below words alone. That of the time, which only a query with a date has, makes it count as much as
words or meaning."""

DENSE_WEIGHTS: Mapping[str, float] = {"minilm": 2.0}
"""Of embedders whose vectors tell more than words do; any other one has the weight above.

Chosen on medquad and cosqa-dev, where all from 2 to 4 do about equally well: the least of them, since the vectors of a
transformer tell less where passages are short turns of a conversation."""

TIME_LOG_ODDS = 1.0
"""What a memory that is of the asked time gains in log-odds of relevance; a round guess."""

FADING = 16.0
"""In late interaction a token with p others before it in its passage counts (1 + p / 16)^−½ of what the first one does.

What a passage is about stands at its beginning: a title, a heading, the name of a function, the first sentence. Chosen
by `scripts/ranking/cross_validate.py`: from 4 to 16 all do about equally well, and the largest of them loses least on
passages that were turned, whose beginnings say nothing."""

NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the scores one step and two steps away: half of it at each step.

A round guess, not a fit: of the shares tried on LoCoMo, larger ones did slightly better there."""

FLOOR = 0.3
"""Where the caller names no least score: what lies below it is held back, a probability of 0.009. Of the questions that
something answers one in two hundred loses for it what would be among five hits."""

FIRST_FLOOR = 0.5
"""Likewise of the best hit, a probability of 0.02: where it lies below, the question is about something else, and
everything is held back. That takes all from one in a hundred of the questions that something answers, from some more in
stores of a few texts."""


def weights_of(embedder: str) -> dict[str, float]:
    """Return the weights of the standardised signals where an embedder of that name makes the vectors."""
    return {**WEIGHTS, DENSE: DENSE_WEIGHTS.get(embedder, WEIGHTS[DENSE])}
