"""Which HTTP status and which name each error has, and the way back from a problem document to the error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from commonplace import errors

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
"""One that is not listed has those of the nearest class above it."""


def status_of(error: errors.CommonplaceError) -> tuple[int, str]:
    """Return the status and the name of an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def error_of(document: Mapping[str, Any]) -> errors.CommonplaceError:
    """Return the error that a problem document tells of; a `ProviderError` with the status for one of the server's."""
    name = str(document.get("type", "")).removeprefix(TYPE_PREFIX)
    detail, remedy = str(document.get("detail", "")), str(document.get("remedy", ""))
    kind = next((each for each, (_, known) in STATUSES.items() if known == name), None)
    if kind is None or kind is errors.ProviderError:
        return errors.ProviderError(detail, status=document.get("status"), remedy=remedy)
    return kind(detail, remedy=remedy)
