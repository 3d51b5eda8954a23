"""What the fault tests of memories run in processes of their own; started as a script, never collected.

rememberers.py ROLE STORE ARGUMENTS     open STORE, print "ready", wait for a line, do as ROLE, print what came of it

ARGUMENTS and what is printed are JSON. Whoever starts several waits until all are ready: so they run at once.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError

WORDS = "amber basalt cedar delta ember fjord garnet harbour indigo juniper kelp lagoon maple nectar opal".split()


def marker(name: str, number: int) -> str:
    """Return a word that no other memory has, in letters alone, for a search takes digits as words of their own."""
    return f"marker{name}" + "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))


def sentence(name: str, number: int) -> str:
    """Return what process `name` remembers as its memory `number`."""
    words = " ".join(random.Random(f"{name} {number}").choices(WORDS, k=20))
    return f"Note {number} of {name}: {marker(name, number)} stands by the {words}."


def fill(book: Engine, name: str, count: int) -> list[str]:
    """Remember many texts, look for one of those so far after every fifth, and return the ids."""
    chance = random.Random(name)
    ids: list[str] = []
    for number in range(count):
        memory = book.remember(sentence(name, number))
        assert memory.outcome == "added", memory
        ids.append(memory.id)
        if number % 5 == 0:
            earlier = chance.randrange(number + 1)
            find = book.recall if number % 2 else book.search
            hits = find(f"what stands by {marker(name, earlier)}", min_score=0.0).hits
            assert ids[earlier] in [hit.owner_id for hit in hits], (name, earlier, hits)
    return ids


def repeat(book: Engine, text: str, count: int, tags: list[str]) -> list[list[str]]:
    """Remember the same again and again; return ids and outcomes."""
    kept = [book.remember(text, tags=tags) for _ in range(count)]
    return [[memory.id, memory.outcome] for memory in kept]


def talk(book: Engine, session: str, name: str, count: int) -> list[tuple[int, str]]:
    """Add turns to a conversation, every third time two at once; return places and ids."""
    places = []
    for number in range(count):
        turns = [f"{name} says {number}", f"{name} adds {number}"][: 2 if number % 3 == 0 else 1]
        kept = book.remember_many([{"content": turn, "session": session} for turn in turns])
        places += [(memory.position, memory.id) for memory in kept]
    return places


def touch(book: Engine, id_: str, count: int) -> int:
    """Touch one memory many times."""
    for _ in range(count):
        book.touch(id_)
    return count


def update(book: Engine, id_: str, field: str, values: list[Any]) -> list[int]:
    """Set one field of a memory to one value after the other; return the versions that made."""
    return [book.update(id_, **{field: value}).version for value in values]


def put_away(book: Engine, id_: str, count: int) -> int:
    """Archive one memory and bring it back, again and again; return how often it was there to be archived."""
    archived = 0
    for _ in range(count):
        archived += book.archive(id_).outcome == "archived"
        book.restore_memory(id_)
    return archived


def use_while_it_is_there(book: Engine, id_: str, count: int) -> int:
    """Update and touch one memory that others put away; return how many updates were taken."""
    taken = 0
    for number in range(count):
        with suppress(NotFoundError):
            book.update(id_, f"the heron stands, it was seen {number} times")
            taken += 1
            book.touch(id_)
    return taken


def forget(book: Engine, ids: list[str]) -> list[bool]:
    """Forget one memory after the other; return of each whether nothing was left that does not wait."""
    receipts = [book.forget(id_) for id_ in ids]
    return [receipt.found == () for receipt in receipts]


ROLES: dict[str, Callable[..., Any]] = {
    role.__name__: role for role in (fill, repeat, talk, touch, update, put_away, use_while_it_is_there, forget)
}


def main() -> None:
    role, store, arguments = sys.argv[1:]
    with commonplace.open(store) as book:
        print("ready", flush=True)
        sys.stdin.readline()
        outcome = ROLES[role](book, **json.loads(arguments))
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
