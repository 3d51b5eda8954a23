"""Errors as problem documents (RFC 9457): which status each error has, and the body that says what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from commonplace import errors
from commonplace.server.statuses import TYPE_PREFIX, status_of

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_AFTER_S: Final = 1


class Problem(Exception):  # noqa: N818 - the name of RFC 9457
    """A request that is refused before the engine is asked.

    Attributes:
        status: of the response.
        name: the last part of the problem's type, such as "unknown-route".
        remedy: what the client can do about it, one sentence, or "".
    """

    def __init__(
        self, status: int, name: str, detail: str, *, remedy: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.name, self.remedy, self.headers = status, name, remedy, headers or {}


def problem_of(error: Problem | errors.CommonplaceError) -> Problem:
    """Return an error as a problem."""
    if isinstance(error, Problem):
        return error
    status, name = status_of(error)
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Problem(status, name, str(error.args[0]), remedy=error.remedy, headers=headers)


def document(problem: Problem) -> dict[str, Any]:
    """Return the body of a problem."""
    body = {
        "type": f"{TYPE_PREFIX}{problem.name}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": str(problem),
    }
    return body | ({"remedy": problem.remedy} if problem.remedy else {})


def response_of(error: Problem | errors.CommonplaceError) -> Response:
    """Return the response that an error leads to."""
    problem = problem_of(error)
    return Response(
        json.dumps(document(problem), ensure_ascii=False),
        problem.status,
        headers=dict(problem.headers),
        media_type=MEDIA_TYPE,
    )
