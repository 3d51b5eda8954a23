"""Retrieval strategies of agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from commonplace.dataclasses import dataclass, fields, replace
from commonplace.settings.keys import Key, setting
from commonplace.types import ARTIFACT_TYPES

SECTION: Final = "agents"
DEFAULT_AGENT: Final = "default"
_NAME: Final = re.compile(r"[\w-]{1,100}")


@dataclass(frozen=True, slots=True)
class Strategy:
    """Which artifacts an agent finds, and how many."""

    context_types: tuple[str, ...] = setting(
        ("requirement", "architecture", "code", "test"),
        "only artifacts of these types; an empty list: all",
        choices=ARTIFACT_TYPES,
    )
    top_k: int = setting(10, "maximum number of artifacts", 1, 1000)
    threshold: float = setting(0.7, "lowest score; 0 keeps all", 0.0, 1.0)
    phase_filter: tuple[str, ...] = setting((), "only artifacts of these phases, or of none; an empty list: all")
    tag_filter: tuple[str, ...] = setting((), "only artifacts with one of these tags; an empty list: all")


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "test-engineer": Strategy(
        ("requirement", "architecture", "code"), 15, 0.65, phase_filter=("elaboration", "construction")
    ),
    "security-auditor": Strategy(
        ("architecture", "code"), 10, 0.7, tag_filter=("security", "authentication", "authorization")
    ),
    "api-designer": Strategy(("requirement", "architecture"), 8, 0.75),
    "integrator": Strategy(("architecture", "test", "documentation"), 12, 0.65),
    DEFAULT_AGENT: Strategy(),
}
"""The built-in strategies, from the auto-retrieval contract."""


def agent_name(name: str) -> str:
    """Return the name of an agent in our spelling: `test_engineer` becomes `test-engineer`."""
    return name.strip().replace("_", "-")


def strategy_name(agent: str, by_agent: Mapping[str, Strategy]) -> str | None:
    """Return the name under which a client's agent has a strategy, or None.

    Clients call the agent of a plugin `plugin:agent`; a strategy may use either name.
    """
    names = (agent_name(agent), agent_name(agent.rpartition(":")[2]))
    return next((name for name in names if name in by_agent and name != DEFAULT_AGENT), None)


def strategy_keys(agent: str) -> tuple[Key, ...]:
    """Return the settings of an agent's strategy; their defaults are those of the agent, or of `default`."""
    defaults = STRATEGIES.get(agent, STRATEGIES[DEFAULT_AGENT])
    return tuple(
        Key(f"{SECTION}.{agent}", item.name, getattr(defaults, item.name), item.metadata["rule"])
        for item in fields(Strategy)
    )


def strategy_key(name: str) -> Key | None:
    """Return the setting of any agent's strategy, `agents.poet.top_k` or COMMONPLACE_AGENTS_POET_TOP_K, or None."""
    for item in fields(Strategy):
        variable = f"COMMONPLACE_{SECTION}_".upper(), f"_{item.name}".upper()
        for start, end in ((f"{SECTION}.", f".{item.name}"), variable):
            agent = name.removeprefix(start).removesuffix(end)
            if name == f"{start}{agent}{end}" and _NAME.fullmatch(agent):
                keys = strategy_keys(agent_name(agent.lower() if start.isupper() else agent))
                return next(key for key in keys if key.name == item.name)
    return None


def strategies(overrides: Mapping[str, Mapping[str, object]]) -> dict[str, Strategy]:
    """Return the strategy of every agent, by name.

    Args:
        overrides: the values set, by agent and option. A user's own agent takes missing options from `default`.
    """
    overridden: dict[str, Any] = {name: dict(options) for name, options in overrides.items()}
    default = replace(STRATEGIES[DEFAULT_AGENT], **overridden.get(DEFAULT_AGENT, {}))
    names = dict.fromkeys([*STRATEGIES, *sorted(overridden)])
    return {
        name: default if name == DEFAULT_AGENT else replace(STRATEGIES.get(name, default), **overridden.get(name, {}))
        for name in names
    }
