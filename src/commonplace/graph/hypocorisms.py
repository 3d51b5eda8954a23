"""Which given names English speakers shorten to which: a table of common knowledge. It knows no entity.

Left out are short forms that are mostly names of their own by now (Jack, Lisa, Nancy, Sally), since a wrong "the same"
joins two lives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from commonplace.text.words import entries

_FILE: Final = Path(__file__).with_name("hypocorisms.txt")

_FEWEST: Final = 3
"""So many letters has a short form that may begin another one: Liz and Lizzie, but not Al and Alf."""


def _read() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    short = {full: frozenset(forms.split()) for full, _, forms in (line.partition(":") for line in entries(_FILE))}
    whole: dict[str, set[str]] = {}
    for full, forms in short.items():
        for form in forms:
            whole.setdefault(form, set()).add(full)
    return short, {form: frozenset(names) for form, names in whole.items()}


SHORT_OF, WHOLE_OF = _read()
"""The short forms of a given name, and the given names of a short form; all in small letters."""


def related(name: str) -> frozenset[str]:
    """Return the given names that somebody of this one may also go by, in small letters; itself is not among them."""
    others = set(SHORT_OF.get(name, ())) | WHOLE_OF.get(name, frozenset())
    for whole in WHOLE_OF.get(name, ()):
        others |= {form for form in SHORT_OF[whole] if _is_beginning(form, name) or _is_beginning(name, form)}
    return frozenset(others - {name})


def _is_beginning(one: str, other: str) -> bool:
    return len(one) >= _FEWEST and other.startswith(one)
