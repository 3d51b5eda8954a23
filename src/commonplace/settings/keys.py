"""Define and parse a single setting: default, range, where it may be set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

from commonplace.dataclasses import dataclass, field
from commonplace.errors import SettingsError

T = TypeVar("T")

Kind = Literal["integer", "number", "text", "choice", "score", "globs", "names", "path"]

_RANGES: Final[Mapping[Kind, str]] = {
    "globs": "a list of globs as in .gitignore",
    "names": "a list of names",
    "text": "text",
    "path": "a path",
}
_KINDS: Final[Mapping[type, Kind]] = {int: "integer", float: "number", str: "text", tuple: "names"}
"""The kind of a setting by the type of its default, unless its declaration names one."""

AUTO: Final = "auto"
"""Value of a score that asks for the calibrated default."""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """What a setting means, and which values it takes.

    Attributes:
        minimum, maximum: bounds of a number, both included.
        choices: the only values of a `choice`, and of the items of a list of names.
        prefixes: prefixes of further values of a `choice`, except in a project's own file.
        project: whether a project's own file may set it; such a file arrives with someone else's clone.
        environment: the variable's name if it is not COMMONPLACE_<SECTION>_<KEY>.
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
    rule: KeyRule

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def environment(self) -> str:
        section = self.section.replace(".", "_").replace("-", "_")
        return self.rule.environment or f"COMMONPLACE_{section}_{self.name}".upper()

    @property
    def range(self) -> str:
        """The allowed values in words, for messages and the manual."""
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


def setting(
    default: T, description: str, minimum: float = 0.0, maximum: float = 0.0, *, kind: Kind | None = None, **rule: Any
) -> T:
    """Declare the field of a setting; bounds are inclusive, and `rule` holds further attributes of its `KeyRule`."""
    kind = kind or ("choice" if "choices" in rule and isinstance(default, str) else _KINDS[type(default)])
    declared: Any = field(default=default, metadata={"rule": KeyRule(description, kind, minimum, maximum, **rule)})
    value: T = declared
    return value


def user_setting(default: T, description: str, *bounds: float, **rule: Any) -> T:
    """Declare the field of a setting that a project's own file may not set."""
    return setting(default, description, *bounds, project=False, **rule)


def switch(default: Literal["on", "off"], description: str, **rule: Any) -> str:
    """Declare the field of a setting that is on or off."""
    return setting(str(default), description, choices=("on", "off"), **rule)


def parse(key: Key, raw: object, origin: str, *, textual: bool = False) -> object:
    """Read a value given for a setting and check its range.

    Args:
        raw: as it came: a TOML value, a flag's value, or text.
        origin: where it came from, for the message.
        textual: whether `raw` is the text of a number or a list, as in an environment variable.

    Raises:
        SettingsError: the value is of the wrong type or out of range; it names value, limit, remedy and origin.
    """
    rule = key.rule
    try:
        value = _value(rule.kind, raw, textual)
    except (TypeError, ValueError):
        is_allowed = False
    else:
        texts = value if isinstance(value, tuple) else (value,)
        is_allowed = not rule.choices or all(item in rule.choices or _has_prefix(item, rule.prefixes) for item in texts)
        if isinstance(value, int | float):
            is_allowed = rule.minimum <= value <= rule.maximum
    if not is_allowed:
        remedy = f"give it {key.range}"
        if origin == "flag":  # a command says which of its options that is
            raise SettingsError(f"{key.dotted} is {raw!r}", remedy=remedy, parameters=(key.dotted,))
        raise SettingsError(f"{key.dotted} is {raw!r} ({origin})", remedy=remedy)
    return value


def _has_prefix(value: object, prefixes: tuple[str, ...]) -> bool:
    return any(str(value).startswith(prefix) and value != prefix for prefix in prefixes)


def _value(kind: Kind, raw: object, textual: bool) -> object:
    text = str(raw).strip()
    if kind in ("globs", "names"):
        items = [part.strip() for part in text.split(",") if part.strip()] if textual else raw
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) and item.strip() for item in items):
            raise TypeError
        return tuple(items)
    if kind in ("text", "choice", "path"):
        if not isinstance(raw, str) or "\0" in raw:
            raise TypeError
        return text if textual else raw
    if kind == "score" and (raw is None or text == AUTO):
        return None
    number = (int(text) if kind == "integer" else float(text)) if textual else raw
    if isinstance(number, bool) or not isinstance(number, int if kind == "integer" else int | float):
        raise TypeError
    return number if kind == "integer" else float(number)
