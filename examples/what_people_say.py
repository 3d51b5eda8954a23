"""People say new things in ordinary words: each answer is the new one, with what held before, and what is unsure waits.

    python examples/what_people_say.py

Without a model, rules end a fact where the words state a change, and ask where they do not or where it is about health,
money or access.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime

import commonplace

JANUARY = [
    "user: We live in Boston. I work for Initech.",
    "user: I write all my code in vim.",
    "Our servers run on AWS.",
    "Anna leads the platform team.",
    "Deployments happen on Thursdays.",
    "Dad's dose of ramipril is 5 mg.",
]
JUNE = [
    "user: We moved to Seattle last week. New job at Globex.",
    "user: I switched from vim to Helix.",
    "AWS is shut down, the servers run on Hetzner now.",
    "Benedikt took over the platform team.",
    "Deployments happen on Fridays now.",
    "Dad's dose of ramipril is 10 mg now.",
]
QUESTIONS = [
    "where do we live",
    "who is my employer",
    "which editor do I use",
    "what do the servers run on",
    "who leads the platform team",
    "when do deployments happen",
]

now = datetime(2026, 1, 10, tzinfo=UTC)

with (
    tempfile.TemporaryDirectory() as place,
    commonplace.open(place, clock=lambda: now.timestamp()) as book,
):
    for episodes in (JANUARY, JUNE):
        for said in episodes:
            book.graph.add_episode(said, reference_time=now)
        now = datetime(2026, 6, 10, tzinfo=UTC)
    for question in QUESTIONS:
        [fact] = book.graph.search_edges(question, 1)
        old = fact.attributes["overtook"]
        print(f"{question}? {fact.target_name} (before: {old['target_name']}, until {old['valid_to'][:10]})")
    for waiting in book.questions():
        print(f"{waiting.question} {' / '.join(side.text for side in waiting.sides)}")
