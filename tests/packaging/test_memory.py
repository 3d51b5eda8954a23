"""What a process that serves memories has not loaded: each of these costs it memory and time for nothing."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mcp import Server

import commonplace
from commonplace.benchmarks.harness import memory_of

NEEDLESS = {
    "a command line's": "click rich yaml jsonschema pathspec regex",
    "the net's": "asyncio socket ssl http urllib.request email xml concurrent.futures multiprocessing subprocess",
    "NumPy's, which it loads when asked": "numpy.ma numpy.random numpy.fft numpy.polynomial numpy.testing",
    "of settings files": "tomllib difflib",
    "OpenSSL's": "hashlib _hashlib",
    "ours, of what is done seldom": (
        "commonplace.cli commonplace.benchmarks commonplace.store.check commonplace.index.writer "
        "commonplace.index.writer commonplace.index.writer"
    ),
}
if sys.platform == "linux":
    # Elsewhere platformdirs tells where the user's files lie, and loads the others.
    NEEDLESS["of directories"] = "platformdirs tempfile random shutil bz2 lzma"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules of a process that has opened a store with an index, remembered and recalled."""
    place = tmp_path_factory.mktemp("place") / "store"
    with commonplace.open(place) as book:
        book.remember("We chose Postgres for billing.")
        book.recall("billing")
    code = (
        "import sys, commonplace\n"
        f"book = commonplace.open({str(place)!r})\n"
        "book.remember('Ada leads the team since May.', tags=['team'])\n"
        "assert book.recall('what does billing use').hits\n"
        "print(*sys.modules, sep='\\n')\n"
        "book.close()\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("whose", NEEDLESS)
def test_a_process_that_remembers_and_recalls_has_not_loaded(loaded: set[str], whose: str) -> None:
    """Resident memory is told by a benchmark; what it grows by, if nobody looks, is told here."""
    assert loaded & set(NEEDLESS[whose].split()) == set()


def test_the_list_names_modules_that_there_are() -> None:
    """A misspelt name would never be found loaded."""
    code = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__name__)"
    names = " ".join(NEEDLESS.values()).split()
    done = subprocess.run([sys.executable, "-I", "-c", code, *names], check=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == len(names)


def test_a_store_in_a_file_does_not_load_what_reads_a_server(loaded: set[str]) -> None:
    assert loaded.isdisjoint({"commonplace.store.postings", "commonplace.search.recall_postgres"})


def test_a_process_that_only_recalls_has_not_loaded_what_reads_texts_for_the_graph(tmp_path: Path) -> None:
    """Its grammar and its words are megabytes, and needed by whoever remembers."""
    with commonplace.open(tmp_path) as book:
        book.remember("We chose Postgres for billing.")
    code = (
        "import sys, commonplace\n"
        f"book = commonplace.open({str(tmp_path)!r})\n"
        "assert book.recall('what does billing use').hits\n"
        "assert book.list()[0].content == 'We chose Postgres for billing.'\n"
        "book.close()\n"
        "print(*sys.modules, sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()
    assert "commonplace.search.retrieve" in loaded
    assert not [name for name in loaded if name.startswith(("commonplace.extract", "commonplace.graph."))]


def test_a_process_that_tells_what_is_known_of_a_memory_has_not_loaded_what_draws_or_asks_a_model(
    tmp_path: Path,
) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember("Ada Lovelace works at Babbage Ltd.")
    code = (
        "import sys, commonplace\n"
        f"book = commonplace.open({str(tmp_path)!r})\n"
        "assert 'Babbage' in book.graph.build_context(['Ada Lovelace'], max_facts=5).text\n"
        "book.close()\n"
        "print(*sys.modules, sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines())
    assert "commonplace.graph.query" in loaded
    drawing = {"commonplace.graph.drawing", "html", "html.entities"}
    assert loaded.isdisjoint({*drawing, "commonplace.graph.model_extraction", "commonplace.models.llm"})


def test_no_call_leaves_anything_to_the_garbage_collector(tmp_path: Path) -> None:
    """Values in a circle, and all that they hold, stay until it runs: megabytes after some hundred searches."""
    with commonplace.open(tmp_path) as book:
        calls = {
            "remember": lambda: book.remember(f"Ada leads team {len(book.list())}."),
            "recall": lambda: book.recall("who leads a team"),
            "context": lambda: book.context("write to the team"),
            "why": lambda: book.why(found := book.recall("team"), found.hits[0].id),
            "facts": lambda: book.graph.search_edges("Ada"),
        }
        left = {}
        for name, call in calls.items():
            for _ in range(3):  # what is made at the first use, classes and patterns, is made
                call()
            gc.collect()
            gc.disable()
            try:
                call()
                left[name] = gc.collect()
            finally:
                gc.enable()
    assert left == dict.fromkeys(calls, 0)


MIB = 1 << 20
MAX_OWN = 35 * MIB
"""Of a server with few memories that used each tool: 31 MiB with Python 3.11."""


def files_mapped(held: dict[str, int]) -> int:
    """Return how many bytes of files, libraries above all, a process has in memory."""
    return held["resident_bytes"] - held["anonymous_bytes"]


def files_of_libraries() -> int:
    """Return `files_mapped` of a process that has loaded the compiled libraries and done nothing.

    How much of a file is mapped at once differs by a third on one machine: files that were just installed lie in
    larger pieces in the system's cache than those that were read from the disk.
    """
    code = (
        "import os, sqlite3, unicodedata, Stemmer, numpy\n"
        "from commonplace.benchmarks.harness import memory_of\n"
        "held = memory_of(os.getpid())\n"
        "print(held['resident_bytes'] - held['anonymous_bytes'])\n"
    )
    return int(subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has in memory")
def test_a_server_that_used_every_tool_stays_small(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="static") as book:
        book.remember_many([{"content": f"Ada Lovelace leads project {number} at Babbage Ltd."} for number in range(9)])
    with Server(tmp_path / "store") as server:
        server.greet()
        for _ in range(3):
            server.call("memory_search", {"query": "who leads a project"})
        ids = [server.call("memory_store", {"content": said})["id"] for said in ("Bo moved to Oslo.", "I like figs.")]
        server.call("memory_get", {"path": f"memory:{ids[0]}"})
        server.call("memory_link", {"source": ids[0], "target": ids[1]})
        server.call("memory_graph", {"id": ids[0]})
        server.call("memory_context", {"task": "write to the project's lead"})
        server.call("memory_why", {"query": "where does Bo live", "id": ids[0]})
        server.call("memory_forget", {"ids": [ids[1]], "confirm": True})
        held = memory_of(server.pid)
    assert held["anonymous_bytes"] < MAX_OWN
    assert files_mapped(held) < files_of_libraries()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has in memory")
def test_libraries_whose_pages_were_given_back_work_on(tmp_path: Path) -> None:
    """What the linker has written into them stands in no file, and must stay."""
    code = (
        "import os, sqlite3, sys\n"
        "import numpy as np\n"
        "from commonplace.benchmarks.harness import memory_of\n"
        "from commonplace.mcp.server import give_back_libraries\n"
        "before = memory_of(os.getpid())['resident_bytes']\n"
        "give_back_libraries()\n"
        "after = memory_of(os.getpid())['resident_bytes']\n"
        "assert np.linalg.norm(np.ones((4, 4)) @ np.ones((4, 4))) == 16\n"
        "assert sqlite3.connect(':memory:').execute('SELECT upper(?)', ('a',)).fetchone() == ('A',)\n"
        "print(before - after)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 4 * MIB
