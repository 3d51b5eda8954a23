"""Access tokens: what is stored of them, what they allow, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_token_is_found_by_its_secret_alone(book: Engine) -> None:
    made = book.tokens.create(["a", "b"], ["read", "write"])
    assert book.tokens.find(made.secret) == made.token
    assert (made.token.namespaces, made.token.scopes) == (("a", "b"), ("read", "write"))
    assert book.tokens.find(made.secret[:-1]) is None
    assert book.tokens.find(made.token.id) is None
    assert book.tokens.find("") is None


def test_no_file_of_the_store_holds_the_secret(book: Engine) -> None:
    """Whoever copies the store must not be able to call its server."""
    secret = book.tokens.create(["a"]).secret.encode()
    files = [path for path in book.directory.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.split(b"_", 2)[-1] in path.read_bytes() for path in files)


def test_tokens_are_known_to_every_process_and_revoked_for_all(tmp_path: Path, book: Engine) -> None:
    made = book.tokens.create(["a"])
    with commonplace.open(book.directory, "elsewhere") as other:
        assert other.tokens.find(made.secret) == made.token
        assert other.tokens.revoke(made.token.id) == made.token
    assert book.tokens.find(made.secret) is None
    assert not book.tokens.has_any()


def test_a_token_expires(book: Engine, clock: Clock) -> None:
    made = book.tokens.create(["a"], expires=clock.now + 60)
    assert not book.tokens.is_expired(made.token)
    clock.now += 60
    assert book.tokens.is_expired(made.token)
    assert not book.tokens.is_expired(book.tokens.create(["a"]).token)


def test_tokens_are_listed_in_the_order_in_which_they_were_made(book: Engine, clock: Clock) -> None:
    made = []
    for _ in range(3):
        made.append(book.tokens.create(["a"]).token)
        clock.now += 1
    assert book.tokens.all() == made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"namespaces": []}, "needs a namespace and a scope"),
        ({"namespaces": ["a"], "scopes": []}, "needs a namespace and a scope"),
        ({"namespaces": ["a"], "scopes": ["all"]}, "no scope 'all'"),
        ({"namespaces": ["n" * 201]}, "namespace"),
        ({"namespaces": ["a"], "expires": 1.0}, "which is past"),
    ],
)
def test_a_token_that_allows_nothing_or_anything_unknown_is_refused(
    book: Engine, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        book.tokens.create(**given)
    assert not book.tokens.has_any()


def test_what_is_no_token_cannot_be_revoked(book: Engine) -> None:
    with pytest.raises(NotFoundError, match="no token 'x'"):
        book.tokens.revoke("x")
