"""Our dataclasses beside those of the library: one text, made into classes by both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pydoc
import sys
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any, get_type_hints

import pytest

from commonplace import Filter, Hit, Memory
from commonplace import dataclasses as late
from commonplace.dataclasses import dataclass, fields, replace

TEXT = '''
from __future__ import annotations
from abc import ABC, abstractmethod
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
    made: int = field(default=0, repr=False, compare=False)

@dataclass(frozen=True, eq=False)
class Itself:
    """One that is equal to itself alone."""
    a: int = 1

@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """One that says for itself what it is."""
    a: int
    b: int = field(default=0, compare=False)
    def __repr__(self) -> str:
        return "Secret"

@dataclass(frozen=True)
class Hashed:
    """One that says what it equals, and its hash."""
    a: int
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed)
    def __hash__(self) -> int:
        return 7

@dataclass(slots=True)
class Number:
    """One that changes, and says its hash alone."""
    a: int
    def __hash__(self) -> int:
        return 7

@dataclass(frozen=True)
class Unhashed:
    """One that says that it has no hash."""
    a: int
    __hash__ = None

@dataclass(frozen=True)
class Defaults:
    """One with defaults, which a class of the same kind takes over."""
    a: int = 1
    option: str = field(kw_only=True)

@dataclass(frozen=True)
class More(Defaults):
    """One that adds to them."""
    a: int
    b: int = 2
    me: str = field(default="me", kw_only=True)

@dataclass
class Given:
    """One that is made in a way of its own."""
    a: int
    b: int = 2
    def __init__(self, both: int) -> None:
        self.a = self.b = both

class Named(Defaults):
    """One that has attributes of its own."""

class Loud(Defaults):
    """One that adds to what its base makes."""
    made_times = 0
    def __init__(self, a: int) -> None:
        Loud.made_times += 1
        super().__init__(a + 1, option="o")
    def __repr__(self) -> str:
        return "Loud " + super().__repr__()
    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)
    def __hash__(self) -> int:
        return super().__hash__() + 1
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
    **{name: [((1,), {}), ((2,), {})] for name in ("Hashed", "Number", "Unhashed", "Given")},
    "Defaults": [((), {"option": "o"}), ((2,), {"option": "o"})],
    "More": [((), {"option": "o"}), ((2, 3), {"option": "o", "me": "s"})],
    "Named": [((), {"option": "o"}), ((2,), {"option": "o"})],
    "Loud": [((1,), {}), ((2,), {})],
}


def classes(name: str, decorator: Any, text: str = TEXT) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    module.__dict__.update(dataclass=decorator, field=late.field if decorator is dataclass else dataclasses.field)
    exec(text, module.__dict__)
    return module


OURS, THEIRS = classes("ours", dataclass), classes("theirs", dataclasses.dataclass)


WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Tagged", (), {}),
    ("Tagged", (1, 2.0, [], "s", 5), {}),
    ("Tagged", (1,), {"x": 2}),
    ("Tagged", (1,), {"none": 2}),
    ("Tagged", (-1,), {}),
    ("Defaults", (), {}),
    ("Empty", (1,), {}),
]


def compiled(name: str) -> ModuleType:
    """Return fresh classes of which one has its initialiser already."""
    fresh = classes("fresh", dataclass)
    assert inspect.isfunction(getattr(fresh, name).__init__)
    return fresh


def made(of: ModuleType, name: str) -> list[Any]:
    return [getattr(of, name)(*args, **named) for args, named in VALUES[name]]


@pytest.mark.parametrize("name", [*VALUES, "Base"])
def test_a_class_is_described_as_one_of_the_library(name: str) -> None:
    ours, theirs = getattr(OURS, name), getattr(THEIRS, name)
    assert repr(inspect.signature(ours)) == repr(inspect.signature(theirs))
    for attribute in ("__match_args__", "__doc__", "__qualname__", "__slots__"):
        assert getattr(ours, attribute, None) == getattr(theirs, attribute, None)
    for none in (None, object.__hash__):
        assert (ours.__hash__ is none) == (theirs.__hash__ is none)
    described = [
        [(each.name, each.type, each.default, each.init) for each in dataclasses.fields(one)] for one in (ours, theirs)
    ]
    assert described[0] == described[1]
    attributes = ("name", "type", "init", "kw_only", "metadata", "compare")
    known = [
        [[getattr(each, name) for name in attributes] for each in each]
        for each in (fields(ours), dataclasses.fields(theirs))
    ]
    assert known[0] == known[1]
    for each, its in zip(fields(ours), dataclasses.fields(theirs), strict=True):
        assert (each.default is late.MISSING) == (its.default is dataclasses.MISSING)
        assert (each.default_factory is late.MISSING) == (its.default_factory is dataclasses.MISSING)
    assert repr(get_type_hints(ours.__init__)) == repr(get_type_hints(theirs.__init__))
    params = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
    assert [getattr(ours.__dataclass_params__, each) for each in params] == [
        getattr(theirs.__dataclass_params__, each) for each in params
    ]


@pytest.mark.parametrize("name", [*VALUES, "Base"])
def test_help_on_a_class_begins_as_that_of_the_library(name: str) -> None:
    helped = [
        pydoc.plain(pydoc.render_doc(getattr(classes("fresh", kind), name)))
        for kind in (dataclass, dataclasses.dataclass)
    ]
    assert helped[0].splitlines()[:5] == helped[1].splitlines()[:5]
    assert "_Late" not in helped[0]


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

    assert behaviour(classes("fresh", dataclass)) == behaviour(compiled(name)) == behaviour(THEIRS)


@pytest.mark.parametrize(("name", "arguments", "named"), WRONG)
def test_what_a_class_does_not_take_is_refused_as_the_library_does(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    def refusal(of: ModuleType) -> tuple[type[Exception], str]:
        with pytest.raises((TypeError, ValueError)) as caught:
            getattr(of, name)(*arguments, **named)
        return caught.type, str(caught.value)

    assert refusal(classes("fresh", dataclass)) == refusal(compiled(name)) == refusal(THEIRS)


@pytest.mark.parametrize("name", sorted(set(VALUES) - {"Open", "Itself", "Given", "Loud"}))
def test_a_value_is_copied_and_pickled(name: str) -> None:
    for value in made(OURS, name):
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), replace(value)):
            assert again is not value
            assert again == value
            assert repr(again) == repr(value)
    assert [dataclasses.asdict(each) for each in made(OURS, name)] == [
        dataclasses.asdict(each) for each in made(THEIRS, name)
    ]


@pytest.mark.parametrize("name", ["Defaults", "More", "Named", "Open", "Itself"])
def test_a_value_is_changed_as_far_as_one_of_the_library(name: str) -> None:
    def change(of: ModuleType) -> list[object]:
        said: list[object] = []
        for act in ("value.made = 2", "del value.made", "value.a = 1", "del value.a", "value.new = 1", "del value.new"):
            value = made(of, name)[0]
            try:
                exec(act, {"value": value})
            except (AttributeError, TypeError) as error:
                said.append((type(error), str(error)))
            else:
                said.append(vars(value))
        return said

    assert change(OURS) == change(THEIRS)


def test_a_frozen_value_does_not_change() -> None:
    (value, *_) = made(OURS, "Point")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        value.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del value.x
    with pytest.raises(ValueError, match="x"):
        replace(value, x=-1)
    assert (value.x, value.total, OURS.Point.kind) == (1, 3.0, "point")


@pytest.mark.parametrize("use", [repr, hash, lambda value: value == value.twin])
def test_what_a_subclass_adds_to_happens_once_at_first_use(use: Any) -> None:
    def first(of: ModuleType) -> object:
        value = of.Loud(1)
        object.__setattr__(value, "twin", of.Loud(1))
        return use(value), of.Loud.made_times, value.a

    assert first(classes("fresh", dataclass)) == first(classes("fresh", dataclasses.dataclass))


@pytest.mark.parametrize("name", ["Point", "Defaults", "Counter"])
def test_a_value_is_replaced_as_later_libraries_do(name: str) -> None:
    value = made(OURS, name)[0]
    (changed, *_) = fields(value)
    again = value.__replace__(**{changed.name: 9})
    assert getattr(again, changed.name) == 9
    if sys.version_info >= (3, 13):
        assert copy.replace(value, **{changed.name: 9}) == again


def test_two_threads_ask_for_an_initialiser_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, seen, found = classes("fresh", dataclass), [], []
    make = late._compiled
    other = Thread(target=lambda: found.append(fresh.Point.__init__))

    def slowly(*args: Any) -> Any:
        seen.append(args)
        if len(seen) == 1:
            other.start()
            other.join(0.2)  # it waits: what one makes no other makes meanwhile
        return make(*args)

    monkeypatch.setattr(vars(fresh.Point)["__init__"], "_make", slowly)
    found.append(fresh.Point.__init__)
    other.join()
    assert len(seen) == 1
    assert found[0] is found[1]


def test_a_default_that_values_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):
        classes("refused", dataclass, "@dataclass\nclass A:\n    b: 'list' = []\nA()")


@pytest.mark.parametrize("kind", [Memory, Hit, Filter])
def test_a_class_of_the_engine_says_what_it_takes(kind: Any) -> None:
    taken = [each.name for each in sorted(fields(kind), key=lambda each: each.kw_only) if each.init]
    assert list(inspect.signature(kind).parameters) == taken
    assert f"{kind.__name__}({taken[0]}" in pydoc.plain(pydoc.render_doc(kind))
    assert set(taken) <= get_type_hints(kind).keys()


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


def test_a_class_of_the_library_derives_from_one_of_ours() -> None:
    derived = dataclasses.make_dataclass("Derived", [("z", int)], bases=(OURS.Item,), frozen=True)
    assert repr(derived("p", 1, 2)) == "Derived(place='p', option=(), record=1, z=2)"


def test_the_initialiser_is_compiled_for_a_class_of_which_there_are_many_values() -> None:
    fresh = classes("fresh", dataclass)
    assert [fresh.Tagged(each).x for each in range(late._FILLED)] == list(range(late._FILLED))
    assert not inspect.isfunction(vars(fresh.Tagged)["__init__"])
    assert fresh.Tagged(late._FILLED).x == late._FILLED
    assert inspect.isfunction(vars(fresh.Tagged)["__init__"])
