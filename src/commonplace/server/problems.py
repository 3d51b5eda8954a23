"""Errors as problem documents (RFC 9457): their statuses and names, and conversion in both directions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from commonplace import errors

if TYPE_CHECKING:
    from starlette.responses import Response

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:commonplace:problem:"
STATUSES: Final[Mapping[type[errors.CommonplaceError], tuple[int, str]]] = {
    errors.VersionConflictError: (412, "version-conflict"),
    errors.AdmissionError: (422, "not-admitted"),
    errors.RemovalError: (409, "removal-refused"),
    errors.UsageError: (400, "invalid-request"),
    errors.NotFoundError: (404, "not-found"),
    errors.NoRelation: (409, "no-relation"),
    errors.StoreBusyError: (503, "store-busy"),
    errors.StoreUnreachableError: (503, "store-unreachable"),
    errors.StoreMissingError: (503, "no-store"),
    errors.StoreError: (500, "store-failed"),
    errors.ProviderError: (502, "provider-failed"),
    errors.MissingExtraError: (501, "not-installed"),
    errors.CommonplaceError: (500, "failed"),
}
"""Status and name of the problem of each error class. An unlisted error has those of its nearest base class."""
_RETRY_AFTER_S: Final = 1


class Problem(Exception):  # noqa: N818 - the name of RFC 9457
    """A request that is refused before it reaches the engine.

    Attributes:
        status: the HTTP status of the response.
        name: the last part of the problem's type, such as "unknown-path".
        remedy: what the client can do about it, in one sentence, or "".
    """

    def __init__(
        self, status: int, name: str, detail: str, *, remedy: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.name, self.remedy, self.headers = status, name, remedy, headers or {}


def problem_of(error: Problem | errors.CommonplaceError) -> Problem:
    """Convert an error to a problem."""
    if isinstance(error, Problem):
        return error
    status, name = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Problem(status, name, str(error.args[0]), remedy=error.remedy, headers=headers)


def response_of(error: Problem | errors.CommonplaceError) -> Response:
    """Return the response to an error: its problem document."""
    from starlette.responses import Response  # imported here because the client, which reads problems, lacks Starlette

    problem = problem_of(error)
    body = {
        "type": f"{TYPE_PREFIX}{problem.name}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": str(problem),
        **({"remedy": problem.remedy} if problem.remedy else {}),
    }
    content = json.dumps(body, ensure_ascii=False)
    return Response(content, problem.status, headers=dict(problem.headers), media_type=MEDIA_TYPE)


def error_of(document: Mapping[str, Any]) -> errors.CommonplaceError:
    """Convert a problem document to an error; one without an error class is an `AccessError` or a `ProviderError`."""
    name = str(document.get("type", "")).removeprefix(TYPE_PREFIX)
    detail, remedy = str(document.get("detail", "")), str(document.get("remedy", ""))
    kind = next((error_type for error_type, (_, problem_name) in STATUSES.items() if problem_name == name), None)
    status = document.get("status")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return errors.AccessError(detail, status=status, remedy=remedy)
    if kind is None or kind is errors.ProviderError:
        return errors.ProviderError(detail, status=status, remedy=remedy)
    return kind(detail, remedy=remedy)
