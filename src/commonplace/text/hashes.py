"""The interpreter's own hash functions: `hashlib` loads OpenSSL, 5 MB that is not needed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any


def _constructor(name: str, *modules: str) -> Any:
    """Return a constructor from the first of the modules that exists, else from `hashlib`."""
    for module in (*modules, "hashlib"):
        with suppress(ImportError):
            return getattr(import_module(module), name)
    raise ImportError(f"this Python has no {name}")


if TYPE_CHECKING:
    import hashlib

    sha1, sha256, blake2b = hashlib.sha1, hashlib.sha256, hashlib.blake2b
else:
    sha1 = _constructor("sha1", "_sha1")
    sha256 = _constructor("sha256", "_sha2", "_sha256")  # Python 3.12 and later, and earlier
    blake2b = _constructor("blake2b", "_blake2")
