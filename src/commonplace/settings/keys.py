"""Define and parse a single setting: default, range, where it may be set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

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
        minimum, maximum: both included; None is open.
        choices: the only values of a `choice`, and of what a list of names holds.
        prefixes: what else a `choice` may begin with, outside a project's own file.
        project: whether a project's own file may set it; such a file arrives with someone else's clone.
        environment: the variable's name where it is not COMMONPLACE_<SECTION>_<KEY>.
    """

    description: str
    kind: Kind
    minimum: float | None = None
    maximum: float | None = None
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
        if rule.minimum is None:
            return noun + suffix
        upper = "" if rule.maximum is None else f" to {rule.maximum:.15g}"
        return f"{noun} from {rule.minimum:.15g}{upper}{suffix}"


def setting(default: T, description: str, kind: Kind, **rule: Any) -> T:
    """Declare a field of a settings section; `rule` takes the other attributes of `Rule`."""
    declared: Any = field(default=default, metadata={"rule": Rule(description, kind, **rule)})
    value: T = declared
    return value


def parse(key: Key, raw: object, origin: str, *, textual: bool = False) -> object:
    """Read a value given for a setting and check its range.

    Args:
        raw: as it came: a TOML value, a flag's value, or text.
        origin: where it came from, for the message.
        textual: whether `raw` is text that stands for a number or a list, as in an environment variable.

    Raises:
        SettingsError: the value is of the wrong kind or out of range; names value, limit, remedy and origin.
    """
    try:
        value = _PARSERS[key.rule.kind](_from_text(key, raw) if textual else raw)
    except (TypeError, ValueError):
        raise _refused(key, raw, origin) from None
    rule = key.rule
    for each in value if isinstance(value, tuple) else (value,):
        if rule.choices and each not in rule.choices and not _goes_on(str(each), rule.prefixes):
            raise _refused(key, raw, origin)
    if isinstance(value, int | float) and not _within(value, rule):
        raise _refused(key, raw, origin)
    return value


def _within(value: float, rule: Rule) -> bool:
    """Tell whether a number is in range; NaN is in none."""
    above = rule.minimum is None or value >= rule.minimum
    return above and (rule.maximum is None or value <= rule.maximum)


def _goes_on(value: str, prefixes: tuple[str, ...]) -> bool:
    """Tell whether a value begins with one of the prefixes and is longer."""
    return any(value.startswith(prefix) and value != prefix for prefix in prefixes)


def _refused(key: Key, raw: object, origin: str) -> SettingsError:
    return SettingsError(f"{key.dotted} is {raw!r} ({origin})", remedy=f"give it {key.range}")


def _from_text(key: Key, raw: object) -> object:
    text = str(raw).strip()
    if key.rule.kind in ("globs", "names"):
        return [part.strip() for part in text.split(",") if part.strip()]
    if key.rule.kind == "integer":
        return int(text)
    if key.rule.kind == "number" or (key.rule.kind == "score" and text != AUTO):
        return float(text)
    return text


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
