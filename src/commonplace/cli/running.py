"""One run of the program: what it was told, what that leads to, and its end. It knows no way to parse arguments.

A client starts a server for every session, and click takes a third of that start and 3 MB: it is not loaded from here.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    import logging

    from commonplace.engine import Engine
    from commonplace.settings import Overrides, Settings
    from commonplace.types import Progress


@dataclass(slots=True)
class Invocation:
    """One run of the program, filled while its arguments are parsed.

    Attributes:
        makes_store: the command makes a store where `store` names a directory without one; others refuse that.
    """

    store: str | None = None
    namespace: str | None = None
    as_json: bool = False
    is_verbose: bool = False
    watches: bool = False
    makes_store: bool = False
    log_handlers: list[logging.Handler] = field(default_factory=list)

    def settings(self, overrides: Overrides | None = None, **flags: object) -> Settings:
        """Load the settings with this run's flags; `search_limit=5` stands for `search.limit`.

        Args:
            overrides: what to take in place of the settings that the store keeps.

        Raises:
            UsageError: `--store` names a directory that holds no store; a slip of the hand must not make one.
        """
        from commonplace.settings import load

        dotted = {name.replace("_", ".", 1): value for name, value in flags.items()}
        loaded = load({"store.path": self.store, "store.namespace": self.namespace, **dotted}, overrides=overrides)
        if self.store is not None and not self.makes_store:
            self._refuse_no_store(loaded)
        return loaded

    def _refuse_no_store(self, settings: Settings) -> None:
        from commonplace.engine.layout import DATABASE
        from commonplace.store.database_files import left_behind

        directory = Path(settings.store.path)
        # A file in its place, and a store without its database, are other mistakes, and told when it is opened.
        if self.has_store(settings) or directory.is_file() or left_behind(directory / DATABASE):
            return
        from shlex import quote

        from commonplace.errors import UsageError

        raise UsageError(
            f"--store names {directory}, where there is no store",
            remedy=f"correct it, or make a store there with `commonplace init --store {quote(str(self.store))}`",
        )

    def open(
        self, settings: Settings, *, create: bool = False, progress: Progress | None = None, stays_small: bool = False
    ) -> Engine:
        """Open the engine of the store that the settings name.

        Args:
            stays_small: it is a server's, that leaves heavy work to processes of their own.

        Raises:
            StoreDamagedError: the store has lost its database.
            StoreMissingError: there is no store and `create` is False; a question to nothing deserves an error.
        """
        from commonplace import logs
        from commonplace.cli.noticing import Details, Notices
        from commonplace.engine.layout import DATABASE, LOGS
        from commonplace.engine.opening import open_engine
        from commonplace.errors import StoreMissingError
        from commonplace.store.database_files import refuse_lost

        directory = Path(settings.store.path)
        refuse_lost(directory / DATABASE)
        if not create and not self.has_store(settings):
            raise StoreMissingError(
                f"there is no store at {directory}",
                remedy="create one with `commonplace init` and fill it with `commonplace index build`",
            )
        engine = open_engine(
            directory, settings.store.namespace, None, settings=settings, progress=progress, stays_small=stays_small
        )
        rotation = logs.Rotation(settings.log.max_bytes, settings.log.keep)
        self.log_handlers.append(logs.attach(directory / LOGS, level=settings.log.level, rotation=rotation))
        self.log_handlers.append(logs.attached(Notices(self)))
        if self.is_verbose:
            self.log_handlers.append(logs.attached(Details(self)))
        return engine

    def has_store(self, settings: Settings) -> bool:
        """Return whether there is a store where the settings name one."""
        from commonplace.engine.layout import DATABASE

        return (Path(settings.store.path) / DATABASE).is_file()

    def close(self) -> None:
        """Take the log handlers off again."""
        if self.log_handlers:
            from commonplace import logs

            while self.log_handlers:
                logs.detach(self.log_handlers.pop())


def _without_descriptors(error: BaseException) -> CommonplaceError | None:
    """Return what to tell where the process may open no more files, which is no defect wherever it comes up; else None.

    A library that cannot be loaded for that is told in words alone.
    """
    why = os.strerror(errno.EMFILE)
    if isinstance(error, CommonplaceError) or not isinstance(error, OSError | ImportError):
        return None
    if getattr(error, "errno", None) not in {errno.EMFILE, errno.ENFILE} and why not in str(error):
        return None
    limit = os.sysconf("SC_OPEN_MAX")
    found = CommonplaceError(
        f"there are too many open files; this process may have {limit:,}",
        remedy="allow more, for example with `ulimit -n 256`, and run it again",
    )
    found.__cause__ = error
    return found


def run_to_the_end(work: Callable[[], object], invocation: Invocation) -> NoReturn:
    """Do the work of a run and end the process: every failure becomes a message and an exit code here."""
    code = 0
    try:
        result = work()
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except (Exception, KeyboardInterrupt) as caught:
        error = _without_descriptors(caught) or caught
        try:
            from commonplace.cli.failures import exit_code, report, silence_output
            from commonplace.cli.output import OutputError
        except OSError:
            # No descriptor is left to read these modules with.
            sys.stderr.write(f"error: {error}\n")
            sys.exit(1)

        if isinstance(error, BrokenPipeError | OutputError):
            with suppress(OSError, ValueError):
                silence_output()
        # A reader such as `head` that has seen enough is no failure.
        if not isinstance(error, BrokenPipeError):
            report(error, invocation)
            code = exit_code(error)
    finally:
        invocation.close()
    sys.exit(code)
