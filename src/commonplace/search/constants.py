"""The fitted constants of ranking, in one place, each with where it came from."""

from __future__ import annotations

from commonplace.ranking.calibration import Calibration
from commonplace.search.candidates import DENSE, LATE, LEXICAL

WEIGHTS = {LEXICAL: 1.0, DENSE: 1.0, LATE: 1.0}
"""Weights of the standardised signals in the two-stage method."""

LENGTH_EXPONENT = 0.25
"""Coverage is divided by passage length to this power, since a long passage covers more by chance."""

NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the scores one step and two steps away: half of it at each step."""

CALIBRATION = Calibration(intercept=-6.0, coverage=6.0, exact=2.0, dense=4.0, anchor=0.0)
"""Log-odds of relevance."""

DEFAULT_MIN_SCORE = 0.5
"""The cut where the caller names none."""
