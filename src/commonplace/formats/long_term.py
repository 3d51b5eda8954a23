"""Say which section of MEMORY.md a memory stands in and which memories it has room for. It knows no Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SECTIONS: Final = ("Decisions", "Preferences", "Lessons", "Events")
"""In the order of the page. A person may add others, which are kept where they stand."""

MOST_TOKENS: Final = 5000

_SECTION_OF: Final = {
    "decision": "Decisions",
    "preference": "Preferences",
    "lesson": "Lessons",
    "fact": "Lessons",
    "event": "Events",
    "context": "Events",
}
_OTHERS: Final = "Lessons"
_CATEGORY_OF: Final = {"Decisions": "decision", "Preferences": "preference", "Lessons": "lesson", "Events": "event"}


def section_of(category: str, own: Iterable[str] = ()) -> str:
    """Return the section for a category: ours, a person's own of that name, else Lessons.

    Args:
        own: the names of the sections that the page has.
    """
    wanted = category.strip().casefold()
    if wanted in _SECTION_OF:
        return _SECTION_OF[wanted]
    return next((name for name in own if name.casefold() == wanted), _OTHERS)


def category_of(section: str) -> str:
    """Return the category of a note that a person put in a section; `section_of` leads back to that section."""
    name = canonical(section)
    return _CATEGORY_OF.get(name, name.casefold())


def canonical(section: str) -> str:
    """Return a section's name as we spell it where it is one of ours, else as it is."""
    name = section.strip()
    return next((ours for ours in SECTIONS if ours.casefold() == name.casefold()), name)


def fit(counts: Iterable[tuple[str, int]], limit: int = MOST_TOKENS, *, used: int = 0) -> tuple[str, ...]:
    """Return the ids that together stay under the limit, in the order given: each is taken if there is still room.

    A memory that is too long is passed over, so that it keeps out no other; the rest stay in the store only.

    Args:
        counts: (id, tokens of its entry), what matters most first.
        used: tokens of what stands on the page besides: title, section headings, a person's own words.
    """
    chosen = []
    for memory_id, tokens in counts:
        if used + tokens < limit:
            chosen.append(memory_id)
            used += tokens
    return tuple(chosen)
