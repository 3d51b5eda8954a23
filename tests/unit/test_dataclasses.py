"""Our dataclasses beside those of the library: one text, made into classes by both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from commonplace.dataclasses import dataclass, fields, replace

TEXT = '''
from __future__ import annotations
from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar, Generic, TypeVar
T = TypeVar("T")

@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing."""

@dataclass(frozen=True, slots=True)
class Point:
    """A point."""
    kind: ClassVar[str] = "point"
    x: int
    y: float = 2.0
    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")
    @property
    def total(self) -> float:
        return self.x + self.y

@dataclass(frozen=True, slots=True)
class Tagged(Point):
    """A point that is named, whose secret is not shown."""
    y: float = 3.0
    tags: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="s", repr=False)
    late: int = field(init=False, default=7)
    only: int = field(kw_only=True, default=1)

@dataclass(frozen=True, slots=True)
class Base(ABC):
    """An item with an option."""
    place: str
    option: tuple[str, ...] = field(default=(), kw_only=True)
    @abstractmethod
    def act(self) -> int: ...

@dataclass(frozen=True, slots=True)
class Item(Base):
    """One that acts."""
    record: int
    def act(self) -> int:
        return 1

@dataclass(slots=True)
class Counter(Generic[T]):
    """One that changes."""
    seen: dict[str, int] = field(default_factory=dict)
    last: T | None = None

@dataclass
class Open:
    """One that takes other attributes too."""
    name: str
    values: list[int] = field(default_factory=list)
    made: int = field(init=False, repr=False, compare=False)

@dataclass(frozen=True, eq=False)
class Itself:
    """One that is equal to itself alone."""
    a: int = 1

@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """One that says for itself what it is, and what it equals."""
    a: int
    b: int = field(default=0, compare=False)
    def __repr__(self) -> str:
        return "Secret"

@dataclass(frozen=True, slots=True, weakref_slot=True)
class Watched:
    """One that may be watched."""
    a: int
'''
VALUES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "Empty": [((), {})],
    "Point": [((1,), {}), ((1, 2.0), {}), ((1,), {"y": 5.0})],
    "Tagged": [((1,), {}), ((1, 3.0, ["a"]), {}), ((1,), {"only": 4, "secret": "t"})],
    "Item": [(("p", 1), {}), (("p", 1), {"option": ("a",)}), (("p",), {"record": 2})],
    "Counter": [((), {}), (({"a": 1},), {"last": 3})],
    "Open": [(("n",), {}), (("n", [1]), {}), ((), {"name": "n"})],
    "Itself": [((), {}), ((2,), {})],
    "Secret": [((1,), {}), ((1, 2), {}), ((2,), {})],
    "Watched": [((1,), {}), ((2,), {})],
}


def classes(name: str, decorator: Any) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    module.__dict__["dataclass"] = decorator
    exec(TEXT, module.__dict__)
    return module


OURS, THEIRS = classes("ours", dataclass), classes("theirs", dataclasses.dataclass)


def made(of: ModuleType, name: str) -> list[Any]:
    return [getattr(of, name)(*args, **named) for args, named in VALUES[name]]


@pytest.mark.parametrize("name", [*VALUES, "Base"])
def test_a_class_is_described_as_one_of_the_library(name: str) -> None:
    ours, theirs = getattr(OURS, name), getattr(THEIRS, name)
    assert repr(inspect.signature(ours)) == repr(inspect.signature(theirs))
    for attribute in ("__match_args__", "__doc__", "__qualname__", "__slots__"):
        assert getattr(ours, attribute, None) == getattr(theirs, attribute, None)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    described = [[(each.name, each.type, each.default, each.init) for each in fields(one)] for one in (ours, theirs)]
    assert described[0] == described[1]


@pytest.mark.parametrize("name", VALUES)
def test_a_value_does_what_one_of_the_library_does(name: str) -> None:
    def behaviour(of: ModuleType) -> object:
        values, others = made(of, name), made(of, name)
        return SimpleNamespace(
            shown=[repr(value) for value in values],
            equal=[[value == other for other in [*others, 1]] for value in values],
            # The hash of one that equals itself alone is its place.
            hashed=[value.__hash__ and (hash(value) if name != "Itself" else 0) for value in values],
            dicts=[getattr(value, "__dict__", None) for value in values],
        )

    assert behaviour(OURS) == behaviour(THEIRS)


@pytest.mark.parametrize("name", sorted({*VALUES} - {"Open", "Itself"}))
def test_a_value_is_copied_and_pickled(name: str) -> None:
    for value in made(OURS, name):
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), replace(value)):
            assert again is not value
            assert again == value
            assert repr(again) == repr(value)
    assert [dataclasses.asdict(each) for each in made(OURS, name)] == [
        dataclasses.asdict(each) for each in made(THEIRS, name)
    ]


def test_a_frozen_value_does_not_change() -> None:
    (value, *_) = made(OURS, "Point")
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        value.x = 2
    with pytest.raises(AttributeError, match="'x'"):
        del value.x
    with pytest.raises(ValueError, match="x"):
        replace(value, x=-1)
    assert (value.x, value.total, OURS.Point.kind) == (1, 3.0, "point")


def test_fresh_defaults_are_made_for_each_value() -> None:
    one, other = OURS.Counter(), OURS.Counter()
    one.seen["a"] = 1
    one.last = 2
    assert (other.seen, other.last) == ({}, None)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        OURS.Open()


def test_a_value_is_taken_apart_by_a_pattern_before_and_after_the_first() -> None:
    fresh = classes("fresh", dataclass)
    match fresh.Point(4):
        case fresh.Point(x, y):
            assert (x, y) == (4, 2.0)
        case _:
            pytest.fail("no match")
    assert weakref.ref(watched := fresh.Watched(1))() is watched


def test_a_class_of_the_library_derives_from_one_of_ours() -> None:
    derived = dataclasses.make_dataclass("Derived", [("z", int)], bases=(OURS.Item,), frozen=True)
    assert repr(derived("p", 1, 2)) == "Derived(place='p', option=(), record=1, z=2)"


def test_methods_are_made_when_they_are_asked_for() -> None:
    fresh = classes("fresh", dataclass)
    assert type(vars(fresh.Tagged)["__init__"]).__name__ == "_Late"
    fresh.Tagged(1)
    assert inspect.isfunction(vars(fresh.Tagged)["__init__"])
    assert inspect.isfunction(vars(fresh.Tagged)["__eq__"])
