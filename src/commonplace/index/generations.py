"""The index on disk: immutable generations, one of which is current.

`index/current.json` names the generation in use. A writer builds the next one beside it, hard-linking unchanged files,
and replaces `current.json`; what a crash leaves behind is removed by the next writer. An unusable index is empty, with
a `fault` that says why, and can be rebuilt.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import IndexFaultError, StoreError
from commonplace.index.contract import DenseIndex, LexicalIndex
from commonplace.index.dense import ChunkedDenseIndex
from commonplace.index.files import (
    CURRENT,
    Manifest,
    OpenFiles,
    encode,
    generation_path,
    read_manifest,
    replace_file,
    unreadable,
)
from commonplace.index.lexical import PackedLexicalIndex
from commonplace.locks import FileLock, refuse_forked
from commonplace.types import Embedding, Head, IndexEntry

_ATTEMPTS = 10
_MIN_DEAD = 1_000
"""Up to this number of deleted passages an index is never rebuilt."""


@dataclass(frozen=True)
class Generation:
    """One immutable state of the index.

    Attributes:
        heads: by namespace, the change up to which it is held; a store with another token there is not the store that
            it was made from.
        fault: why the stored index could not be used, a clause that continues "the index …", or "".
        documents: number of passages that can be found.
        dead: number of passages deleted since the last rebuild, which statistics still count.
        files: what it reads from; None if it holds nothing.
    """

    heads: Mapping[str, Head]
    lexical: LexicalIndex
    dense: DenseIndex
    fault: str = ""
    documents: int = 0
    dead: int = 0
    files: OpenFiles | None = None

    def head(self, namespace: str) -> Head:
        """Return the change up to which it holds a namespace."""
        return self.heads.get(namespace, Head())

    @property
    def is_wasteful(self) -> bool:
        """True when so much of it is deleted that a rebuild pays."""
        return self.dead > max(_MIN_DEAD, self.documents)

    def in_use(self) -> AbstractContextManager[None]:
        """Check that it can still be read, and keep it so until the `with` block ends; this takes microseconds."""
        return nullcontext() if self.files is None else self.files.in_use()


class Index:
    """The index of one store. Safe for threads; any number of processes may read while one writes."""

    def __init__(self, directory: Path, *, store_id: str, embedding: Embedding) -> None:
        """Name an index; nothing is read or created yet."""
        self._directory = directory
        self._empty = Manifest(store_id, embedding)
        self._lock = FileLock(directory / "lock")
        self._opening = threading.Lock()
        self._generation: Generation | None = None
        self._seen_state: tuple[tuple[int, int, int], ...] = ()
        self._is_closed = False
        self._reading: dict[int, Generation] = {}
        self._process = os.getpid()

    def follow(self, embedding: Embedding) -> None:
        """Expect vectors of this embedder from now on: the store's embedder may change while the index is open."""
        with self._opening:
            if self._empty.embedding != embedding:
                self._empty = replace(self._empty, embedding=embedding)
                self._generation, self._seen_state = None, ()

    def close(self) -> None:
        """Release the current generation; calling twice is harmless. Its files close with the last search in it."""
        if self._process == os.getpid():  # a forked child leaves all to its parent, whose threads may hold the lock
            with self._opening:
                self._generation, self._is_closed = None, True

    def reader(self) -> Generation:
        """Return the current generation, to see what it holds; this takes one `stat` unless another was published.

        Raises:
            StoreError: the index is closed, or its files cannot be read, though they may be whole.
        """
        refuse_forked(self._process, self._directory)
        with self._opening:
            if self._is_closed:
                raise StoreError(f"the index {self._directory} is closed", remedy="open the store again")
            for _ in range(_ATTEMPTS):
                state = _state_of(self._directory, [CURRENT])
                if self._generation is not None and state == self._seen_state:
                    break
                # Opening may fail only because a newer generation replaced this one meanwhile: look again.
                self._generation, self._seen_state = self._open(), state
            assert self._generation is not None
            return self._generation

    @contextmanager
    def reading(self) -> Iterator[Generation]:
        """Yield the current generation to search in, and keep its files until the `with` block ends.

        Blocks may be nested: all blocks of a thread get the generation of the outermost one.

        Raises:
            IndexFaultError: a file was damaged; `condemn` the generation.
            StoreError: the index is closed, or its files cannot be read, though they may be whole.
        """
        thread = threading.get_ident()
        if thread in self._reading:
            yield self._reading[thread]
            return
        generation = self.reader()
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(generation.in_use())
                    break
                except IndexFaultError:
                    # A deletion, which removes older generations, may have run in between.
                    failed, generation = generation, self.reader()
                    if generation is failed:
                        raise
            self._reading[thread] = generation
            stack.callback(self._reading.pop, thread)
            yield generation

    def condemn(self, fault: str, generation: Generation | None = None) -> None:
        """Stop using a generation that failed while it was read; `reader` reports the fault until another is published.

        Args:
            generation: the one that failed; nothing happens if it is no longer in use. None is the one in use.
        """
        with self._opening:
            if generation is None or generation is self._generation:
                # `_seen_state` stays as it is, so that `reader` opens what was published since.
                self._generation = _empty_generation(fault)

    def verify(self) -> list[str]:
        """Compare every file with its checksum; return the faults, empty when all is well.

        Raises:
            StoreError: a file cannot be read, though it may be whole.
        """
        try:
            current = self._read_manifest()
            OpenFiles(generation_path(self._directory, current.generation), current.files, thorough=True)
        except IndexFaultError as fault:
            return [str(fault)]
        return []

    def claim(self, timeout_s: float) -> bool:
        """Become the only writer, waiting at most `timeout_s` seconds; return whether that succeeded.

        Raises:
            StoreError: the directory cannot be created, or that of the store is missing, which is never created.
        """
        try:
            self._directory.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise StoreError(
                f"the store at {self._directory.parent} was deleted while it was open", remedy="open it again"
            ) from error
        except OSError as error:
            raise StoreError(f"the index cannot be written: {error}") from error
        return self._lock.acquire(timeout_s)

    def release(self) -> None:
        """Let others write."""
        self._lock.release()

    def update(
        self,
        entries: Iterable[IndexEntry],
        deleted: Iterable[int],
        *,
        heads: Mapping[str, Head],
        rebuild: bool = False,
        purge: bool = False,
        progress: Callable[[int], None] = lambda _done: None,
        again: Callable[[str, int], Iterable[IndexEntry]] = lambda _namespace, _number: (),
    ) -> tuple[int, int]:
        """Publish a generation with these changes; return how many passages were added and how many deleted.

        The caller has claimed the index. A passage that is already held is replaced; one that is both deleted and given
        as an entry is not added. Readers see either all of it or nothing.

        Args:
            heads: by namespace, the change up to which it is held then; a namespace not named is not held.
            rebuild: begin with nothing instead of the current generation.
            purge: leave nothing of deleted passages in any file, including those deleted before.
            progress: called now and then with the number of passages added.
            again: reads a passage that is held; a purge calls it for those with a word whose key another word had too.

        Raises:
            IndexFaultError: the current generation cannot be built upon; rebuild.
            StoreError: the disk is full or the directory cannot be written.
        """
        # Most processes only read.
        from commonplace.index.writer import update

        try:
            base = self._empty if rebuild else self._read_manifest()
            return update(self._directory, base, entries, deleted, heads, purge=purge, progress=progress, again=again)
        except OSError as error:
            raise StoreError(f"the index cannot be written: {error}") from error

    def remove_older(self) -> list[str]:
        """Empty and remove what is left of earlier generations; return the names of those that are being read.

        The caller has claimed the index. An idle process loses what it has open, and opens the current generation.
        """
        from commonplace.index.writer import remove_older

        return remove_older(self._directory)

    def _open(self) -> Generation:
        try:
            current = self._read_manifest()
            directory = generation_path(self._directory, current.generation)
            # If another index of this process has it open, both read the same files.
            key = (os.getpid(), directory, encode(current), _state_of(directory, current.files))
            if (shared := _open_generations.get(key)) is not None:
                return shared
            files = OpenFiles(directory, current.files)
            with files.in_use():
                try:
                    dense = ChunkedDenseIndex(directory, current)
                except OSError as error:
                    raise unreadable(error.errno, f"{error.filename} cannot be read ({error.strerror})") from error
                dead = current.counted - current.documents
                lexical = PackedLexicalIndex(current, dense)
                generation = Generation(current.heads, lexical, dense, "", current.documents, dead, files)
                files.check()
        except IndexFaultError as fault:
            return _empty_generation(str(fault))
        if files.records != current.files:
            # A copy gave the files new times. Unless these are published, every process compares all checksums.
            with suppress(OSError, StoreError, IndexFaultError):
                if self._lock.acquire(0):
                    try:
                        if self._read_manifest() == current:
                            verified = replace(current, files=files.records)
                            replace_file(self._directory / CURRENT, encode(verified))
                    finally:
                        self._lock.release()
        return _open_generations.setdefault(key, generation)

    def _read_manifest(self) -> Manifest:
        try:
            return read_manifest(self._directory, store_id=self._empty.store_id, embedding=self._empty.embedding)
        except OSError as error:
            raise unreadable(error.errno, f"{CURRENT} cannot be read ({error.strerror})") from error


_open_generations: weakref.WeakValueDictionary[tuple[object, ...], Generation] = weakref.WeakValueDictionary()


def _state_of(directory: Path, names: Iterable[str]) -> tuple[tuple[int, int, int], ...]:
    """Return what changes when a file is damaged, replaced or emptied; () if one is missing."""
    try:
        stats = [(directory / name).stat() for name in names]
    except OSError:
        return ()
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _empty_generation(fault: str) -> Generation:
    empty = Manifest("", Embedding("", "", 0))
    dense = ChunkedDenseIndex(Path(), empty)
    return Generation({}, PackedLexicalIndex(empty, dense), dense, fault)
