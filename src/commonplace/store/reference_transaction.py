"""One write transaction over a namespace of the in-memory store: copies that take the place of what they are of.

It knows namespaces and changes, no memory and no graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from commonplace.store.batches import change_is_over
from commonplace.store.reference_state import Change, Space, State
from commonplace.types import Embedding


class ReferenceTransaction:
    """The copies of a namespace, and of those that are written beside it, until its block ends.

    Attributes:
        is_over: its block has ended.
        is_written: something is different from what it was.
        is_counted: it is to take a number of the change sequence.
    """

    def __init__(self, state: State, namespace: str) -> None:
        self.is_over = False
        self.is_written = False
        self.is_counted = False
        self._operations = dict(state.operations)
        self._state = state
        self._namespace = namespace
        self._copies = {namespace: state.space(namespace).copy()}
        self._change = state.begin(self._copies[namespace])

    @property
    def change(self) -> Change:
        """The change under way.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise change_is_over()
        return self._change

    @property
    def operations(self) -> dict[float, int]:
        """The operations of all work on the store, by time: a copy, until the block ends.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise change_is_over()
        return self._operations

    @property
    def embedding(self) -> Embedding | None:
        """The stamp of the store's vectors."""
        return self._state.embedding

    @property
    def namespace(self) -> str:
        """The name of the namespace, whether it is there yet or not."""
        return self._namespace

    def has(self, namespace: str) -> bool:
        """Tell whether a namespace is there, or was made in this transaction."""
        return namespace in self._copies or namespace in self._state.spaces

    @contextmanager
    def inside(self, namespace: str) -> Iterator[Change]:
        """Go on in another namespace, which is made if need be, until the block ends."""
        change = self.change
        home: Space = change.space
        change.space = self._copies.setdefault(namespace, self._state.space(namespace).copy())
        try:
            yield change
        finally:
            change.space = home

    def mark(self) -> None:
        """Say that something was written that takes a number."""
        self.is_written = self.is_counted = True

    def finish(self) -> None:
        """Let what was written take its place, and the change its number."""
        if self.is_written:
            self._state.spaces.update(self._copies)
            self._state.operations = self._operations
        if self.is_counted:
            self._state.record(self._change)
