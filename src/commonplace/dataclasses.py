"""Dataclasses that are cheap to define and to make a few values of.

`dataclasses.dataclass` compiles six functions for each class, used or not: more than half of the time in which a
command imports some 200 classes, of which it makes 80, most of them once. Here the first values of a class are filled
field by field, and its initialiser is compiled for those that follow; the library describes a class, and shows its
values, when it is asked to. What is wrong with a field shows at the first use. Annotations are strings, as
`from __future__ import annotations` leaves them. Options that are not listed are refused.
"""

from __future__ import annotations

import abc
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

_FIELDS, _PARAMS, _SPECS = "__dataclass_fields__", "__dataclass_params__", "__dataclass_specs__"
_CLASS_VARIABLE = re.compile(r"(?:\w+\s*\.\s*)?ClassVar\b")
_FILLED = 20
"""How many values of a class are filled field by field: together they take as long as the compiler for one class."""
_making = RLock()

if TYPE_CHECKING:
    from dataclasses import asdict, astuple, dataclass, field, fields, is_dataclass, replace

    MISSING: Any = object()
else:
    MISSING = object()

    def __getattr__(name):
        """Return what is the library's, which takes as long to import as a server's list of tools should take."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import dataclasses

        return getattr(dataclasses, name)

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):  # noqa: A002 - as there
        """Make a dataclass of a class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, repr=repr)
        _refuse(cls, frozen=frozen)
        given = {name: getattr(cls, name) for name in cls.__annotations__ if hasattr(cls, name)}
        own = set(cls.__dict__)
        options = {"frozen": frozen, "slots": slots, "weakref_slot": False, "eq": eq, "repr": repr}
        rest = {"init": True, "order": False, "unsafe_hash": False, "match_args": True, "kw_only": False}
        late = (_FIELDS, _SPECS, "__match_args__", *["__repr__"] * repr, *["__eq__"] * eq)
        members = {_PARAMS: SimpleNamespace(**options, **rest), "__replace__": replace}
        members |= {name: _Late(given) for name in late} | {"__init__": _LateInitialiser(given)}
        if frozen:
            members |= {"__setattr__": _assign, "__delattr__": _delete}
        if frozen and slots:
            members |= {"__getstate__": _state, "__setstate__": _restore}
        if eq:
            members["__hash__"] = _Late(given) if frozen else None
            if "__eq__" in own and cls.__dict__.get("__hash__", MISSING) is None:
                own.remove("__hash__")  # Python gave it, as the class says what it equals
        members = {name: members[name] for name in members.keys() - own}
        return _with_slots(cls, members) if slots else _with_members(cls, given, members)

    def field(
        *,
        default=MISSING,
        default_factory=MISSING,
        repr=True,  # noqa: A002 - as there
        compare=True,
        metadata=None,
        kw_only=MISSING,
    ):
        """Say more of a field, as `dataclasses.field` does."""
        if default is not MISSING and default_factory is not MISSING:
            raise ValueError("cannot specify both default and default_factory")
        return _Given(
            default=default,
            default_factory=default_factory,
            repr=repr,
            compare=compare,
            metadata=metadata or {},
            kw_only=kw_only,
        )

    def fields(value):
        """Return what there is to know of the fields of a class, or of a value's class, whoever made it."""
        made = next((cls for cls in getattr(value, "__mro__", type(value).__mro__) if _PARAMS in cls.__dict__), type)
        if _SPECS in made.__dict__:
            return tuple(getattr(made, _SPECS).values())
        import dataclasses

        return dataclasses.fields(value)

    def is_dataclass(value):
        return hasattr(value, _PARAMS)

    def replace(obj, /, **changes):
        """Return another value of the same class in which some fields have other values."""
        kept = {each.name: getattr(obj, each.name) for each in fields(obj) if each.init and each.name not in changes}
        return type(obj)(**kept, **changes)


class _Given(SimpleNamespace):
    """What a class says of a field."""


class _Spec:
    """What is to be known of a field for making values."""

    __slots__ = ("compare", "default", "default_factory", "kw_only", "metadata", "name", "type")
    init = True
    """Of every field of ours; one of the library's may have another."""

    def __init__(self, name: str, kind: str, value: Any) -> None:
        self.name, self.type, self.default, self.default_factory = name, kind, value, MISSING
        self.compare = True
        self.metadata: Mapping[str, Any] = {}
        self.kw_only = False
        if _is_field(value):
            self.default, self.default_factory = _present(value.default), _present(value.default_factory)
            self.metadata, self.compare = value.metadata, value.compare
            self.kw_only = _present(value.kw_only) is True
        if type(self.default).__hash__ is None:
            raise ValueError(f"mutable default {type(self.default)} for field {name} is not allowed")

    @property
    def is_preset(self) -> bool:
        return self.default is not MISSING or self.default_factory is not MISSING


def _is_field(value: Any) -> bool:
    kind = type(value)
    return kind is _Given or (kind.__module__, kind.__name__) == ("dataclasses", "Field")


def _present(value: object) -> object:
    """Return a value, `MISSING` where it is the library's word for that there is none."""
    return MISSING if type(value).__name__ == "_MISSING_TYPE" else value


def _refuse(cls: type, *, frozen: bool) -> None:
    bases = [base.__dict__[_PARAMS].frozen for base in cls.__mro__ if _PARAMS in base.__dict__]
    if bases and any(bases) != frozen:
        kinds = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
        raise TypeError("cannot inherit {} dataclass from a {} one".format(*kinds))
    for name in ("__setattr__", "__delattr__"):
        if frozen and name in cls.__dict__:
            raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
    for word in ("InitVar", "KW_ONLY"):
        if any(word in kind for kind in cls.__annotations__.values()):
            raise TypeError(f"{cls.__name__} has {word}, which only dataclasses.dataclass supports")


def _with_slots(cls: type, more: Mapping[str, Any]) -> type:
    """Return the class anew with more members, as a class has its slots from its beginning."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited: set[str] = set()
    for base in cls.__mro__[1:]:
        slots = base.__dict__.get("__slots__", ())
        inherited.update([slots] if isinstance(slots, str) else slots)
    names = [name for name, kind in cls.__annotations__.items() if not _CLASS_VARIABLE.match(kind)]
    left_out = {"__dict__", "__weakref__", *names}
    members = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    members["__slots__"] = tuple(name for name in names if name not in inherited)
    return type(cls)(cls.__name__, cls.__bases__, {**members, **more, "__qualname__": cls.__qualname__})


def _with_members(cls: Any, given: Mapping[str, Any], more: Mapping[str, Any]) -> type:
    """Return the class itself with more members, and with the defaults that fields give."""
    for name, value in given.items():
        if cls.__dict__.get(name) is value and _is_field(value):
            default = _present(value.default)
            delattr(cls, name) if default is MISSING else setattr(cls, name, default)
    for name, member in more.items():
        setattr(cls, name, member)
        if isinstance(member, _Late):
            member.__set_name__(cls, name)
    return abc.update_abstractmethods(cls)


class _Late:
    """A member of a dataclass until it is first asked for, when it is made."""

    __slots__ = ("_cls", "_given", "_name")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls, name = self._cls, self._name
        with _making:
            if cls.__dict__[name] is self:
                setattr(cls, name, _MAKERS[name](cls, self._given))
        member = cls.__dict__[name]
        return member.__get__(instance, owner) if hasattr(member, "__get__") else member


class _LateInitialiser(_Late):
    """The initialiser, which fills the first values."""

    __slots__ = ("_filled",)

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self._filled = 0

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._filled += 1
        if instance is None or self._filled > _FILLED:
            return super().__get__(instance, owner)
        return partial(self._fill, instance)

    def _fill(self, value: Any, /, *arguments: Any, **named: Any) -> Any:
        cls = self._cls
        specs: Mapping[str, _Spec] = getattr(cls, _SPECS)
        given = dict(zip(getattr(cls, "__match_args__"), arguments, strict=False)) | named  # noqa: B009 - made late
        needed = {name for name, each in specs.items() if not each.is_preset}
        if len(given) < len(arguments) + len(named) or not needed <= given.keys() <= specs.keys():
            return super().__get__(value)(*arguments, **named)  # which says what is wrong
        params = cls.__dict__[_PARAMS]
        assign = object.__setattr__ if params.frozen else setattr
        for name, each in specs.items():
            if name in given:
                assign(value, name, given[name])
            elif each.default_factory is not MISSING:
                assign(value, name, each.default_factory())
            else:
                assign(value, name, each.default)
        return value.__post_init__() if hasattr(cls, "__post_init__") else None


def _specs(cls: type, given: Mapping[str, Any]) -> dict[str, _Spec]:
    """Return the fields of a class by their names, those of its bases first."""
    known: dict[str, _Spec] = {}
    for base in cls.__mro__[:0:-1]:
        known |= getattr(base, _SPECS, {})
    for name, kind in cls.__annotations__.items():
        if not _CLASS_VARIABLE.match(kind):
            known[name] = _Spec(name, kind, given.get(name, MISSING))
    placed = [each.is_preset for each in known.values() if not each.kw_only]
    if placed != sorted(placed):
        raise TypeError(f"{cls.__qualname__}: non-default argument follows default argument")
    return known


def _places(cls: type, _: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, each in getattr(cls, _SPECS).items() if not each.kw_only)


def _compared(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of the fields by which two values are compared."""
    names = [name for name, each in getattr(cls, _SPECS).items() if each.compare]
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


def _equality(cls: type, _: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    values = _compared(cls)
    return lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented


def _hasher(cls: type, _: Mapping[str, Any]) -> Callable[[Any], int]:
    values = _compared(cls)
    return lambda self: hash(values(self))


def _described(cls: type, given: Mapping[str, Any]) -> Any:
    """Return the fields as the library has them."""
    known: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        known |= getattr(base, _FIELDS, {})
    own = {name: _of_library(value) if type(value) is _Given else value for name, value in given.items()}
    return getattr(_model(cls, known, {**own, "__annotations__": cls.__annotations__}, has_repr=False), _FIELDS)


def _of_library(given: _Given) -> Any:
    import dataclasses

    return dataclasses.field(**{name: value for name, value in vars(given).items() if value is not MISSING})


def _shown(cls: type, _: Mapping[str, Any]) -> Any:
    return vars(_model(cls, getattr(cls, _FIELDS), {}, has_repr=True))["__repr__"]


def _model(cls: type, known: Mapping[str, Any], own: Mapping[str, Any], *, has_repr: bool) -> type:
    """Return a class with the fields of another that the library has made."""
    import dataclasses

    base = type("Base", (), {_FIELDS: known, _PARAMS: SimpleNamespace(frozen=False)})
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__name__}
    decorate: Callable[[type], type] = dataclasses.dataclass(init=False, repr=has_repr, eq=False)
    return decorate(type(cls.__name__, (base,), {**own, **names}))


class _FromFactory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _FromFactory()


def _initialiser(cls: type, _: Mapping[str, Any]) -> Callable[..., None]:
    """Compile `__init__`, for which the library would compile two functions more where the class is frozen."""
    params, known = cls.__dict__[_PARAMS], list[_Spec](getattr(cls, _SPECS).values())
    me = "__dataclass_self__" if any(each.name == "self" for each in known) else "self"
    names: dict[str, Any] = {"_set_": object.__setattr__, "_FACTORY_": _FACTORY}
    parameters, lines = [me], ["pass"]
    for each in known:
        name, default = each.name, f"_default_{each.name}_"
        names[default], value = each.default, name
        if each.default_factory is not MISSING:
            names[default], value = each.default_factory, f"{default}() if {name} is _FACTORY_ else {name}"
        lines.append(f"_set_({me}, {name!r}, {value})" if params.frozen else f"{me}.{name} = {value}")
    asked = sorted(known, key=lambda each: each.kw_only)
    for each in asked:
        parameters += ["*"] if each.kw_only and "*" not in parameters else []
        preset = f"={'_FACTORY_' if each.default_factory is not MISSING else f'_default_{each.name}_'}"
        parameters.append(each.name + preset * each.is_preset)
    if hasattr(cls, "__post_init__"):
        lines.append(f"{me}.__post_init__()")
    text = f" def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines) + "\n return __init__"
    space: dict[str, Any] = {}
    exec(f"def make({', '.join(names)}):\n{text}", getattr(sys.modules.get(cls.__module__), "__dict__", {}), space)  # noqa: S102 - names of fields
    made: Callable[..., None] = space["make"](**names)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in asked} | {"return": None}
    return made


_MAKERS: dict[str, Callable[[type, Mapping[str, Any]], Any]] = {
    _SPECS: _specs,
    "__init__": _initialiser,
    "__match_args__": _places,
    "__eq__": _equality,
    "__hash__": _hasher,
    "__repr__": _shown,
    _FIELDS: _described,
}


def _refuse_change(value: object, name: str, act: str) -> None:
    # A class that derives from one that is frozen, and is no dataclass, has attributes of its own.
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
