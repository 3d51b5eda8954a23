"""Dataclasses that are cheap to define: their methods are made when the first instance is.

`dataclasses.dataclass` compiles six functions for each class, used or not: more than half of the time in which a
command imports some 200 classes, of which it makes 80. These behave alike, and take the same functions: `fields`,
`replace`, `asdict`, `pickle`. Annotations are strings, as `from __future__ import annotations` leaves them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

_FIELDS = "__dataclass_fields__"

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True, weakref_slot=False):  # noqa: A002 - as there
        """Make a dataclass of a class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, repr=repr, weakref_slot=weakref_slot)
        given = {
            name: cls.__dict__[name]
            for name, kind in cls.__annotations__.items()
            if name in cls.__dict__ and not kind.startswith("ClassVar")
        }
        if slots:
            cls = _with_slots(cls, given, weakref_slot)
        else:
            for name, value in given.items():
                if isinstance(value, Field):
                    delattr(cls, name) if value.default is MISSING else setattr(cls, name, value.default)
        late = (_FIELDS, "__init__", "__match_args__", *["__repr__"] * repr, *["__eq__"] * eq)
        # What the library asks of a base.
        members = {"__dataclass_params__": SimpleNamespace(frozen=frozen)}
        members |= {name: _Late(cls, name, given) for name in late}
        if eq:
            members["__hash__"] = _Late(cls, "__hash__", given) if frozen else None
        if frozen:
            members |= {"__setattr__": _refuse, "__delattr__": _refuse}
            if slots:
                members |= {"__getstate__": _state, "__setstate__": _restore}
        for name, member in members.items():
            if name not in cls.__dict__:
                setattr(cls, name, member)
        return cls


def _with_slots(cls: type, defaults: Mapping[str, Any], is_weakly_referable: bool) -> type:
    """Return the class anew, as a class has its slots from its beginning."""
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    names = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
    left_out = {"__dict__", "__weakref__", *defaults}
    members = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    members["__slots__"] = (*(n for n in names if n not in inherited), *["__weakref__"] * is_weakly_referable)
    return type(cls)(cls.__name__, cls.__bases__, {**members, "__qualname__": cls.__qualname__})


class _Late:
    """A member of a dataclass until it is first asked for, when all of them are made."""

    __slots__ = ("_cls", "_given", "_name")

    def __init__(self, cls: type, name: str, given: Mapping[str, Any]) -> None:
        self._cls, self._name, self._given = cls, name, given

    def __get__(self, instance: object, owner: type) -> Any:
        _complete(self._cls, self._given)
        return getattr(owner if instance is None else instance, self._name)


def _complete(cls: type, given: Mapping[str, Any]) -> None:
    known: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        known |= getattr(base, _FIELDS, {})
    # The library reads the fields, in a class that has nothing else.
    own = {**given, "__annotations__": cls.__annotations__, "__module__": cls.__module__, "__doc__": cls.__name__}
    model: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False)(type(cls.__name__, (), own))
    known |= {each.name: each for each in fields(model)}
    compared = [name for name, each in known.items() if each.compare]
    shown = [name for name, each in known.items() if each.repr]
    values: Callable[[object], tuple[Any, ...]] = (
        attrgetter(*compared) if len(compared) > 1 else lambda self: tuple(getattr(self, name) for name in compared)
    )

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - becomes one
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807 - becomes one
        return hash(values(self))

    def __repr__(self: object) -> str:  # noqa: N807 - becomes one
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    made: dict[str, Any] = {
        _FIELDS: known,
        "__init__": _initialiser(cls, known),
        "__match_args__": tuple(name for name, each in known.items() if each.init and not each.kw_only),
        "__eq__": __eq__,
        "__hash__": __hash__,
        "__repr__": __repr__,
    }
    for name, member in made.items():
        if isinstance(cls.__dict__.get(name), _Late):
            setattr(cls, name, member)


class _FromFactory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _FromFactory()


def _initialiser(cls: type, known: Mapping[str, Field[Any]]) -> Callable[..., None]:
    is_frozen = cls.__setattr__ is _refuse
    parameters, lines = ["self"], ["pass"]
    names: dict[str, Any] = {"_set_": object.__setattr__, "_FACTORY_": _FACTORY}
    for name, each in sorted(known.items(), key=lambda item: bool(item[1].kw_only)):
        default, value = f"_default_{name}_", name
        names[default] = each.default
        if each.default_factory is not MISSING:
            names[default] = each.default_factory
            value = f"{default}() if {name} is _FACTORY_ else {name}" if each.init else f"{default}()"
        elif not each.init:
            value = default
        if names[default] is MISSING and not each.init:
            continue  # `__post_init__` gives it a value
        if each.init:
            preset = "_FACTORY_" if each.default_factory is not MISSING else default
            parameters += ["*"] if each.kw_only and "*" not in parameters else []
            parameters.append(name if names[default] is MISSING else f"{name}={preset}")
        lines.append(f"_set_(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), names)  # noqa: S102 - names of fields alone
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {name: each.type for name, each in known.items() if each.init} | {"return": None}
    return made


def _refuse(_self: object, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
