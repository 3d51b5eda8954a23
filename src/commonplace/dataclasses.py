"""Dataclasses that are cheap to define and to instantiate a few times.

`dataclasses.dataclass` compiles six functions for each class, used or not. That takes more than half of the import time
of a command, which imports some 200 classes and instantiates 80 of them, most only once. Here all classes share one
`__repr__`, `__eq__` and `__hash__`, which read the fields. The first instances of a class are filled field by field;
its `__init__` is compiled only for later ones. Annotations must be strings, as `from __future__ import annotations`
leaves them. Features that are not defined here, such as `InitVar` and `order`, are not supported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

_FIELDS, _PARAMS, _SPECS = "__dataclass_fields__", "__dataclass_params__", "__dataclass_specs__"
_CLASS_VARIABLE = re.compile(r"(?:\w+\s*\.\s*)?ClassVar\b")
_FILLED = 20
"""Instances of a class that are filled field by field: together they take as long as compiling one class."""
_making = RLock()

if TYPE_CHECKING:
    from dataclasses import asdict, astuple, dataclass, field, fields, is_dataclass, replace

    MISSING: Any = object()
else:
    MISSING = object()

    def __getattr__(name):
        """Return a name of the standard module, whose import takes as long as a server's list of tools should take."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import dataclasses

        return getattr(dataclasses, name)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):  # noqa: A002 - as there
        """Turn a class into a dataclass, as `dataclasses.dataclass` does."""
        options = {"frozen": frozen, "slots": slots, "eq": eq, "repr": repr}
        if cls is None:
            return partial(dataclass, **options)
        rest = {"init": True, "order": False, "unsafe_hash": False, "match_args": True, "kw_only": False}
        specs = _specs(cls)
        members = {
            _PARAMS: SimpleNamespace(**options, weakref_slot=False, **rest),
            _SPECS: specs,
            _FIELDS: _Late(_described),
            "__init__": _Initialiser(_compiled),
            "__match_args__": tuple(name for name, each in specs.items() if not each.kw_only),
            "__replace__": replace,
        }
        if repr:
            members["__repr__"] = _shown
        if eq:
            members |= {"__eq__": _equal, "__hash__": _hashed if frozen else None}
        if frozen:
            members |= {"__setattr__": _assign, "__delattr__": _delete}
        if frozen and slots:
            members |= {"__getstate__": _state, "__setstate__": _restore}
        return _with_slots(cls, specs, members) if slots else _with_members(cls, members)

    def field(*, default=MISSING, default_factory=MISSING, repr=True, compare=True, metadata=None, kw_only=False):  # noqa: A002
        """Declare the options of a field, as `dataclasses.field` does."""
        return _Spec(default, default_factory, repr, compare, metadata or {}, kw_only)

    def fields(value):
        """Return the fields of a class or of an instance's class, made here or by the standard `dataclasses`."""
        made = next((cls for cls in getattr(value, "__mro__", type(value).__mro__) if _PARAMS in cls.__dict__), type)
        if _SPECS in made.__dict__:
            return tuple(getattr(made, _SPECS).values())
        import dataclasses

        return dataclasses.fields(value)

    def is_dataclass(value):
        return hasattr(value, _PARAMS)

    def replace(obj, /, **changes):
        """Return a new instance of the same class with some fields changed."""
        kept = {each.name: getattr(obj, each.name) for each in fields(obj) if each.init and each.name not in changes}
        return type(obj)(**kept, **changes)


class _Spec:
    __slots__ = ("compare", "default", "default_factory", "is_preset", "kw_only", "metadata", "name", "repr", "type")
    name: str
    type: str
    init = True
    """Always True here; a field of the standard `dataclasses` may have False."""

    def __init__(self, *said: Any) -> None:
        self.default, self.default_factory, self.repr, self.compare, self.metadata, self.kw_only = said
        self.is_preset = self.default is not MISSING or self.default_factory is not MISSING


def _specs(cls: type) -> dict[str, _Spec]:
    """Return the fields of a class by name, those of its bases first."""
    specs: dict[str, _Spec] = {}
    for base in cls.__mro__[:0:-1]:
        specs |= getattr(base, _SPECS, {})
    for name, kind in cls.__annotations__.items():
        if not _CLASS_VARIABLE.match(kind):
            value = getattr(cls, name, MISSING)
            specs[name] = spec = value if type(value) is _Spec else _Spec(value, MISSING, True, True, {}, False)
            spec.name, spec.type = name, kind
            if type(spec.default).__hash__ is None:
                raise ValueError(f"mutable default {type(spec.default)} for field {name} is not allowed")
    return specs


def _with_slots(cls: type, specs: Mapping[str, _Spec], members_added: Mapping[str, Any]) -> type:
    """Return a new class with slots and more members: slots cannot be added to an existing class."""
    names = [name for name in cls.__annotations__ if name in specs]
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    members = {name: value for name, value in cls.__dict__.items() if name not in {"__dict__", "__weakref__", *names}}
    members["__slots__"] = tuple(name for name in names if name not in inherited)
    return type(cls)(cls.__name__, cls.__bases__, {**members_added, **members, "__qualname__": cls.__qualname__})


def _with_members(cls: Any, additions: Mapping[str, Any]) -> type:
    """Add members and the defaults of fields to the class, and return it."""
    for name, value in list(cls.__dict__.items()):
        if type(value) is _Spec:
            delattr(cls, name) if value.default is MISSING else setattr(cls, name, value.default)
    for name, member in additions.items():
        if name not in cls.__dict__:
            setattr(cls, name, member)
            if isinstance(member, _Late):
                member.__set_name__(cls, name)
    return cls  # type: ignore[no-any-return]


class _Late:
    """A placeholder for a member of a dataclass, which replaces it on first access."""

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with _making:
            if self._cls.__dict__[self._name] is self:
                setattr(self._cls, self._name, self._make(self._cls))
        member = self._cls.__dict__[self._name]
        return member.__get__(instance, owner) if hasattr(member, "__get__") else member


class _Initialiser(_Late):
    """The `__init__` of a dataclass: fills the first instances field by field, and is compiled for later ones."""

    _uses = 0

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._uses += 1
        if instance is None or self._uses > _FILLED:
            return super().__get__(instance, owner)
        return partial(self._fill, instance)

    def _fill(self, value: Any, /, *arguments: Any, **named: Any) -> Any:
        specs: Mapping[str, _Spec] = getattr(self._cls, _SPECS)
        values = dict(zip(getattr(self._cls, "__match_args__"), arguments, strict=False)) | named  # noqa: B009 - mypy
        needed = {name for name, spec in specs.items() if not spec.is_preset}
        if len(values) < len(arguments) + len(named) or not needed <= values.keys() <= specs.keys():
            return super().__get__(value)(*arguments, **named)  # raises a TypeError that says what is wrong
        for name, spec in specs.items():
            if name not in values:
                values[name] = spec.default if spec.default_factory is MISSING else spec.default_factory()
            object.__setattr__(value, name, values[name])
        return value.__post_init__() if hasattr(value, "__post_init__") else None


class _FromFactory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _FromFactory()


def _compiled(cls: type) -> Callable[..., None]:
    """Compile `__init__` alone: the standard `dataclasses` compiles two more functions if the class is frozen."""
    is_frozen = cls.__dict__[_PARAMS].frozen
    specs: list[_Spec] = sorted(getattr(cls, _SPECS).values(), key=lambda spec: spec.kw_only)
    names: dict[str, Any] = {"_set_": object.__setattr__, "_FACTORY_": _FACTORY}
    parameters, lines = ["self"], ["pass"]
    for spec in specs:
        name, default = spec.name, f"_default_{spec.name}_"
        names[default], value, preset = spec.default, name, f"={default}" * spec.is_preset
        if spec.default_factory is not MISSING:
            names[default], preset = spec.default_factory, "=_FACTORY_"
            value = f"{default}() if {name} is _FACTORY_ else {name}"
        lines.append(f"_set_(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
        parameters += ["*"] if spec.kw_only and "*" not in parameters else []
        parameters.append(name + preset)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f" def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines) + "\n return __init__"
    namespace: dict[str, Any] = {}
    exec(f"def make({', '.join(names)}):\n{text}", getattr(sys.modules.get(cls.__module__), "__dict__", {}), namespace)  # noqa: S102 - names of fields
    initialiser: Callable[..., None] = namespace["make"](**names)
    initialiser.__qualname__ = f"{cls.__qualname__}.__init__"
    initialiser.__annotations__ = {spec.name: spec.type for spec in specs} | {"return": None}
    return initialiser


def _described(cls: type) -> Any:
    """Return the fields in the form of the standard `dataclasses`."""
    import dataclasses

    described = []
    for spec in getattr(cls, _SPECS).values():
        names = ("default", "default_factory", "repr", "compare", "metadata", "kw_only")
        options = {name: value for name in names if (value := getattr(spec, name)) is not MISSING}
        described.append((spec.name, spec.type, dataclasses.field(**options)))
    return getattr(dataclasses.make_dataclass(cls.__name__, described, init=False, repr=False, eq=False), _FIELDS)


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name, spec in getattr(type(self), _SPECS).items() if spec.compare])


def _equal(self: Any, other: object) -> Any:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(_compared(self))


def _shown(self: Any) -> str:
    names = [name for name, spec in getattr(type(self), _SPECS).items() if spec.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _refuse_change(value: object, name: str, act: str) -> None:
    # A subclass of a frozen dataclass that is not a dataclass itself may have attributes of its own.
    if _PARAMS in type(value).__dict__ or name in getattr(type(value), _SPECS):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {act} field {name!r}")


def _assign(self: object, name: str, value: object) -> None:
    _refuse_change(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delete(self: object, name: str) -> None:
    _refuse_change(self, name, "delete")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(type(self), _SPECS)]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(type(self), _SPECS), state, strict=True):
        object.__setattr__(self, name, value)
