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
_SPARED_DEAD = 1_000
"""Up to this number of deleted passages an index is never rebuilt."""


@dataclass(frozen=True)
class Generation:
    """One immutable state of the index.

    Attributes:
        heads: by namespace, up to which change it holds them; a store that has another token there is not the store it
            was made from.
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
        """Return up to which change it holds a namespace."""
        return self.heads.get(namespace, Head())

    @property
    def is_wasteful(self) -> bool:
        """True when so much of it is deleted that a rebuild pays."""
        return self.dead > max(_SPARED_DEAD, self.documents)

    def in_use(self) -> AbstractContextManager[None]:
        """Check that it can still be read, and keep it so for the length of a `with` block; that costs microseconds."""
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
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._is_closed = False
        self._reading: dict[int, Generation] = {}
        self._process = os.getpid()

    def follow(self, embedding: Embedding) -> None:
        """Expect vectors of this embedder from now on: the store's, which may be changed while the index is open."""
        with self._opening:
            if self._empty.embedding != embedding:
                self._empty = replace(self._empty, embedding=embedding)
                self._generation, self._seen = None, ()

    def close(self) -> None:
        """Let go of the current generation; calling twice is harmless. Its files close with the last search in it."""
        if self._process == os.getpid():  # a forked child leaves all to its parent, whose threads may hold the lock
            with self._opening:
                self._generation, self._is_closed = None, True

    def reader(self) -> Generation:
        """Return the current generation, to see what it holds; costs one `stat` while no other was published.

        Raises:
            StoreError: the index is closed, or its files may be whole and cannot be read.
        """
        refuse_forked(self._process, self._directory)
        with self._opening:
            if self._is_closed:
                raise StoreError(f"the index {self._directory} is closed", remedy="open the store again")
            for _ in range(_ATTEMPTS):
                seen = _state_of(self._directory, [CURRENT])
                if self._generation is not None and seen == self._seen:
                    break
                # Opening may fail only because a newer generation replaced this one meanwhile: look again.
                self._generation, self._seen = self._open(), seen
            assert self._generation is not None
            return self._generation

    @contextmanager
    def reading(self) -> Iterator[Generation]:
        """Give the current generation to search in, and keep its files for the length of a `with` block.

        Blocks may be nested: those of a thread have the outermost one's generation.

        Raises:
            IndexFaultError: a file was damaged; `condemn` the generation.
            StoreError: the index is closed, or its files may be whole and cannot be read.
        """
        thread = threading.get_ident()
        if thread in self._reading:
            yield self._reading[thread]
            return
        generation = self.reader()
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(generation.in_use())
                    break
                except IndexFaultError:
                    # A deletion removes older ones, and may have run in between.
                    tried, generation = generation, self.reader()
                    if generation is tried:
                        raise
            self._reading[thread] = generation
            held.callback(self._reading.pop, thread)
            yield generation

    def condemn(self, fault: str, generation: Generation | None = None) -> None:
        """Stop using a generation that failed while it was read; `reader` reports the fault until another is published.

        Args:
            generation: the one that failed; nothing happens where it is no longer in use. None is the one in use.
        """
        with self._opening:
            if generation is None or generation is self._generation:
                # Its own signature stays the one seen: what was published since then is looked at.
                self._generation = _nothing(fault)

    def verify(self) -> list[str]:
        """Compare every file with its checksum; return the faults, empty when all is well.

        Raises:
            StoreError: a file may be whole and cannot be read.
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

        The caller has claimed the index. A passage that is already held is replaced, one that is deleted and given as
        an entry is not added. Readers see either all of it or nothing.

        Args:
            heads: by namespace, up to which change it is held then; of one that is not named, nothing is.
            rebuild: begin with nothing instead of the current generation.
            purge: leave nothing of a deleted passage in any file, of what was deleted before either.
            progress: called now and then with the number of passages added.
            again: gives a passage that is held; a purge asks it for those with a word whose key another word had too.

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
        """Empty and remove what is left of earlier generations; return the names of those that are read at this moment.

        The caller has claimed the index. A process that rests loses what it has open, and opens the current one.
        """
        from commonplace.index.writer import remove_older

        return remove_older(self._directory)

    def _open(self) -> Generation:
        try:
            current = self._read_manifest()
            directory = generation_path(self._directory, current.generation)
            # Another index of this process may have it open: then both read the same files.
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
            return _nothing(str(fault))
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
        found = [(directory / name).stat() for name in names]
    except OSError:
        return ()
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)


def _nothing(fault: str) -> Generation:
    empty = Manifest("", Embedding("", "", 0))
    dense = ChunkedDenseIndex(Path(), empty)
    return Generation({}, PackedLexicalIndex(empty, dense), dense, fault)
