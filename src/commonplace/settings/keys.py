"""Define and parse a single setting: default, range, where it may be set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from commonplace.dataclasses import dataclass, field
from commonplace.errors import SettingsError

T = TypeVar("T")

Kind = Literal["integer", "number", "text", "choice", "score", "globs", "names", "path"]

_RANGES: Mapping[Kind, str] = {
    "globs": "a list of globs as in .gitignore",
    "names": "a list of names",
    "text": "text",
    "path": "a path",
}

AUTO = "auto"
"""Written for a score to ask for the calibrated default."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting promises to its reader.

    Attributes:
        minimum, maximum: of a number, both included.
        choices: the only values of a `choice`, and of what a list of names holds.
        prefixes: what else a `choice` may begin with, outside a project's own file.
        project: whether a project's own file may set it; such a file arrives with someone else's clone.
        environment: the variable's name where it is not COMMONPLACE_<SECTION>_<KEY>.
    """

    description: str
    kind: Kind
    minimum: float = 0.0
    maximum: float = 0.0
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    project: bool = True
    environment: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting with its full name."""

    section: str
    name: str
    default: object
    rule: Rule

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def environment(self) -> str:
        section = self.section.replace(".", "_").replace("-", "_")
        return self.rule.environment or f"COMMONPLACE_{section}_{self.name}".upper()

    @property
    def range(self) -> str:
        """Say which values are allowed, for messages and for the manual."""
        rule = self.rule
        if rule.choices and rule.kind == "names":
            return "a list of " + ", ".join(rule.choices)
        if rule.choices:
            return "one of " + ", ".join((*rule.choices, *(f"{prefix}…" for prefix in rule.prefixes)))
        if rule.kind in _RANGES:
            return _RANGES[rule.kind]
        noun = "a whole number" if rule.kind == "integer" else "a number"
        suffix = f" or {AUTO!r}" if rule.kind == "score" else ""
        return f"{noun} from {rule.minimum:.15g} to {rule.maximum:.15g}{suffix}"


def _setting(default: T, description: str, kind: Kind, **rule: Any) -> T:
    """Declare a field that holds a value of one kind, as do the functions below; bounds are included."""
    declared: Any = field(default=default, metadata={"rule": Rule(description, kind, **rule)})
    value: T = declared
    return value


def whole(default: int, minimum: int, maximum: int, description: str, **rule: Any) -> int:
    return _setting(default, description, "integer", minimum=minimum, maximum=maximum, **rule)


def number(default: float, minimum: float, maximum: float, description: str, **rule: Any) -> float:
    return _setting(default, description, "number", minimum=minimum, maximum=maximum, **rule)


def score(default: float | None, description: str) -> float | None:
    """Declare a field that holds a score from 0 to 1, or None for the calibrated default."""
    return _setting(default, description, "score", minimum=0.0, maximum=1.0)


def choice(default: str, choices: tuple[str, ...], description: str, **rule: Any) -> str:
    return _setting(default, description, "choice", choices=choices, **rule)


def switch(default: Literal["on", "off"], description: str, **rule: Any) -> str:
    return choice(default, ("on", "off"), description, **rule)


def text(default: str, description: str, **rule: Any) -> str:
    return _setting(default, description, "text", **rule)


def path(default: str, description: str, **rule: Any) -> str:
    return _setting(default, description, "path", **rule)


def names(default: tuple[str, ...], description: str, **rule: Any) -> tuple[str, ...]:
    return _setting(default, description, "names", **rule)


def globs(default: tuple[str, ...], description: str) -> tuple[str, ...]:
    return _setting(default, description, "globs")


def parse(key: Key, raw: object, origin: str, *, textual: bool = False) -> object:
    """Read a value given for a setting and check its range.

    Args:
        raw: as it came: a TOML value, a flag's value, or text.
        origin: where it came from, for the message.
        textual: whether `raw` is text that stands for a number or a list, as in an environment variable.

    Raises:
        SettingsError: the value is of the wrong kind or out of range; names value, limit, remedy and origin.
    """
    rule = key.rule
    try:
        value = _PARSERS[rule.kind](_from_text(rule.kind, raw) if textual else raw)
    except (TypeError, ValueError):
        raise _refused(key, raw, origin) from None
    texts = value if isinstance(value, tuple) else (value,)
    if rule.choices and not all(each in rule.choices or _goes_on(str(each), rule.prefixes) for each in texts):
        raise _refused(key, raw, origin)
    if isinstance(value, int | float) and not rule.minimum <= value <= rule.maximum:
        raise _refused(key, raw, origin)
    return value


def _goes_on(value: str, prefixes: tuple[str, ...]) -> bool:
    return any(value.startswith(prefix) and value != prefix for prefix in prefixes)


def _refused(key: Key, raw: object, origin: str) -> SettingsError:
    return SettingsError(f"{key.dotted} is {raw!r} ({origin})", remedy=f"give it {key.range}")


def _from_text(kind: Kind, raw: object) -> object:
    text = str(raw).strip()
    if kind in ("globs", "names"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "integer":
        return int(text)
    return float(text) if kind == "number" or (kind == "score" and text != AUTO) else text


def _integer(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise TypeError
    return raw


def _number(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise TypeError
    return float(raw)


def _score(raw: object) -> float | None:
    return None if raw is None or raw == AUTO else _number(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str) or "\0" in raw:
        raise TypeError
    return raw


def _texts(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(item, str) and item.strip() for item in raw):
        raise TypeError
    return tuple(raw)


_PARSERS: Mapping[Kind, Callable[[object], object]] = {
    "integer": _integer,
    "number": _number,
    "text": _text,
    "choice": _text,
    "score": _score,
    "globs": _texts,
    "names": _texts,
    "path": _text,
}
