"""`doctor --secrets` on the command line: what it prints, its exit codes, and that it never prints a secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.erasure.test_secrets import GONE, OTHER, TOKEN, holding, spoil, store_file

import commonplace

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program


@pytest.fixture
def spoilt(program: Program) -> Program:
    """Leave a token in a memory of each of two namespaces and in an indexed file."""
    program.run("remember", "The kettle is blue", "--id", "kettle")
    program.run("remember", "The kettle is red", "--id", "kettle", "--namespace", "theirs")
    store = program.project / ".commonplace"
    with commonplace.open(store) as book, commonplace.open(store, namespace="theirs") as theirs:
        spoil(book, "kettle", record={"content": f"The kettle opens with {TOKEN}"})
        spoil(theirs, "kettle", owner={"tags": (TOKEN, OTHER)})
        store_file(book, "docs/keys.md", TOKEN)
    return program


def files_with_a_secret(program: Program) -> list[str]:
    with commonplace.open(program.project / ".commonplace") as book:
        return holding(book)


def test_looking_tells_all_that_holds_a_secret_and_ends_with_1(spoilt: Program) -> None:
    done = spoilt.run("doctor", "--secrets", "--no-mend", code=1)
    assert TOKEN not in done.output
    shown = " ".join(done.output.split())
    assert "secrets: memory 'kettle' of namespace 'default' holds a secret of the kind github token" in shown
    assert "secrets: memory 'kettle' of namespace 'theirs' holds 2 secrets of the kind github token" in shown
    assert "secrets: artifact 'docs/keys.md' of namespace 'default' holds a secret" in shown
    assert "(not repaired: run `commonplace doctor --secrets`" in shown
    assert files_with_a_secret(spoilt) != []


def test_mending_replaces_them_says_what_is_to_be_done_and_ends_with_0(spoilt: Program) -> None:
    on_disk = {path: path.read_bytes() for path in Path().rglob("docs/*")}
    shown = " ".join(spoilt.run("doctor", "--secrets").output.split())
    assert shown.count("(repaired)") == shown.count("secrets: the page") + 3
    assert "secrets: now change the secret where it is used; older backups still hold it" in shown
    assert "secrets: now take it out of the file, which was left as it is, and change" in shown
    assert files_with_a_secret(spoilt) == []
    assert {path: path.read_bytes() for path in Path().rglob("docs/*")} == on_disk
    assert spoilt.json("get", "kettle")["content"] == f"The kettle opens with {GONE}"
    assert "secrets: ok" in spoilt.run("doctor", "--secrets").output
    assert "secrets" not in spoilt.run("doctor").output


def test_json_tells_the_same(spoilt: Program) -> None:
    looked = spoilt.json("doctor", "--secrets", "--no-mend", code=1)
    mended = spoilt.json("doctor", "--secrets")
    assert looked["healthy"] is False
    assert mended["healthy"] is True
    assert "secrets" in mended["checked"]
    told = [
        [finding["problem"] for finding in report["findings"] if finding["part"] == "secrets"]
        for report in (looked, mended)
    ]
    assert told[0] == told[1]
    assert {finding["mended"] for finding in mended["findings"]} == {True}
    assert spoilt.json("doctor", "--secrets")["findings"] == []


def test_what_only_a_person_can_mend_ends_with_1(program: Program) -> None:
    """An id is a name: with another one links would lead nowhere."""
    program.run("remember", "The kettle is blue", "--id", TOKEN)
    for _ in range(2):
        done = program.run("doctor", "--secrets", code=1)
        assert TOKEN not in done.output
        assert f"the name of memory '{GONE}'" in " ".join(done.output.split())
    program.run("forget", "--yes", TOKEN)
    program.run("doctor", "--secrets")
    assert files_with_a_secret(program) == []
