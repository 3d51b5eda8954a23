"""Hash functions without OpenSSL."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from commonplace.text import hashes


@pytest.mark.parametrize("data", [b"", b"abc", bytes(range(256)) * 100])
def test_digests_are_those_of_hashlib(data: bytes) -> None:
    """They are stored, and another version of Python must come to the same."""
    assert hashes.sha1(data, usedforsecurity=False).digest() == hashlib.sha1(data, usedforsecurity=False).digest()
    assert hashes.sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    ours, theirs = (make(data, digest_size=8, person=b"p") for make in (hashes.blake2b, hashlib.blake2b))
    assert ours.digest() == theirs.digest()


def test_openssl_is_not_loaded() -> None:
    """That is what the module is for."""
    program = "import sys, commonplace.text.hashes; sys.exit('_hashlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_python_without_digests_of_its_own_takes_those_of_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are built with OpenSSL's alone."""
    for name in ("_sha1", "_sha2", "_sha256", "_blake2"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "commonplace.text.hashes")
    import commonplace.text.hashes as anew

    assert anew.sha256(b"abc").hexdigest() == hashlib.sha256(b"abc").hexdigest()
    assert anew.sha256 is hashlib.sha256
