"""What a process that serves memories has not loaded: each of these costs it memory and time for nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import commonplace

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
