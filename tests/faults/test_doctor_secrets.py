"""A `doctor --secrets` that is killed: nothing was replaced yet, or the next plain `doctor` does the rest."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import pytest
from tests.processes import run
from tests.unit.erasure.test_secrets import GONE, OTHER, TOKEN, holding, spoil, store_file

import commonplace
from commonplace.engine import Engine
from commonplace.erasure.secrets import interrupted_run
from commonplace.logs import RetrievalLog
from commonplace.types import Selection

SCRIPT = Path(__file__).with_name("secret_menders.py")
KETTLES = {f"kettle {n}": f"Kettle {n} boils in {n + 2} minutes" for n in range(5)}
SPOILT = {"kettle 1": f"Kettle 1 opens with {TOKEN}", "kettle 3": f"Kettle 3 opens with {OTHER}"}
MENDED = {id_: text.replace(TOKEN, GONE).replace(OTHER, GONE) for id_, text in SPOILT.items()}


def fill(store: Path) -> tuple[str, ...]:
    """Make a store with secrets in two memories, a file, pages and logs, and in the index; return its generations."""
    with commonplace.open(store, namespace="theirs") as theirs:
        theirs.remember("Kettle", id="theirs")
        spoil(theirs, "theirs", record={"content": f"Theirs is {TOKEN}"})
    with commonplace.open(store) as book:
        book.remember_many([{"content": text, "id": id_} for id_, text in KETTLES.items()])
        book.link("kettle 1", "kettle 2")
        for id_, text in SPOILT.items():
            spoil(book, id_, record={"content": text})
        store_file(book, "keys.md", f"Here is {OTHER}")
        book.sync()
        assert book.doctor().is_healthy
    RetrievalLog(store / "logs", queries="text").write(f"who has {TOKEN}", {})
    return tuple(path.name for path in (store / "index").glob("g*"))


def contents(book: Engine) -> dict[str, str]:
    """Return what is stored; what the engine gives out never has a secret in it."""
    live = Selection(statuses=("active", "promoted"))
    return {stored.owner.id: stored.record.content for stored in book._runtime.store.memories(book.namespace, live)}


def kill(filled: Path, generations: tuple[str, ...], moment: int) -> str:
    """Kill a mending at one moment and look at what a plain doctor makes of it; return how far it had come."""
    store = filled.with_name(f"killed {moment}")
    shutil.copytree(filled, store)
    assert run(SCRIPT, "die", store, moment).returncode == -signal.SIGKILL
    with commonplace.open(store) as book, commonplace.open(store, namespace="theirs") as theirs:
        begun = interrupted_run(book._runtime.store) is not None
        report = book.doctor()
        assert report.is_healthy, report.findings
        outcome = "unfinished" if begun else "finished"
        if contents(book) == KETTLES | SPOILT:
            assert not begun
            outcome = "whole"
            assert book.doctor(secrets=True).is_healthy
        assert contents(book) == KETTLES | MENDED
        assert contents(theirs) == {"theirs": f"Theirs is {GONE}"}
        assert [(link.source, link.target) for link in book._runtime.store.links("default")] == [
            ("kettle 1", "kettle 2")
        ]
        assert holding(book) == []
        assert not {path.name for path in (store / "index").iterdir()}.intersection(generations)
        assert book.doctor(secrets=True).findings == ()
        book.sync()
        assert contents(book) == KETTLES | MENDED
        assert not list(store.rglob("*conflict*"))
    shutil.rmtree(store)
    return outcome


LATER = ["whole", "unfinished", "finished"]


def kill_at_moments(directory: Path, kills: int | None) -> list[str]:
    """Return what became of each store, the earliest kill first."""
    generations = fill(directory / "filled")
    shutil.copytree(directory / "filled", directory / "counted")
    counted = run(SCRIPT, "count", directory / "counted")
    assert counted.returncode == 0, counted.stderr
    moments = int(counted.stdout)
    middle = range(8, moments, 23) if kills is None else random.Random(7).sample(range(2, moments), kills)
    return [kill(directory / "filled", generations, moment) for moment in sorted({1, *middle})]


def test_killed_at_any_moment_nothing_was_replaced_or_the_next_doctor_does_the_rest(tmp_path: Path) -> None:
    outcomes = kill_at_moments(tmp_path, 4)
    assert outcomes == sorted(outcomes, key=LATER.index)
    assert {"whole", "unfinished"} <= set(outcomes)


@pytest.mark.soak
def test_the_same_holds_at_every_twenty_third_moment(tmp_path: Path) -> None:
    outcomes = kill_at_moments(tmp_path, None)
    assert outcomes == sorted(outcomes, key=LATER.index)
    assert {"whole", "unfinished"} <= set(outcomes)
