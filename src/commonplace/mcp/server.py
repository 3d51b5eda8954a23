"""Serve a registry on two streams: read messages, dispatch them to threads, cancel requests, report progress.

The reading thread answers lists and pings itself, so that clients get them while tools run; handlers run in a small
thread pool. A cancelled request is not answered (specification, basic/patterns/cancellation).
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Full, Queue
from typing import Any, BinaryIO, TypeAlias, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, UsageError
from commonplace.formats.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE_LENGTH,
    Call,
    LineWriter,
    Malformed,
    Message,
    OversizedLine,
    ProtocolError,
    RequestId,
    decode,
    encode,
    error_of,
    find_request_id,
    notification,
    read_lines,
    read_message,
    result_of,
)
from commonplace.mcp import protocol

_T = TypeVar("_T")


class Pool:
    """A thread pool of at most `workers` threads and at most `waiting` queued jobs. Submit from one thread only.

    A thread is started only when all others are busy, because each opens its own connection.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self._workers = workers
        self._jobs: Queue[tuple[Callable[[], Any], Callable[[Any], None]] | None] = Queue(waiting)
        self._threads: list[threading.Thread] = []
        self._has_libraries = False

    def submit(self, work: Callable[[], _T], deliver: Callable[[_T], None]) -> bool:
        """Call `deliver(work())` in a thread; neither may raise. Return False if the queue is full."""
        try:
            self._jobs.put_nowait((work, deliver))
        except Full:
            return False
        if len(self._threads) < min(self._jobs.unfinished_tasks, self._workers):
            if not self._threads:
                _share_one_heap()
            thread = threading.Thread(target=self._run, name=f"mcp-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return True

    def finish(self) -> None:
        """Wait until every submitted job is delivered, then end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, deliver = job
            outcome = work()
            # Mark it done before delivery: a client that sends its next request at once must find this thread free.
            self._jobs.task_done()
            deliver(outcome)
            if not self._has_libraries and "numpy" in sys.modules:
                self._has_libraries = True
                give_back_libraries()


def _share_one_heap() -> None:
    """Keep the C library from giving each thread its own heap, which would grow to the thread's largest request.

    Python runs one thread at a time, so threads rarely wait for the shared heap. Free memory is also returned at once
    instead of kept for the next request: this saves 1 MB and costs a tenth of a millisecond. Without the GNU C library
    this does nothing.
    """
    import ctypes

    with suppress(AttributeError):
        library = ctypes.CDLL(None)
        # M_ARENA_MAX and M_TRIM_THRESHOLD of mallopt(3) in the GNU C library.
        library.mallopt(-8, 1)
        library.mallopt(-1, 1 << 18)


def give_back_libraries() -> None:
    """Release the resident pages of shared libraries: a quarter of them were read for loading only.

    Mappings that were written to are left alone: no file holds what the linker filled in. Without /proc this does
    nothing.
    """
    import ctypes
    from pathlib import Path

    span, mappings = "", list[str]()
    with suppress(OSError, AttributeError):
        for line in Path("/proc/self/smaps").read_text("utf-8", "surrogateescape").splitlines():
            words = line.split()
            if not words[0].endswith(":"):
                span = words[0] if words[1] in ("r-xp", "r--p") and ".so" in words[-1] else ""
            elif span and words[0] == "Anonymous:" and words[1] == "0":
                mappings.append(span)
        give_back = ctypes.CDLL(None).madvise
        for begin, end in ((int(part, 16) for part in span.split("-")) for span in mappings):
            # MADV_DONTNEED of madvise(2): the pages stay in the page cache and are mapped again when read.
            give_back(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), 4)


_INPUT, _OUTPUT, _ERRORS = 0, 1, 2
_BUFFER = 64 * 1024


@contextmanager
def standard_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield standard input and output, reserved for the protocol.

    Until the context exits, all other output, also from C libraries and child processes, goes to standard error, and
    all other reads find the end of input. Both streams are restored afterwards.
    """
    sys.stdout.flush()
    # Above the standard three, and closed in children: a child that outlives us must not keep the client waiting.
    incoming, outgoing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _ERRORS + 1) for number in (_INPUT, _OUTPUT))
    null_device = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_device, _INPUT)
    try:
        os.dup2(_ERRORS, _OUTPUT)
    except OSError:  # standard error is closed
        os.dup2(null_device, _OUTPUT)
    os.close(null_device)
    try:
        with (
            os.fdopen(incoming, "rb", _BUFFER, closefd=False) as reader,
            os.fdopen(outgoing, "wb", 0, closefd=False) as writer,
        ):
            yield reader, writer
    finally:
        sys.stdout.flush()
        os.dup2(incoming, _INPUT)
        os.dup2(outgoing, _OUTPUT)
        os.close(incoming)
        os.close(outgoing)


ENDED, CLIENT_GONE = 0, 1

_NEWEST = protocol.Terms(protocol.SESSION_VERSIONS[-1])

Settle: TypeAlias = Callable[[bytes | None], None]


def serve(
    registry: protocol.Registry,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
    *,
    workers: int = 4,
    waiting: int = 64,
) -> int:
    """Answer requests until the input ends, then finish those that run. Without streams, use the process's own.

    Args:
        workers: how many handlers run at a time.
        waiting: how many requests may wait for a handler.

    Returns:
        ENDED (0), or CLIENT_GONE (1) if the client stopped reading the answers.
    """
    if stdin is not None and stdout is not None:
        return _Connection(registry, LineWriter(stdout), workers, waiting).run(stdin)
    with standard_streams() as (reader, writer):
        return serve(registry, reader, writer, workers=workers, waiting=waiting)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request that is being answered; `settle` is called once, with None if the request is cancelled."""

    id: RequestId
    settle: Settle
    cancellation: threading.Event


class _Batch:
    def __init__(self, size: int, writer: LineWriter) -> None:
        self._remaining = size
        self._answers: list[bytes] = []
        self._writer = writer
        self._lock = threading.Lock()

    def settle(self, answer: bytes | None) -> None:
        with self._lock:
            self._remaining -= 1
            if answer is not None:
                self._answers.append(answer)
            if self._remaining == 0 and self._answers:
                self._writer.write(b"[" + b",".join(self._answers) + b"]")


class _Connection:
    """One client on two streams. Only the reading thread uses the session and the pool."""

    def __init__(self, registry: protocol.Registry, writer: LineWriter, workers: int, waiting: int) -> None:
        self._registry = registry
        self._writer = writer
        self._pool = Pool(workers, waiting)
        self._waiting = waiting
        self._session: protocol.Terms | None = None
        self._open: dict[RequestId, _Request] = {}
        self._lock = threading.Lock()

    def run(self, stdin: BinaryIO) -> int:
        try:
            for line in read_lines(stdin):
                self._handle_line(line)
                if self._writer.is_broken:
                    break
        except KeyboardInterrupt:
            self._cancel_all()
            raise
        if self._writer.is_broken:
            self._cancel_all()
        self._pool.finish()
        return CLIENT_GONE if self._writer.is_broken else ENDED

    def _handle_line(self, line: bytes | OversizedLine) -> None:
        settle: Settle = self._send
        if isinstance(line, OversizedLine):
            text = f"the line has more than {MAX_LINE_LENGTH} bytes; send less at a time"
            settle(encode(error_of(find_request_id(line.head, line.tail), ProtocolError(INVALID_REQUEST, text))))
            return
        try:
            value = decode(line)
        except ProtocolError as error:
            settle(encode(error_of(None, error)))
            return
        if not isinstance(value, list):
            self._handle_message(read_message(value), settle)
            return
        fault = "" if value else "a batch has at least one message"
        if self._session is None or self._session.version not in protocol.BATCH_VERSIONS:
            fault = "batches are part of version 2025-03-26 alone; send one message a line"
        if fault:
            settle(encode(error_of(None, ProtocolError(INVALID_REQUEST, fault))))
            return
        settle = _Batch(len(value), self._writer).settle
        for message in map(read_message, value):
            # A batch may not hold a handshake, nor a stateless request: the stateless versions have no batches.
            if isinstance(message, Call) and (message.method == "initialize" or protocol.is_stateless(message.params)):
                refusal = ProtocolError(INVALID_REQUEST, "this request cannot be part of a batch")
                settle(encode(error_of(message.id, refusal)))
            else:
                self._handle_message(message, settle)

    def _handle_message(self, message: Message, settle: Settle) -> None:
        if isinstance(message, Malformed):
            settle(encode(error_of(message.id, message.error)))
        elif message is not None and message.id is not None:
            self._handle_request(message, message.id, settle)
        else:
            id_ = message.params.get("requestId") if message is not None else None
            if message is not None and message.method == "notifications/cancelled" and isinstance(id_, int | str):
                with self._lock:
                    request = self._open.get(id_)
                if request is not None:
                    self._settle(request, None)
            settle(None)

    def _handle_request(self, call: Call, call_id: RequestId, settle: Settle) -> None:
        try:
            if call.method == "initialize":
                self._session = protocol.opened_session(call.params)
                settle(encode(result_of(call_id, protocol.initialized(self._registry, self._session))))
                return
            terms, method = self._terms_and_method(call)
        except ProtocolError as error:
            settle(encode(error_of(call_id, error)))
            return
        request = _Request(call_id, settle, threading.Event())
        with self._lock:
            is_open = self._open.setdefault(call_id, request) is not request
        if is_open:
            text = f"the request with id {call_id!r} is still being answered; give each its own"
            settle(encode(error_of(call_id, ProtocolError(INVALID_REQUEST, text))))
            return

        def work() -> bytes:
            progress = self._progress(protocol.progress_token(call.params), request.cancellation)
            context = protocol.CallContext(terms, request.cancellation, progress)
            return b"" if request.cancellation.is_set() else answer(self._registry, call, call_id, method, context)

        deliver = partial(self._settle, request)
        if not method.runs_handlers:
            deliver(work())
        elif not self._pool.submit(work, deliver):
            text = f"{self._waiting} requests are waiting; send this one again when one of them has been answered"
            deliver(encode(error_of(call_id, ProtocolError(INTERNAL_ERROR, text))))

    def _terms_and_method(self, call: Call) -> tuple[protocol.Terms, protocol.Method]:
        terms = protocol.terms_of(call.method, call.params, self._session or _NEWEST)
        method = protocol.method_of(call.method, self._registry, terms)
        if self._session is None and not terms.is_stateless and call.method != "ping":
            text = "send initialize first, or give the protocol version in params._meta"
            raise ProtocolError(INVALID_PARAMS, text)
        return terms, method

    def _progress(self, token: RequestId | None, cancellation: threading.Event) -> Callable[..., None]:
        """Return a function that sends a handler's progress if it increases and the client asked for it."""
        last = float("-inf")

        def send(completed: float, total: float | None = None, message: str | None = None) -> None:
            nonlocal last
            if token is None or cancellation.is_set() or completed <= last:
                return
            last = completed
            fields: dict[str, Any] = {"progressToken": token, "progress": completed, "total": total, "message": message}
            params = {name: value for name, value in fields.items() if value is not None}
            self._writer.write(encode(notification("notifications/progress", params)))

        return send

    def _settle(self, request: _Request, answer: bytes | None) -> None:
        """Settle a request with its answer, or cancel it with None; if both happen at once, the first wins."""
        with self._lock:
            if self._open.get(request.id) is not request:
                return
            del self._open[request.id]
        if answer is None:
            request.cancellation.set()
        request.settle(answer)

    def _cancel_all(self) -> None:
        with self._lock:
            requests = list(self._open.values())
        for request in requests:
            self._settle(request, None)

    def _send(self, answer: bytes | None) -> None:
        if answer is not None:
            self._writer.write(answer)


def answer(
    registry: protocol.Registry, call: Call, call_id: RequestId, method: protocol.Method, context: protocol.CallContext
) -> bytes:
    """Return the encoded answer to a request: a result, or an error."""
    try:
        return encode(result_of(call_id, protocol.respond(registry, method, call.params, context)))
    except ProtocolError as error:
        refusal = error
    except UsageError as error:
        refusal = ProtocolError(INVALID_PARAMS, str(error))
    except CommonplaceError as error:
        refusal = ProtocolError(INTERNAL_ERROR, str(error))
    except Exception as error:
        # The outermost layer: without an answer the client would wait for ever.
        protocol.report_defect(f"{call.method} failed", error)
        refusal = ProtocolError(INTERNAL_ERROR, f"{call.method} failed unexpectedly ({type(error).__name__})")
    return encode(error_of(call_id, refusal))
