"""Every error that Commonplace raises on purpose, in one tree; each docstring says what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping


class CommonplaceError(Exception):
    """Catch this to catch every error of Commonplace.

    Attributes:
        remedy: what the caller can do about it, one sentence, or "".
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}; {self.remedy}" if self.remedy else message

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace arguments in the remedy by a surface's names, such as `force=True` by `--force`; others stay."""

        def named(argument: re.Match[str]) -> str:
            name, value = argument.groups()
            return " ".join(filter(None, (names[name], value))) if name in names else argument[0]

        self.remedy = re.sub(r"\b(\w+)=(?:True\b|'(\w+)')", named, self.remedy)


class UsageError(CommonplaceError):
    """Change the request: a value is out of range or of the wrong kind.

    Attributes:
        parameters: the library's names of parameters in the message; `rename` replaces them by a surface's names.
    """

    def __init__(self, message: str, *, remedy: str = "", parameters: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.parameters = parameters

    def rename(self, names: Mapping[str, str]) -> None:
        super().rename(names)
        message = str(self.args[0])
        for name in self.parameters:
            # Only the first occurrence: the given value follows it and may contain the same word.
            match = re.search(rf"\b{re.escape(name)}\b", message)
            if match and name in names:
                message = f"{message[: match.start()]}{names[name]}{message[match.end() :]}"
        self.args = (message,)
        self.parameters = ()


class AdmissionError(UsageError):
    """Say what is new, or force it: the text is already a passage of the store, or was recalled from it."""


class VersionConflictError(UsageError):
    """Read the memory again: it has another version than the change was meant for.

    Attributes:
        version: the memory's version.
    """

    def __init__(self, message: str, *, version: int = 0, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.version = version


class RemovalError(UsageError):
    """Check the directory and the globs, or allow it: more than half of what is indexed there would be removed.

    Attributes:
        removed, indexed: number of files that would be removed, and number that are indexed there.
    """

    def __init__(self, message: str, *, removed: int = 0, indexed: int = 0, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.removed, self.indexed = removed, indexed


class SettingsError(UsageError):
    """Correct the named settings file, environment variable or flag."""


class ConfigError(UsageError):
    """Correct the configuration document at `path` (dotted, from its root)."""

    def __init__(self, message: str, *, path: str = "", remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.path = path


class NotFoundError(CommonplaceError):
    """Check the id, path or name: nothing in this namespace has it."""

    def advise(self, remedy: str) -> None:
        """Replace a remedy that names a `commonplace` command, for a caller without a command line."""
        if "`commonplace " in self.remedy:
            self.remedy = remedy


class NoRelation(CommonplaceError):  # noqa: N818 - the name is the contract's
    """Leave the memories unlinked: they are not related enough."""


class StoreError(CommonplaceError):
    """Read the message: the store cannot do this, and nothing was changed."""


class StoreMissingError(StoreError):
    """Create a store with `commonplace init`, or name one with `--store`."""


class StoreVersionError(StoreError):
    """Upgrade Commonplace: the store was written by a newer version."""


class StoreDamagedError(StoreError):
    """Restore a backup, or move the damaged database away and run `commonplace init --anew`; see the message."""


class StoreBusyError(StoreError):
    """Try again: another process held the store's write lock until the timeout."""


class StoreUnreachableError(StoreError):
    """Try again when the database server can be reached: nothing was changed."""


class IndexFaultError(StoreError):
    """Rebuild the index from the store, which is intact; the message is a clause that continues "the index …"."""


class EmbedderMismatchError(CommonplaceError):
    """Open the store with the embedder it was built with, or rebuild it for the new one."""


class ModelError(CommonplaceError):
    """Reinstall Commonplace: the model data that ships with it is missing or damaged."""


class ProviderError(CommonplaceError):
    """Check address, key and model name: a remote model did not answer, or not as asked.

    Attributes:
        status: HTTP status of the response, or None without a response.
    """

    def __init__(self, message: str, *, status: int | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class AccessError(ProviderError):
    """Use a token with the scope and the namespace of the call; `commonplace token create` makes one."""


class MissingExtraError(CommonplaceError):
    """Install the extra that the message names."""
