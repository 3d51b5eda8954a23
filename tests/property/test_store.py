"""Whatever is written and deleted in whatever order, the SQLite store answers as the reference store does."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests import postgres
from tests.reference_store.store import MemoryStore

from commonplace.store.store import Store
from commonplace.types import KINDS, Chunk, FileStamp, Filter, Kind, NewPassage, Owner, OwnerWrite

NAMES = ("default", "other", "Ünï\ue000")
names = st.sampled_from(NAMES)
ids = st.sampled_from(["a", "b", "c", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
tags = st.lists(st.sampled_from(["t", "u", "v\x01w"]), max_size=3).map(tuple)
paths = st.sampled_from(["", "", "src/a.py", "src/deep/b.py", "docs/a.md", "a.py"])
globs = st.sampled_from(["*.py", "src/*.py", "src/**", "docs/", "!a.py", "**/a.*"])
types = st.sampled_from(["", "code", "test"])
phases = st.sampled_from(["", "construction", "inception"])
stamps = st.builds(FileStamp, st.sampled_from(["ab" * 32, "x"]), st.integers(0, 9), st.integers(0, 9), texts)

owners = st.builds(
    Owner,
    id=ids,
    kind=st.sampled_from(KINDS),
    title=texts,
    summary=texts,
    tags=tags,
    type=types,
    phase=phases,
    references=tags,
    path=paths,
    session=st.sampled_from(["", "s", "t"]),
    position=st.integers(-2, 4),
    at=st.none() | st.floats(allow_nan=False),
    stamp=st.none() | stamps,
)
passages = st.builds(
    NewPassage,
    id=ids,
    chunk=st.builds(Chunk, texts, st.integers(1, 9), st.integers(1, 9), texts),
    token_ids=st.binary(max_size=3).map(lambda half: 2 * half),
    vector=st.binary(min_size=4, max_size=4),
)
writes = st.lists(
    st.builds(OwnerWrite, owner=owners, passages=st.lists(passages, max_size=3).map(tuple)), min_size=0, max_size=4
)
filters = st.builds(
    Filter,
    kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple),
    types=st.lists(types, max_size=2).map(tuple),
    phases=st.lists(phases, max_size=2).map(tuple),
    tags=tags,
    paths=st.lists(globs, max_size=2).map(tuple),
)
numbers = st.lists(st.integers(-1, 30), max_size=8)
changes = st.integers(-1, 12)


class StoresAgree(RuleBasedStateMachine):
    """Do the same to both stores and compare every answer."""

    @initialize()
    def create(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.sqlite = self.made()
        self.memory = MemoryStore()

    @rule(name=names, batch=writes)
    def put(self, name: str, batch: list[OwnerWrite]) -> None:
        assert self.sqlite.put_owners(name, batch) == self.memory.put_owners(name, batch)

    @rule(name=names, doomed=numbers)
    def delete(self, name: str, doomed: list[int]) -> None:
        assert self.sqlite.delete_owners(name, doomed) == self.memory.delete_owners(name, doomed)

    @rule(name=names, restamped=st.lists(st.tuples(paths, texts, stamps), max_size=3))
    def restamp(self, name: str, restamped: list[tuple[str, str, FileStamp]]) -> None:
        self.sqlite.restamp_artifacts(name, restamped)
        self.memory.restamp_artifacts(name, restamped)

    @rule(name=names, asked=numbers)
    def read(self, name: str, asked: list[int]) -> None:
        assert self.sqlite.owners(name, asked) == self.memory.owners(name, asked)
        assert self.sqlite.passages(name, asked) == self.memory.passages(name, asked)
        assert self.sqlite.tokens(name, asked) == self.memory.tokens(name, asked)
        assert self.sqlite.entries(name, asked) == self.memory.entries(name, asked)
        assert self.sqlite.neighbours(name, asked) == self.memory.neighbours(name, asked)
        assert self.sqlite.tokens_beside(name, asked) == self.memory.tokens_beside(name, asked)

    @rule(name=names, kind=st.sampled_from(KINDS), asked=st.lists(ids), session=st.sampled_from(["", "s", "t"]))
    def place(self, name: str, kind: Kind, asked: list[str], session: str) -> None:
        assert self.sqlite.places(name, kind, asked) == self.memory.places(name, kind, asked)
        assert self.sqlite.owner_numbers(name, kind, asked) == self.memory.owner_numbers(name, kind, asked)
        assert self.sqlite.last_position(name, session) == self.memory.last_position(name, session)

    @rule(name=names, change=changes, upto=changes)
    def follow(self, name: str, change: int, upto: int) -> None:
        assert list(self.sqlite.entries_since(name, change, upto)) == list(
            self.memory.entries_since(name, change, upto)
        )
        assert self.sqlite.deleted_since(name, change, upto) == self.memory.deleted_since(name, change, upto)
        assert self.sqlite.tail(name, change) == self.memory.tail(name, change)
        assert self.sqlite.pending(name, change) == self.memory.pending(name, change)
        assert bool(self.sqlite.token(name, change)) == bool(self.memory.token(name, change))

    @rule(name=names, wanted=filters)
    def match(self, name: str, wanted: Filter) -> None:
        assert self.sqlite.matching_owners(name, wanted) == self.memory.matching_owners(name, wanted)
        assert self.sqlite.artifact_types(name) == self.memory.artifact_types(name)

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = self.opened()

    @rule()
    def back_up(self) -> None:
        copy_path = Path(self.directory.name) / "copy.db"
        self.memory.backup(copy_path)
        copy = Store.open(copy_path, create=False)
        try:
            assert copy.id == self.memory.id
            assert copy.check() == []
            assert copy.counts() == self.sqlite.counts()
            for name in NAMES:
                assert list(copy.entries_since(name, 0, 99)) == list(self.sqlite.entries_since(name, 0, 99))
                assert copy.deleted_since(name, 0, 99) == self.sqlite.deleted_since(name, 0, 99)
                assert [copy.token(name, n) for n in range(99)] == [self.memory.token(name, n) for n in range(99)]
        finally:
            copy.close()
            copy_path.unlink()

    @invariant()
    def same_whole(self) -> None:
        if not hasattr(self, "sqlite"):
            return
        assert self.sqlite.change() == self.memory.change()
        assert self.sqlite.namespaces() == self.memory.namespaces()
        assert self.sqlite.counts() == self.memory.counts()
        for name in self.memory.namespaces():
            assert self.sqlite.counts(name) == self.memory.counts(name)
            assert self.sqlite.artifacts(name) == self.memory.artifacts(name)
        assert self.sqlite.check() == []

    def made(self) -> Store:
        return Store.create(self.sqlite_path)

    def opened(self) -> Store:
        return Store.open(self.sqlite_path, create=False)

    @property
    def sqlite_path(self) -> Path:
        return Path(self.directory.name) / "store.db"

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            self.directory.cleanup()


class PostgresAgrees(StoresAgree):
    """The same of a store in PostgreSQL."""

    def made(self) -> Store:
        self.dsn = postgres.new_database()
        return self.opened()

    def opened(self) -> Store:
        return Store.open_postgres(self.dsn, create=False)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "dsn"):
            postgres.drop(self.dsn)


TestPostgresAgrees = PostgresAgrees.TestCase
TestPostgresAgrees.settings = settings(
    max_examples=8, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestStoresAgree = StoresAgree.TestCase
TestStoresAgree.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
