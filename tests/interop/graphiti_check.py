"""Try the connector against graphiti-core over FalkorDB; run by `scripts/interop.py` where these are installed.

Arguments: the Python that has both, the directory to work in. Prints one line for each thing that was seen to work, and
for each that the server cannot do and Commonplace said so; ends with an assertion error at the first surprise.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commonplace.engine.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.settings import load

HERE = Path(__file__).resolve().parent
LIMIT_S = 60.0
TEXT = "Ann works at Acme. Acme makes Anvils. auth.ts depends on token.ts."


@contextmanager
def backends(python: str) -> Iterator[dict[str, str]]:
    """Start the database and the model, and yield the variables that name them."""
    command = [python, str(HERE / "graphiti_backends.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        found = json.loads(process.stdout.readline())
        yield {"FALKORDB_URI": found["falkordb"], "OPENAI_BASE_URL": found["model"], "GRAPHITI_TELEMETRY_ENABLED": "0"}
        process.stdin.close()


@contextmanager
def served(python: str, variables: dict[str, str], database: str) -> Iterator[str]:
    """Start the server over HTTP, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [python, str(HERE / "graphiti_mcp.py"), "--port", str(port)]
    environment = {**os.environ, **variables, "FALKORDB_DATABASE": database}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        until(lambda: is_open(port))
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def until(holds: Callable[[], Any]) -> None:
    """Wait until something holds: Graphiti takes an episode in after it has answered."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.2)


@contextmanager
def opened(store: Path, uri: str, namespace: str = "default", **more: Any) -> Iterator[Engine]:
    flags = {"store.path": str(store), "graph.backend": "graphiti-mcp", "graph.graph_uri": uri, "graph.timeout_s": 30.0}
    flags |= {f"graph.{name}": value for name, value in more.items()}
    settings = load(flags, environment={}, user_file=store / "none.toml")
    with open_engine(store, namespace, None, settings=settings) as engine:
        yield engine


def tell(what: str) -> None:
    print(what, flush=True)


def ask(store: Path, url: str) -> None:
    """Add an episode, and ask for it in every way."""
    with opened(store, url) as book:
        book.graph.add_episode(TEXT, uuid="one")
        until(lambda: len(book.graph.search_edges("where does Ann work")))
        found = book.graph.search_edges("where does Ann work")
        assert (found[0].fact, found[0].source_name, found.degraded) == ("Ann works at Acme", "Ann", False), found
        [ann] = [each for each in book.graph.search_entities("Ann") if each.name == "Ann"]
        near = book.graph.search_edges("Ann works at", center_node_uuid=ann.uuid)
        assert near[0].fact == "Ann works at Acme", near
        context = book.graph.build_context([ann.uuid])
        assert "Ann works at Acme" in context.text and not context.missing, context
        reached = [each.name for each in book.graph.neighbourhood(ann.uuid, 2).entities]
        assert reached == ["Ann", "Acme", "Anvils"], reached
        answer = book.specialist.handle("TASK REQ:query_graph Ann IN:MEM OUT:SUMMARY\n")
        assert answer.startswith("STATUS OK") and "Ann→Acme" in answer, answer
        assert [each.uuid for each in book.graph.episodes()] == ["one"]
    with opened(store, url) as book:
        again = book.graph.search_edges("Ann works at", center_node_uuid=ann.uuid)
        assert again[0].fact == "Ann works at Acme", again
    tell("search, centre, context, neighbourhood, query_graph and episodes")


def forget_in_its_own_graph(store: Path, url: str) -> None:
    """Add a fact and delete an episode where the server's database is the namespace's group."""
    with opened(store, url) as book:
        book.graph.add_triplet("Bo", "USES", "Vim")
        until(lambda: [each.fact for each in book.graph.search_edges("Bo uses Vim")][:1] == ["Bo uses Vim"])
        gone = book.graph.delete_episode("one")
        assert not gone.degraded, gone
        assert len(book.graph.search_edges("where does Ann work")) == 0
        assert book.graph.sync().waiting == 0
    tell("FALKORDB_DATABASE is the group: a fact is found, an episode is deleted")


def forget_in_another_graph(store: Path, url: str) -> None:
    """Try to delete where the server's database is another, and see that nothing is called done that is not."""
    with opened(store, url) as book:
        book.graph.delete_episode("one")
        told = book.graph.sync()
        assert told.waiting == 1 and "cannot be deleted there" in told.notices[0], told
        assert len(book.graph.search_edges("where does Ann work")) == 1
    with opened(store, url, "team") as book:
        book.graph.add_episode("Cy lives in Rome.")
        until(lambda: len(book.graph.search_edges("Cy lives in Rome")))
    with opened(store, url) as book:
        receipt = book.forget_namespace("team", confirm="team")
        assert not receipt.verified and receipt.found[0][0] == "Graphiti, group team__main", receipt
    tell(f"FALKORDB_DATABASE is not the group: the server cannot delete, which is said: {receipt.found[0][1]}")


def over_pipes(python: str, store: Path, variables: dict[str, str]) -> None:
    """Let a server be started, told and ended, and find in the next one what it was told."""
    os.environ.update({name: value for name, value in variables.items() if name != "FALKORDB_URI"})
    command = shlex.join([python, str(HERE / "graphiti_mcp.py"), "--transport", "stdio"])
    chosen = {"uri": variables["FALKORDB_URI"], "server": command, "group": "pipes"}
    with opened(store, **chosen) as book:
        book.graph.add_episode(TEXT, uuid="one")
    with opened(store, **chosen) as book:
        assert book.graph.sync().waiting == 0
        found = book.graph.search_edges("where does Ann work")
        assert found[0].fact == "Ann works at Acme", found
        assert not book.graph.delete_episode("one").degraded
        assert len(book.graph.search_edges("where does Ann work")) == 0
    tell("standard input and output: what was told has arrived when the server is ended, and can be deleted")


def export(python: str, store: Path, variables: dict[str, str]) -> None:
    """Let graphiti-core take in a whole export."""
    file = store.with_suffix(".json")
    with open_engine(store, "default", None) as book:
        book.graph.add_episode("Ann works at Acme since 2020. Bo moved to Berlin in May 2021.", name="review")
        book.graph.add_triplet("the kettle", "USES", "the teapot", valid_from="2020-01-01")
        book.remember("Ann lives in Rome.")
        written = book.graph.export_graphiti(file)
    command = [python, str(HERE / "graphiti_import.py"), str(file)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-600:]
    counts = json.loads(done.stdout)
    wanted = {"episodes": written.episodes, "entities": written.entities, "relations": written.relations}
    assert wanted.items() <= counts.items(), (wanted, counts)
    tell(f"an export is taken in by graphiti-core: {done.stdout.strip()}")


def main(python: str, home: Path) -> None:
    """Run all checks."""
    for database, forget in (("main", forget_in_its_own_graph), ("default_db", forget_in_another_graph)):
        with backends(python) as variables, served(python, variables, database) as url:
            ask(home / database, url)
            forget(home / database, url)
    with backends(python) as variables:
        over_pipes(python, home / "pipes", variables)
        export(python, home / "export", variables)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
