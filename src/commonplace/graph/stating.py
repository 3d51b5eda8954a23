"""Make the content of an episode that states one fact about two names, as `understanding` reads it."""

from __future__ import annotations

from typing import Final

from commonplace.errors import UsageError
from commonplace.graph.naming import checked, normal

RELATED: Final = "RELATED_TO"


def statement(
    source: object,
    target: object,
    fact: object,
    *,
    relation_type: str = RELATED,
    called: tuple[str, str, str] = ("source", "target", "fact"),
) -> dict[str, str]:
    """Return it as an object for `add_episode` with the source "json".

    Args:
        fact: a sentence, or some words; what they say of the two counts more than that they are related.
        called: by which names the first three are known to whoever gives them.

    Raises:
        UsageError: a name is no name, both are one, or nothing is said of them.
    """
    one, other = checked(called[0], source), checked(called[1], target)
    if normal(one) == normal(other):
        raise UsageError(f"{called[0]} and {called[1]} both mean {one!r:.60}", remedy="name two entities")
    if not isinstance(fact, str) or not fact.strip():
        raise UsageError(f"{called[2]} is empty", remedy="say in a few words how they hang together")
    return {"source": one, "relation_type": relation_type, "target": other, "fact": fact.strip()}
