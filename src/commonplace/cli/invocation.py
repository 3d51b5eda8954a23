"""One run of the program: its settings, its store, and the conversion of failures to messages and exit codes.

Nothing here loads click: a client starts a server for every session, and click takes a third of that start and 3 MB.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from commonplace.dataclasses import dataclass, field
from commonplace.errors import CommonplaceError, StoreMissingError

if TYPE_CHECKING:
    import logging
    from pathlib import Path

    from commonplace.cli.output import Caller
    from commonplace.engine import Engine
    from commonplace.settings import Overrides, Settings
    from commonplace.types import Progress


def guard_output() -> None:
    """Make standard output and error escape characters that their encoding lacks: a dash must not fail a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@dataclass(slots=True)
class Invocation:
    """One run of the program, filled while its arguments are parsed.

    Attributes:
        makes_store: whether the command creates a store if `store` names a directory without one; others refuse.
        directory: where the search for a store begins; None is the working directory.
        caller: the process for which a server runs the command; None is this process.
        dry_run, rate_limit: options of consolidation.
    """

    store: str | None = None
    namespace: str | None = None
    as_json: bool = False
    is_verbose: bool = False
    watches: bool = False
    makes_store: bool = False
    directory: Path | None = None
    caller: Caller | None = None
    dry_run: bool = False
    rate_limit: int | None = None
    log_handlers: list[logging.Handler] = field(default_factory=list)

    def settings(self, overrides: Overrides | None = None, **flags: object) -> Settings:
        """Load the settings with this run's flags; `search_limit=5` sets `search.limit`.

        Args:
            overrides: settings that replace those stored in the store.
        """
        from commonplace.settings import load

        dotted = {name.replace("_", ".", 1): value for name, value in flags.items()}
        flags = {"store.path": self.store, "store.namespace": self.namespace, **dotted}
        environment = None if self.caller is None else self.caller.environment
        return load(flags, overrides=overrides, environment=environment, start=self.directory)

    def open(
        self,
        settings: Settings | None = None,
        *,
        create: bool = False,
        progress: Progress | None = None,
        low_memory: bool = False,
    ) -> Engine:
        """Open the engine of the store that the settings name, by default the settings of this run.

        Args:
            low_memory: whether the engine is a server's, which leaves heavy work to separate processes.

        Raises:
            StoreMissingError: there is no store and `create` is False, or `--store` names a directory without one.
        """
        from commonplace import logs
        from commonplace.cli.output import Notices
        from commonplace.engine.open import open_engine
        from commonplace.settings.paths import LOGS, directory_of

        settings = settings or self.settings()
        directory = directory_of(settings.store.path)
        # A file instead of a directory is another mistake, which opening reports.
        may_make = self.store is None or self.makes_store or directory.is_file()
        try:
            store, may_create = settings.store, create and may_make
            options: dict[str, Any] = {"settings": settings, "progress": progress, "low_memory": low_memory}
            engine = open_engine(store.path, store.namespace, None, create=may_create, **options)
        except StoreMissingError as error:
            self.refuse_mistyped(settings)
            remedy = "create one in this directory with `commonplace init`, or store a first memory with"
            raise StoreMissingError(error.args[0], remedy=f"{remedy} `commonplace remember TEXT`") from None
        self.log_handlers.append(logs.attach(directory / LOGS, level=engine.settings.log.level))
        self.attach(Notices(self))
        return engine

    def attach(self, handler: logging.Handler) -> None:
        """Add a log handler until the end of the run."""
        from commonplace import logs

        self.log_handlers.append(logs.attached(handler))

    def refuse_mistyped(self, settings: Settings) -> None:
        """Reject a `--store` directory without a store, unless the command creates stores.

        Raises:
            StoreMissingError: there is no store in the directory; a typing error must not create one.
        """
        if self.store is None or self.makes_store or self.has_store(settings):
            return  # opening reports faults of an address
        from pathlib import Path
        from shlex import quote

        remedy = f"correct it, or make a store there with `commonplace init --store {quote(self.store)}`"
        path = Path(settings.store.path)
        nearest = next(place for place in (path, *path.parents) if place.exists())
        if not nearest.is_dir():
            remedy = f"{'it' if nearest == path else nearest} is a file; name a directory"
        raise StoreMissingError(f"--store names {settings.store.path}, where there is no store", remedy=remedy)

    def has_store(self, settings: Settings) -> bool:
        """Return whether the store of the settings exists; the address of a server counts without a check."""
        from pathlib import Path

        from commonplace.settings.paths import DATABASE, address_of

        path = settings.store.path
        return address_of(path) is not None or (Path(path) / DATABASE).is_file()

    def close(self) -> None:
        """Remove the log handlers."""
        if self.log_handlers:
            from commonplace import logs

            while self.log_handlers:
                logs.detach(self.log_handlers.pop())


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})


def run_to_the_end(work: Callable[[], object], invocation: Invocation) -> NoReturn:
    """Do the work of a run and end the process; every failure becomes a message and an exit code."""
    code = 0
    try:
        result = work()
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except (Exception, KeyboardInterrupt) as caught:
        error: BaseException = caught
        # A full disk and a lack of file descriptors are reported as such, wherever they occur.
        number = getattr(caught, "errno", None)
        if number in _FULL and getattr(caught, "filename", None) is None:
            # Code that writes other files reports its own errors.
            message, remedy = f"standard output cannot be written: {os.strerror(number)}", "send it where there is room"
            error = CommonplaceError(message, remedy=remedy)
        # A library that cannot be loaded for lack of a descriptor says so only in its message.
        elif number in _NO_DESCRIPTORS or (
            isinstance(caught, ImportError) and os.strerror(errno.EMFILE) in str(caught)
        ):
            message = f"there are too many open files; this process may have {os.sysconf('SC_OPEN_MAX'):,}"
            error = CommonplaceError(message, remedy="allow more, for example with `ulimit -n 256`, and run it again")
        if error is not caught:
            error.__cause__ = caught
        try:
            from commonplace.cli.app import exit_code, report
        except OSError:
            # No descriptor is left to load these modules.
            sys.stderr.write(f"error: {error}\n")
            sys.exit(1)

        if isinstance(caught, OSError):
            # Redirect to the null device, so that the interpreter's last flush does not meet a closed pipe.
            with suppress(OSError, ValueError), open(os.devnull, "wb") as null_device:  # noqa: PTH123 - a device
                os.dup2(null_device.fileno(), sys.stdout.fileno())
        # A reader that stops early, such as `head`, is not a failure.
        if not isinstance(error, BrokenPipeError):
            report(error, invocation)
            code = exit_code(error)
    finally:
        invocation.close()
    sys.exit(code)
