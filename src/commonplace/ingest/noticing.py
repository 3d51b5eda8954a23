"""Wait until files below a directory may have changed: told by the system, or by looking again and again.

What the system tells is a hint and no more: it is lost where too much happens, and silent on network drives and after a
directory was replaced. So there is an end to every wait, and whoever waited looks for himself.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from commonplace.ingest.discovery import SKIPPED_DIRECTORIES

_STEP_MS: Final = 50
_GROUP_MS: Final = 400
_log = logging.getLogger(__name__)

Open = Callable[[Path], Any]
"""Gives an object like `watchfiles._rust_notify.RustNotify` for a directory or file; any error is one that cannot."""


class Alarm:
    """Wakes one thread that waits when files may have changed. `stop` may be called from any thread.

    Args:
        root: a directory or a file.
        excluded: directories whose changes wake nobody, such as the store's own.
        open_source: how the system is asked; it is asked again whenever `arm` is called.
    """

    def __init__(self, root: Path, excluded: Iterable[Path] = (), open_source: Open | None = None) -> None:
        self._root = os.path.realpath(root)
        self._silent = tuple(os.path.realpath(each) + os.sep for each in excluded)
        self._open = open_source or open_native
        self._rung = threading.Event()
        self._stopped = threading.Event()
        self._listening: _Listening | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether nobody is to wait any more."""
        return self._stopped.is_set()

    @property
    def is_told(self) -> bool:
        """Whether the system tells of changes now."""
        return self._listening is not None and self._listening.is_alive

    def arm(self) -> None:
        """Have the system tell of changes at the root as it is now; where it cannot, waits just end."""
        self._disarm()
        try:
            source = self._open(Path(self._root))
        except Exception as error:
            # Not installed, too many directories for the system, a file system without events: all are told alike.
            _log.info("changes below %s are looked for, not told: %s", self._root, error)
            return
        self._listening = _Listening(source, self._hear)

    def wait(self, most_s: float) -> None:
        """Return when something may have changed, after so many seconds, or when it is time to stop."""
        self._rung.wait(most_s)
        self._rung.clear()
        if self.is_stopped:
            self._rung.set()

    def rest(self, seconds: float) -> None:
        """Return after so many seconds, or when it is time to stop."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """End every wait, now and from now on."""
        self._stopped.set()
        self._rung.set()

    def close(self) -> None:
        """Stop, and let the system tell nothing more."""
        self.stop()
        self._disarm()

    def _disarm(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.end()

    def _hear(self, paths: Iterable[str]) -> None:
        if any(self._matters(path) for path in paths):
            self._rung.set()

    def _matters(self, path: str) -> bool:
        """Return whether an indexing could choose what is at a path; whether it does is not asked here."""
        if path.startswith(self._silent):
            return False
        inside = path[len(self._root) :] if path.startswith(self._root) else path
        return SKIPPED_DIRECTORIES.isdisjoint(Path(inside).parts[:-1])


class _Listening:
    """A thread that passes on what a source tells, until one of them ends."""

    def __init__(self, source: Any, hear: Callable[[Iterable[str]], None]) -> None:
        self._source = source
        self._hear = hear
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commonplace-watch", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(10 * _STEP_MS / 1000)
        self._source.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                told = self._source.watch(_GROUP_MS, _STEP_MS, 0, self._ended)
            except Exception as error:
                # The edge of a foreign library: from here on changes are looked for.
                _log.info("the system tells of no changes any more: %s", error)
                return
            if not isinstance(told, str):
                self._hear(path for _, path in told)


def open_native(root: Path) -> Any:
    """Return what tells of changes below a root: the documented class in the Rust part of `watchfiles`, and no more.

    The package's own `__init__` loads an asynchronous framework and `multiprocessing`, which a server that is there all
    day would carry for nothing: 7.5 MB and 45 ms, against 1.6 MB and 5 ms.

    Raises:
        ImportError: it is not installed.
        OSError: the root cannot be watched.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    package = find_spec("watchfiles")
    if package is None:
        raise ImportError("watchfiles is not installed: pip install 'commonplace[watch]'")
    spec = PathFinder.find_spec("watchfiles._rust_notify", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("this watchfiles has no native part")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # No debugging, no polling, all below, no error passed over: with those of permission goes that of a missing root.
    return module.RustNotify([str(root)], False, False, 0, True, False)
