"""What the fault tests of Graphiti as a backend run in processes of their own; started as a script, never collected.

tellers.py STORE ADDRESS [CALL]     add a few episodes and a fact, and print each id when it is acknowledged; with CALL,
                                    be killed (SIGKILL) at the CALLth call, else print last how many calls that took
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.faults.processes import Calls

from commonplace.engine.open import open_engine
from commonplace.settings import load

EPISODES = 3


def main(store: str, address: str, last: int | None) -> None:
    flags = {"store.path": store, "graph.backend": "graphiti-mcp", "graph.graph_uri": address}
    settings = load(flags, environment={}, user_file=Path(store) / "none.toml")
    calls = Calls(last)
    with open_engine(store, "default", None, settings=settings) as book:
        book.graph.counts()
        sys.setprofile(calls)
        for number in range(EPISODES):
            added = book.graph.add_episode(f"module{number}.ts depends on token.ts.")
            assert added.episode is not None
            print(added.episode.uuid, flush=True)
        print(book.graph.add_triplet("Ann", "USES", "Vim").relations[0].uuid, flush=True)
        sys.setprofile(None)
    if last is None:
        print(calls.made)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
