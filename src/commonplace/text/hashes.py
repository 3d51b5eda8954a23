"""Hash functions of the interpreter, without OpenSSL: `hashlib` loads it, 5 MB that nothing here needs."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any


def _own(name: str, *modules: str) -> Any:
    """Return a constructor from the first of the interpreter's modules that is there, else from `hashlib`."""
    for module in (*modules, "hashlib"):
        with suppress(ImportError):
            return getattr(import_module(module), name)
    raise ImportError(f"this Python has no {name}")


if TYPE_CHECKING:
    import hashlib

    sha1, sha256, blake2b = hashlib.sha1, hashlib.sha256, hashlib.blake2b
else:
    sha1 = _own("sha1", "_sha1")
    sha256 = _own("sha256", "_sha2", "_sha256")  # since Python 3.12, and before
    blake2b = _own("blake2b", "_blake2")
