"""A life of memories, and a process that lives it until it is killed; started as a script, never collected.

dying.py count STORE                 live all of it, and print how long the log became and each step's moments
dying.py moment STORE FIRST STEP NUMBER
                                     go on from step FIRST, and be killed (SIGKILL) just before or after a call that
                                     reaches the disk, the NUMBERth of a later STEP, or where that step ends
dying.py torn STORE BYTES            be killed (SIGXFSZ) inside of the write that would make any file longer than BYTES

Each step is told on standard output, with one unbuffered write, when the call has returned: it is acknowledged.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
from operator import attrgetter
from pathlib import Path
from types import FrameType
from typing import Any

from tests.faults.rememberers import WORDS, marker

import commonplace
from commonplace.engine import Engine
from commonplace.types import Document

Step = tuple[str, dict[str, Any]]

STEPS = 60
COMMON = "heron"
"""A word of every memory."""
PEOPLE = ("Mira Okafor", "Lena Brandt", "Ines Duarte", "Olga Petrova")
PLACES = ("Oslo", "Bergen", "Lisbon", "Vienna", "Prague")
FIRMS = ("Acme", "Globex", "Initech")
_REACHING = frozenset(
    "execute executemany open close write pwrite fsync rename replace unlink rmdir mkdir link flock commit add_document"
    " delete_documents wait_merging_threads".split()
)


def text(chance: random.Random, number: int) -> str:
    """Return a text that no other step has."""
    return f"Entry {number}: {COMMON} {marker('x', number)} by the {' '.join(chance.choices(WORDS, k=25))}"


def prepared() -> list[dict[str, Any]]:
    """Return the memories that are there before."""
    chance = random.Random(7)
    return [{"content": text(chance, 9000 + n), "id": f"old {n}", "tags": [f"tag{n % 3}"]} for n in range(12)]


class Author:
    """Writes steps that can be taken one after the other, each kind as often; it knows what is live and archived."""

    KINDS = (
        "remember many turn update tag touch archive restore forget link document search episode fact take_back".split()
    )

    def __init__(self) -> None:
        self._chance = random.Random(12)
        self._live = [f"old {n}" for n in range(12)]
        self._archived: list[str] = []
        self._said: list[str] = []
        self._next: list[str] = []

    def step(self, number: int) -> Step:
        if not self._next:
            self._next = self._chance.sample(self.KINDS, len(self.KINDS))
        kind = self._next.pop()
        step: Step = getattr(self, kind)(number)
        return step

    def remember(self, number: int) -> Step:
        return "remember", self._new(number, f"new {number}")

    def many(self, number: int) -> Step:
        return "remember_many", {"items": [self._new(100 * (number + 1) + n, f"new {number}.{n}") for n in range(4)]}

    def turn(self, number: int) -> Step:
        return "remember", {**self._new(number, f"new {number}"), "session": "talk"}

    def update(self, number: int) -> Step:
        return "update", {"id": self._one(), "content": text(self._chance, number)}

    def tag(self, number: int) -> Step:
        return "update", {"id": self._one(), "tags": [f"tag{number}"], "metadata": {"step": number}}

    def touch(self, _: int) -> Step:
        return "touch", {"id": self._one(), "reinforce": True}

    def archive(self, _: int) -> Step:
        self._archived.append(self._one())
        self._live.remove(self._archived[-1])
        return "archive", {"id": self._archived[-1]}

    def restore(self, number: int) -> Step:
        if not self._archived:
            return self.archive(number)
        self._live.append(self._archived.pop())
        return "restore_memory", {"id": self._live[-1]}

    def forget(self, _: int) -> Step:
        self._live.remove(gone := self._one())
        return "forget", {"id": gone}

    def link(self, _: int) -> Step:
        source, target = self._chance.sample(self._live, 2)
        return "link", {"source": source, "target": target, "strength": 0.5}

    def document(self, number: int) -> Step:
        return "index_documents", {"documents": [Document(f"page {number % 2}", text(self._chance, number))]}

    def search(self, number: int) -> Step:
        return "search", {"query": f"{COMMON} {WORDS[number % len(WORDS)]}"}

    def episode(self, number: int) -> Step:
        self._said.append(f"said {number}")
        content = f"{PEOPLE[number % 4]} moved to {PLACES[number % 5]}. She works for {FIRMS[number % 3]}."
        return "graph.add_episode", {"content": content, "uuid": self._said[-1], "reference_time": 1e9 + 1e6 * number}

    def fact(self, number: int) -> Step:
        ends = {"source": PEOPLE[number % 4], "target": FIRMS[number % 3]}
        return "graph.add_triplet", {**ends, "relation_type": "WORKS_FOR", "valid_from": 1e9 + 1e6 * number}

    def take_back(self, number: int) -> Step:
        """Delete an episode, so that what it had ended holds again."""
        if not self._said:
            return self.episode(number)
        return "graph.delete_episode", {"uuid": self._said.pop(self._chance.randrange(len(self._said)))}

    def _one(self) -> str:
        return self._chance.choice(self._live)

    def _new(self, number: int, id_: str) -> dict[str, Any]:
        self._live.append(id_)
        return {"content": text(self._chance, number), "id": id_}


def steps() -> list[Step]:
    """Return what happens, the same each time: calls of an engine with their arguments."""
    author = Author()
    return [author.step(number) for number in range(STEPS)]


def take(book: Engine, step: Step) -> None:
    """Take one step."""
    name, arguments = step
    attrgetter(name)(book)(**arguments)


class Moments:
    """Counts what comes right before and right after calls that reach the disk, and ends the process at one of them.

    As a context it ends it where the work is done, at the latest: no two runs have quite as many moments.
    """

    def __init__(self, last: int | None) -> None:
        self.seen = 0
        self._last = last

    def __enter__(self) -> None:
        sys.setprofile(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        sys.setprofile(None)
        if self._last is not None and kind is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, _frame: FrameType, event: str, function: Any) -> None:
        if event not in ("c_call", "c_return") or function.__name__ not in _REACHING:
            return
        if not isinstance(function.__self__, str):
            self.seen += 1
            if self.seen == self._last:
                self.end()

    def end(self) -> None:
        """Do at that moment what it was waited for."""
        os.kill(os.getpid(), signal.SIGKILL)


def live(store: Path, first: int, last: int | None, number: int | None) -> tuple[int, list[int]]:
    """Take steps, telling of each, or be killed in the last; return the log's most bytes, and moments by step."""
    longest, log, counts = 0, store / "store.db-wal", []
    with commonplace.open(store) as book:
        for at, step in enumerate(steps()[first:], first):
            moments = Moments(number if at == last else None)
            with moments:
                take(book, step)
            os.write(1, b"%d\n" % at)
            counts.append(moments.seen)
            longest = max(longest, log.stat().st_size)
    return longest, counts


def main() -> None:
    kind, store, *numbers = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if kind == "torn":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(numbers[0]), int(numbers[0])))
    first, last, number = map(int, numbers) if kind == "moment" else (0, None, None)
    longest, counts = live(Path(store), first, last, number)
    if kind == "count":
        print(longest, *counts)


if __name__ == "__main__":
    main()
