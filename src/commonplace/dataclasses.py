"""Dataclasses that are cheap to define: the library makes their methods when they are first used.

`dataclasses.dataclass` compiles six functions for each class, used or not: more than half of the time in which a
command imports some 200 classes, of which it makes 80. What is wrong with a field shows at the first use. Annotations
are strings, as `from __future__ import annotations` leaves them. Options that are not listed are refused.
"""

from __future__ import annotations

import abc
import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

_FIELDS, _PARAMS = "__dataclass_fields__", "__dataclass_params__"
_NO_FIELD = re.compile(r"(\w+\s*\.\s*)?(ClassVar|KW_ONLY)\b")
# Of what the library is told to make, each alone; all else is made with the fields.
_ALONE = {"__repr__": "repr", "__eq__": "eq", "__hash__": "unsafe_hash"}
_making = RLock()

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True, weakref_slot=False):  # noqa: A002 - as there
        """Make a dataclass of a class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, repr=repr, weakref_slot=weakref_slot)
        _refuse(cls, frozen=frozen, weakref_only=weakref_slot and not slots)
        given = {name: getattr(cls, name) for name in cls.__annotations__ if hasattr(cls, name)}
        if slots:
            cls = _with_slots(cls, weakref_slot)
        for name, value in given.items():
            if cls.__dict__.get(name) is value and isinstance(value, Field):
                delattr(cls, name) if value.default is MISSING else setattr(cls, name, value.default)
        own = dict(cls.__dict__)
        options = {"frozen": frozen, "slots": slots, "weakref_slot": weakref_slot, "eq": eq, "repr": repr}
        rest = {"init": True, "order": False, "unsafe_hash": False, "match_args": True, "kw_only": False}
        late = (_FIELDS, "__init__", "__match_args__", *["__repr__"] * repr, *["__eq__"] * eq)
        members = {_PARAMS: SimpleNamespace(**options, **rest), "__replace__": replace}
        members |= {name: _Late(cls, name, given) for name in late} | (_guards(cls) if frozen else {})
        if frozen and slots:
            members |= {"__getstate__": _state, "__setstate__": _restore}
        if eq:
            members["__hash__"] = _Late(cls, "__hash__", given) if frozen else None
            if "__eq__" in own and own.get("__hash__", MISSING) is None:
                del own["__hash__"]  # Python gave it, as the class says what it equals
        for name in members.keys() - own.keys():
            setattr(cls, name, members[name])
        return abc.update_abstractmethods(cls)


def _refuse(cls: type, *, frozen: bool, weakref_only: bool) -> None:
    if weakref_only:
        raise TypeError("weakref_slot is True but slots is False")
    bases = [base.__dict__[_PARAMS].frozen for base in cls.__mro__ if _PARAMS in base.__dict__]
    if bases and any(bases) != frozen:
        kinds = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
        raise TypeError("cannot inherit {} dataclass from a {} one".format(*kinds))
    for name in ("__setattr__", "__delattr__"):
        if frozen and name in cls.__dict__:
            raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
    if any("InitVar" in kind for kind in cls.__annotations__.values()):
        raise TypeError(f"{cls.__name__} has an InitVar, which only dataclasses.dataclass supports")


def _with_slots(cls: type, is_weakly_referable: bool) -> type:
    """Return the class anew, as a class has its slots from its beginning."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited: set[str] = set()
    for base in cls.__mro__[1:]:
        slots = base.__dict__.get("__slots__", ())
        inherited.update([slots] if isinstance(slots, str) else slots)
    names = [name for name, kind in cls.__annotations__.items() if not _NO_FIELD.match(kind)]
    left_out = {"__dict__", "__weakref__", *names}
    members = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    members["__slots__"] = tuple(n for n in [*names, *["__weakref__"] * is_weakly_referable] if n not in inherited)
    return type(cls)(cls.__name__, cls.__bases__, {**members, "__qualname__": cls.__qualname__})


class _Late:
    """A member of a dataclass until it is first asked for, when the library makes it."""

    __slots__ = ("_cls", "_given", "_name")

    def __init__(self, cls: type, name: str, given: Mapping[str, Any]) -> None:
        self._cls, self._name, self._given = cls, name, given

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls, name = self._cls, self._name
        with _making:
            if cls.__dict__[name] is self and name in _ALONE:
                setattr(cls, name, vars(_model(cls, getattr(cls, _FIELDS), {}, **{_ALONE[name]: True}))[name])
            elif cls.__dict__[name] is self:
                _describe(cls, self._given)
        member = cls.__dict__[name]
        return member.__get__(instance, owner) if hasattr(member, "__get__") else member


def _describe(cls: type, given: Mapping[str, Any]) -> None:
    """Give a class its fields, and what makes a value of them."""
    known: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        known |= getattr(base, _FIELDS, {})
    model = _model(cls, known, {**given, "__annotations__": cls.__annotations__})
    made = {"__init__": _initialiser(cls, model), "__match_args__": vars(model)["__match_args__"]}
    # The fields last: what has them is described.
    for name, member in {**made, _FIELDS: getattr(model, _FIELDS)}.items():
        if isinstance(cls.__dict__.get(name), _Late):
            setattr(cls, name, member)


def _model(cls: type, known: Mapping[str, Field[Any]], own: Mapping[str, Any], **made: bool) -> type:
    """Return a class with the fields of another, in which the library makes what it is told to."""
    base = type("Base", (), {_FIELDS: known, _PARAMS: SimpleNamespace(frozen=False)})
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__name__}
    decorate: Callable[[type], type] = dataclasses.dataclass(**({"init": False, "repr": False, "eq": False} | made))
    return decorate(type(cls.__name__, (base,), {**own, **names}))


class _FromFactory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _FromFactory()


def _initialiser(cls: type, model: Any) -> Callable[..., None]:
    """Make `__init__`, for which the library would compile two functions more where the class is frozen."""
    params, known = cls.__dict__[_PARAMS], fields(model)
    me = "__dataclass_self__" if any(each.name == "self" for each in known) else "self"
    names: dict[str, Any] = {"_set_": object.__setattr__, "_FACTORY_": _FACTORY}
    parameters, lines = [me], ["pass"]
    for each in known:
        name, default = each.name, f"_default_{each.name}_"
        names[default], value = each.default, name if each.init else default
        if each.default_factory is not MISSING:
            names[default] = each.default_factory
            value = f"{default}() if {name} is _FACTORY_ else {name}" if each.init else f"{default}()"
        elif not each.init and (each.default is MISSING or not params.slots):
            continue  # `__post_init__` gives it a value, or the class has it
        lines.append(f"_set_({me}, {name!r}, {value})" if params.frozen else f"{me}.{name} = {value}")
    asked = sorted((each for each in known if each.init), key=lambda each: bool(each.kw_only))
    for each in asked:
        parameters += ["*"] if each.kw_only and "*" not in parameters else []
        preset = f"={'_FACTORY_' if each.default is MISSING else f'_default_{each.name}_'}"
        has_default = (each.default, each.default_factory) != (MISSING, MISSING)
        parameters.append(each.name + preset * has_default)
    if hasattr(cls, "__post_init__"):
        lines.append(f"{me}.__post_init__()")
    text = f" def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines) + "\n return __init__"
    space: dict[str, Any] = {}
    try:
        exec(f"def make({', '.join(names)}):\n{text}", getattr(sys.modules.get(cls.__module__), "__dict__", {}), space)  # noqa: S102 - names of fields
    except SyntaxError as error:
        raise TypeError(f"{cls.__qualname__}: {error.msg}") from None  # a field without a default follows one with it
    made: Callable[..., None] = space["make"](**names)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in asked} | {"return": None}
    return made


def _guards(cls: type) -> dict[str, Callable[..., None]]:
    kind: Any = cls

    def refuse(self: object, name: str, act: str) -> None:
        if type(self) is cls or name in {each.name for each in fields(cls)}:
            raise FrozenInstanceError(f"cannot {act} field {name!r}")

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807 - becomes one
        refuse(self, name, "assign to")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807 - becomes one
        refuse(self, name, "delete")
        super(kind, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
