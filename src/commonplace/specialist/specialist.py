"""Parse a request, dispatch it to its verb and format the response."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from commonplace.dataclasses import replace
from commonplace.engine import Engine
from commonplace.errors import AdmissionError, CommonplaceError, NotFoundError, StoreBusyError, StoreError, UsageError
from commonplace.formats.csp import CspError, CspRequest, Response, format_response, parse_request
from commonplace.specialist import verbs
from commonplace.specialist.request import Parts
from commonplace.text.budget import MAX_TOKENS
from commonplace.text.snippet import snippet

Verb = Callable[["Engine", Parts], Response]

_NAMES: Final = "recall store link query_graph decay get forget promote temporal_query stats".split()
VERBS: Final[Mapping[str, Verb]] = {name: getattr(verbs, name) for name in _NAMES}
SCOPE: Final = "MEM"

UNKNOWN_VERB: Final = "UNKNOWN_VERB"
WRONG_SCOPE: Final = "WRONG_SCOPE"
INTERNAL: Final = "INTERNAL"
CODES: Final[tuple[tuple[type[CommonplaceError], str], ...]] = (
    (AdmissionError, "NOT_ADMITTED"),
    (UsageError, "BAD_VALUE"),
    (NotFoundError, "NOT_FOUND"),
    (StoreBusyError, "STORE_BUSY"),
    (StoreError, "STORE_FAILED"),
    (CommonplaceError, "FAILED"),
)
"""Code of the ERROR line by class of error; the first match counts. A `CspError` has its own code."""

MAX_RATIONALE_LENGTH: Final = 400

_log = logging.getLogger(__name__)


class Specialist:
    """Answers requests in CSP/1. Safe for threads."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handle(self, text: str) -> str:
        """Answer one request with one response in CSP/1. Raises no error.

        A request that fails gets `STATUS FAIL` with a code and a reason, and changes nothing.
        """
        return format_response(self.answer(text))

    def answer(self, text: str, *, is_last: bool = False) -> Response:
        """Answer one request; return the response before it is formatted as text.

        Args:
            is_last: the process ends with this request, so a memory of the tier ultra is refused.
        """
        try:
            request = parse_request(text)
            response = _shortened(_verb(request)(self._engine, Parts(request, is_last=is_last)))
            if verbs.fits(self._engine, response):
                return response
            # Its names alone are too long.
            reason = f"the names in the response do not fit in {MAX_TOKENS} tokens"
            return Response("PARTIAL", rationale=reason, data=(), relevance=(), facts=response.facts)
        except CommonplaceError as error:
            if isinstance(error, NotFoundError):
                error.advise("recall, query_graph and stats show what there is")
            fallback = next(code for kind, code in CODES if isinstance(error, kind))
            return refusal(error.code if isinstance(error, CspError) else fallback, str(error))
        except Exception as error:
            _log.exception("a request could not be answered")
            return refusal(INTERNAL, f"unexpected {type(error).__name__}; the store's log has the traceback")


def refusal(code: str, reason: str) -> Response:
    """Return the response to a request that failed."""
    return _shortened(Response("FAIL", code, reason))


def _verb(request: CspRequest) -> Verb:
    if request.scope != SCOPE:
        message = f"IN:{request.scope:.60} is no scope of the memory specialist"
        raise CspError(message, code=WRONG_SCOPE, remedy="ask IN:MEM")
    if request.verb not in VERBS:
        message = f"there is no verb {request.verb:.60}"
        raise CspError(message, code=UNKNOWN_VERB, remedy=f"known are {', '.join(VERBS)}")
    return VERBS[request.verb]


def _shortened(response: Response) -> Response:
    if not response.rationale:
        return response
    return replace(response, rationale=snippet(response.rationale, "", limit=MAX_RATIONALE_LENGTH).text)
