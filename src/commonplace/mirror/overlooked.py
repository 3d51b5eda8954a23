"""Which blocks are missing from a page because an editor was open before they were written, and saved it later."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.mirror.situation import Situation


def overlooked(at: Situation, edited: Collection[str]) -> set[str]:
    """Return the ids of missing blocks that whoever saved their page has most likely never seen.

    A save does not tell when its editor read the page. It is taken to have been before a block was written where
    something else was changed in the same save, where no block that was written as late is on the page either, and
    where another one was there earlier. Who removes it once more, has seen it.

    Args:
        edited: the pages on which somebody wrote or changed something.
    """
    missing: set[str] = set()
    for page in edited:
        agreed = {id_: each for id_, each in at.agreed.items() if each.page == page}
        if agreed:
            earliest = min(each.since for each in agreed.values())
            seen = max((each.since for id_, each in agreed.items() if id_ in at.blocks), default=earliest)
            missing |= {id_ for id_, each in agreed.items() if id_ not in at.blocks and each.since > seen}
    return missing
