"""Choose among what was found for a task what its context is to hold. It knows hits, no budget and no search.

A context is read as a whole: what says the same, or little of how things are now, takes the place of something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from commonplace.text.languages import PROSE, language_of
from commonplace.types import Hit

HISTORIES: Final = 2
"""So many changelogs and pages of release notes are in a context; a project may have hundreds that say little."""
LINE: Final = 120
_HISTORY: Final = re.compile(
    r"(?:^|/)(?:releases?|release[-_ ]?notes?|change[-_ ]?logs?|changes|whats[-_ ]?new|news(?:fragments)?|history)"
    r"(?:/|\.\w+$|$)",
    re.IGNORECASE,
)


def distinct(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those whose text a better one has, whatever the white space."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(" ".join(hit.text.split()), hit)
    return tuple(first.values())


def in_turn(hits: Sequence[Hit], standing_in: Collection[str]) -> tuple[Hit, ...]:
    """Return the hits so that of any number of the first at most half, rounded up, stand in for other types.

    Prose answers a task in so many words and would fill a budget before the code comes that it is about.
    """
    own = [hit for hit in hits if hit.type not in standing_in]
    others = [hit for hit in hits if hit.type in standing_in]
    chosen: list[Hit] = []
    place = 0
    for hit in own:
        while place < len(others) and others[place].score > hit.score and 2 * place <= len(chosen):
            chosen.append(others[place])
            place += 1
        chosen.append(hit)
    return (*chosen, *others[place:])


def without_old_news(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with those of the first changelogs and release notes alone."""
    owners = list(dict.fromkeys(hit.owner_id for hit in hits if is_history(hit.path)))
    return tuple(hit for hit in hits if hit.owner_id not in owners[HISTORIES:])


def one_line_artifacts(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with each artifact once, by one line of its best passage: a name to look it up by."""
    found: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.kind != "artifact":
            found[hit.kind, hit.id] = hit
        elif (hit.kind, hit.owner_id) not in found:
            lines = (" ".join(line.split()) for line in hit.text.splitlines())
            first = next((line for line in lines if any(map(str.isalnum, line))), "")
            found[hit.kind, hit.owner_id] = replace(hit, id=hit.owner_id, text=first[:LINE])
    return tuple(found.values())


def is_history(path: str) -> bool:
    """Return whether a text tells by its path that it is about what changed: a changelog, a page of release notes."""
    return bool(_HISTORY.search(path)) and language_of(path.rpartition("/")[2]) in PROSE


def of_the_first_owners(hits: Sequence[Hit], most: int) -> tuple[Hit, ...]:
    """Return the hits of the first owners, at most so many of them, in their order."""
    owners = set(list(dict.fromkeys((hit.kind, hit.owner_id) for hit in hits))[:most])
    return tuple(hit for hit in hits if (hit.kind, hit.owner_id) in owners)
