"""Many processes on one store, some of them killed: searches answer, nothing breaks, the next build completes."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from tests.processes import finish, start

import commonplace

SCRIPT = Path(__file__).with_name("processes.py")
WORDS = "amber basalt cedar delta ember fjord garnet harbour indigo juniper kelp lagoon maple nectar opal".split()


def write_tree(root: Path, files: int, version: int) -> None:
    """Write Markdown files that name their number and version and are otherwise alike from one version to the next."""
    chance = random.Random(f"{root.name} {version}")
    for number in range(files):
        path = root / f"part{number % 10}" / f"note{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(" ".join(chance.choices(WORDS, k=30)) for _ in range(3))
        path.write_text(f"# Note {number}\n\nThe lighthouse keeps marker{root.name}{number} v{version}.\n\n{body}\n")


def check_store(store: Path) -> None:
    """Look at the store as a person would after an accident, without mending anything."""
    with commonplace.open(store) as book:
        report = book.doctor(mend=False)
        assert report.is_healthy, report.findings


def storm(directory: Path, files: int, kills: int) -> int:
    """Return how many searches were answered, all of them rightly, while processes indexed and died."""
    store = directory / ".commonplace"
    steady, doomed = directory / "steady", directory / "doomed"
    for root in (steady, doomed):
        write_tree(root, files, 0)
    calls = int(finish(start(SCRIPT, "count", store, doomed)))
    finish(start(SCRIPT, "index", store, steady))
    searchers = [
        start(SCRIPT, "search", store, f"marker{root.name}{number}", f"{root.name}/part{number}/note{number}.md")
        for root, number in ((steady, 3), (doomed, 8))
    ]
    for searcher in searchers:
        assert searcher.stdout.readline() == "ready\n"

    points = sorted(random.Random(20).sample(range(1, calls * 9 // 10), kills))
    for version, point in enumerate(points, start=1):
        write_tree(steady, files, version)
        write_tree(doomed, files, version)
        worker = start(SCRIPT, "index", store, steady)
        victim = start(SCRIPT, "die", store, doomed, point)
        victim.communicate()
        assert victim.returncode == -signal.SIGKILL
        finish(worker)
        check_store(store)

    answered = [int(finish(searcher)) for searcher in searchers]
    finish(start(SCRIPT, "index", store, doomed))
    check_store(store)
    with commonplace.open(store) as book:
        status = book.index_status()
        assert status.indexed_change == status.change
        assert status.waiting == 0
        assert status.counts["artifacts"] == 2 * files
        for number in random.Random(7).sample(range(files), 20):
            for root in (steady, doomed):
                hit = book.search(f"marker{root.name}{number}", limit=1, method="bm25", min_score=0.0).hits[0]
                assert hit.path.endswith(f"note{number}.md")
                assert f"marker{root.name}{number} v{len(points)}." in hit.text
    return sum(answered)


def test_searches_answer_and_nothing_breaks_while_indexing_processes_are_killed(tmp_path: Path) -> None:
    """A client, a hook and a command line share a store, and any of them may be killed at any call."""
    assert storm(tmp_path, files=60, kills=3) >= 2


@pytest.mark.soak
def test_the_same_holds_for_10_000_files_and_20_kills(tmp_path: Path) -> None:
    """The size at which transactions, segments and generations are many."""
    assert storm(tmp_path, files=10_000, kills=20) >= 2
