"""The calls of `engine.graph` by which a graph goes to Graphiti and comes from it. What they write is in `graph`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from commonplace.engine.graph_asking import GraphAsking
from commonplace.errors import ConfigError, NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.memories.intake import flag, place

if TYPE_CHECKING:
    from commonplace.graph.graphiti.delivering import Delivery
    from commonplace.graph.migrating import Document, Migration

MOST_BYTES: Final = 256 * 1024 * 1024
"""Of a document that is read: as values it takes some ten times as much memory."""


class GraphMigrating(GraphAsking):
    """The part of `Graph` that exchanges it with Graphiti, as a file or with an outside backend."""

    def export_graphiti(self, target: str | Path | TextIO) -> Migration:
        """Write the graph of this namespace as Graphiti's nodes and edges, past and merged ones too, from one state.

        What Graphiti has no field for stands under `commonplace` in their attributes, so that an import here brings
        everything back as it was.

        Args:
            target: a file that does not exist yet and is there only when it is complete, or a stream of text.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.exporting import new_file
        from commonplace.graph.migrating import write_graphiti
        from commonplace.graph.seeing import Seeing

        path = None if callable(getattr(target, "write", None)) else place("target", target)
        times = self._times(None)
        self._around.before()
        with self._around.snapshot():
            graph = self._around.ground(False).graph
            seeing = Seeing(graph, times)
            if path is None:
                assert not isinstance(target, str | Path)
                written = target.write
                return write_graphiti(graph, seeing, self._around.words_of, lambda some: written(some.decode()))
            path = path.expanduser().absolute()
            with new_file(path, self._around.directory) as write:
                return replace(write_graphiti(graph, seeing, self._around.words_of, write), path=path)

    def import_graphiti(self, path: str | Path, *, dry_run: bool = False) -> Migration:
        """Take in a document of Graphiti's nodes and edges, in one transaction, ids kept.

        What is here already under the same id stays as it is; a second import changes nothing. Types are kept as they
        are called there, also those that no setting names. Secrets are replaced by placeholders.

        Args:
            dry_run: check everything and count, but write nothing.

        Raises:
            ConfigError: a value is missing or wrong; the message and `path` say where. Nothing was written.
            NotFoundError: there is no such file.
            UsageError: it cannot be read, or is too large.
        """
        from commonplace.graph.ground import Texts
        from commonplace.graph.taking_in import clean, prepare, take_in

        file = place("path", path).expanduser().absolute()
        is_dry = flag("dry_run", dry_run)
        given = _document(file, self._around.now())
        self._around.before()
        try:
            document = clean(given)
            del given
            ground = self._around.ground(True)
            texts = Texts(ground.destination)
            if not is_dry:
                prepare(texts, document)
            try:
                made_by = ground.destination.embedder.stamp
                with ground.destination.store.change_memories(ground.namespace, made_by=made_by) as change:
                    done = take_in(
                        change.graph, ground, texts, document, lambda *each: bool(self._around.words_of(*each))
                    )
                    _go_on(is_dry)
            except _DryRun:
                return replace(done, path=file, is_dry_run=True)
        except ConfigError as error:
            raise _in_file(file, error) from error
        ground.destination.after_batch()
        self._around.after()
        return replace(done, path=file)

    def sync(self) -> Delivery:
        """Tell the outside backend all that waits for it, see `graph.backend`; where there is none, nothing does."""
        from commonplace.graph.graphiti.delivering import Delivery

        return Delivery("local")

    def close(self) -> None:
        """Give back what the graph holds, which is nothing where there is no outside backend."""


def refuse_unfit_graphiti(path: Path, now: float) -> None:
    """Refuse a document that an import would refuse, before a store is made for it.

    Raises:
        ConfigError: a value is missing or wrong.
        NotFoundError: there is no such file.
        UsageError: it cannot be read, or is too large.
    """
    _document(path.expanduser().absolute(), now)


def _document(file: Path, now: float) -> Document:
    from commonplace.graph.migrating import read_graphiti

    try:
        return read_graphiti(_read(file), now)
    except ConfigError as error:
        raise _in_file(file, error) from error


def _in_file(file: Path, error: ConfigError) -> ConfigError:
    return ConfigError(f"{file}: {error.args[0]}", path=error.path, remedy=error.remedy)


def _go_on(is_dry: bool) -> None:
    if is_dry:
        raise _DryRun


class _DryRun(Exception):  # noqa: N818 - it is no error
    """Ends a transaction of which nothing is to be written."""


def _read(file: Path) -> bytes:
    try:
        return read_file(file, MOST_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is nothing at {file}", remedy="name a file to import") from error
    except OSError as error:
        remedy = "name a file to import; a large graph can be exported in parts, group by group"
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy=remedy) from error
