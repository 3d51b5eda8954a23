"""SHA-1, SHA-256 and BLAKE2b as the interpreter itself has them, for names and comparisons, not for secrets.

`hashlib` gives the same digests and loads OpenSSL first, which takes 3.7 MB of a process that should stay under 50.
It is faster on much data: whoever reads whole files takes that one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final, Protocol


class Hash(Protocol):
    """A digest in the making."""

    def digest(self) -> bytes:
        """Return the digest."""
        ...

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal digits."""
        ...


def _own(name: str, *modules: str) -> Callable[..., Hash]:
    """Return a constructor from the first of the interpreter's modules that is there, else from `hashlib`."""
    for module in (*modules, "hashlib"):
        with suppress(ImportError):
            found: Callable[..., Hash] = getattr(import_module(module), name)
            return found
    raise ImportError(f"this Python has no {name}")


sha1: Final = _own("sha1", "_sha1")
sha256: Final = _own("sha256", "_sha2", "_sha256")  # since Python 3.12, and before
blake2b: Final = _own("blake2b", "_blake2")
