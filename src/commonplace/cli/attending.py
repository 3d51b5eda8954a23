"""Let a server's store follow its project while the server runs. It knows threads and locks, and no option."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from commonplace.errors import CommonplaceError, StoreBusyError

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.ingest.watching import Watch

AGAIN_S: Final = 60.0
"""So often is asked whether another process still watches the project."""
END_S: Final = 1.0
"""So long is the end of a thread waited for; what it started to index is finished by its process without it."""
_log = logging.getLogger(__name__)


class Attendance:
    """Watches the project of an engine in a thread; where another process does already, it takes over from that one."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._turn = threading.Lock()
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    def begin(self, engine: Engine) -> None:
        """Begin to watch; without a project there is nothing to be watched, and the log says so."""
        if engine.project is None:
            _log.warning("nothing is watched: the store %s belongs to no project", engine.directory)
            return
        self._thread = threading.Thread(target=self._run, args=(engine,), name="commonplace-attend", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Watch no longer, before the engine is closed."""
        self._stopped.set()
        with self._turn:
            if self._watch is not None:
                self._watch.stop()
        if self._thread is not None:
            self._thread.join(END_S)

    def _run(self, engine: Engine) -> None:
        while not self._stopped.is_set():
            try:
                self._follow(engine)
            except StoreBusyError:
                self._stopped.wait(AGAIN_S)
            except CommonplaceError as error:
                _log.warning("the project is not watched any more: %s", error)
                return
            except Exception:
                # The outermost edge of a thread: the server goes on without it.
                _log.exception("the project is not watched any more")
                return

    def _follow(self, engine: Engine) -> None:
        with engine.index(engine.project or ".", watch=True) as watch:
            with self._turn:
                self._watch = watch
                if self._stopped.is_set():
                    return
            for run in watch:
                if run.error is not None:
                    _log.warning("the project could not be indexed: %s", run.error)
