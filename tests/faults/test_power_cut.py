"""What a power cut leaves: the log of the store cut off anywhere, pages and index files empty or full of zeros.

A commit is acknowledged when its part of the log is on the disk. Of everything written later, any part may be missing.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import commonplace

MEMORIES = 24
LOG = "store.db-wal"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Copy a store while it is open; return it with the length of its log when each memory was acknowledged."""
    place, copy = tmp_path_factory.mktemp("running") / "store", tmp_path_factory.mktemp("cut") / "store"
    lengths = []
    with commonplace.open(place) as book:
        book.remember("Invoices are kept in Postgres", id="m0", tier="short")
        for number in range(1, MEMORIES):
            book.remember(f"Heron {number} stands by pond {number * 7}", id=f"m{number}", tier="short")
            lengths.append((place / LOG).stat().st_size)
        book.recall("heron")
        shutil.copytree(place, copy)
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
    return copy, lengths


def cut(running: tuple[Path, list[int]], place: Path, chance: random.Random) -> int:
    """Make a store whose log ends somewhere; return how many memories were acknowledged by then."""
    whole, lengths = running
    shutil.copytree(whole, place)
    log = (whole / LOG).read_bytes()
    end = chance.randrange(lengths[0], len(log) + 1)
    tail = chance.choice([b"", bytes(chance.randrange(1, 9_000)), chance.randbytes(chance.randrange(1, 9_000))])
    (place / LOG).write_bytes(log[:end] + tail)
    files = [path for path in place.rglob("*") if path.is_file() and not path.name.startswith("store.db")]
    for path in chance.sample(files, chance.randrange(len(files) // 2)):
        size = path.stat().st_size
        path.write_bytes(chance.choice([b"", bytes(size), path.read_bytes()[: size // 2]]))
    return 1 + sum(length <= end for length in lengths)


@pytest.mark.parametrize("cuts", [pytest.param(8, id="short"), pytest.param(200, id="long", marks=pytest.mark.soak)])
def test_nothing_acknowledged_is_lost_by_a_power_cut(
    running: tuple[Path, list[int]], tmp_path: Path, cuts: int
) -> None:
    """What is there afterwards is the beginning of what was remembered; it finds, and takes in more."""
    chance = random.Random(20261122)
    for number in range(cuts):
        place = tmp_path / str(number)
        acknowledged = cut(running, place, chance)
        with commonplace.open(place) as book:
            live = {memory.id for memory in book.list(limit=100, statuses=["active", "promoted"])}
            assert live == {f"m{each}" for each in range(len(live))}, f"cut {number}"
            assert acknowledged <= len(live) <= MEMORIES, f"cut {number}"
            assert book.recall("where are the invoices kept").hits[0].owner_id == "m0"
            book.doctor()
            assert book.doctor().findings == (), f"cut {number}"
            book.remember("An egret came after the cut", id="after")
            assert book.get("after").content == "An egret came after the cut"
        shutil.rmtree(place)
