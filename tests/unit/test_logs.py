"""Logs: whole lines, bounded files, and no query's text unless it was asked for."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace import logs
from commonplace.logs import LineFile, RetrievalLog, attach, blank_lines, detach, query_hash


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_nothing_is_created_before_the_first_line(tmp_path: Path) -> None:
    """A command that logs nothing leaves no empty files behind."""
    handler = attach(tmp_path / "logs", level="warning")
    RetrievalLog(tmp_path / "logs", queries="hash")
    logging.getLogger("commonplace.store").info("quiet")
    detach(handler)
    assert not (tmp_path / "logs").exists()


def test_what_is_logged_reaches_the_program_again_after_the_last_handler(tmp_path: Path) -> None:
    logger = logging.getLogger("commonplace")
    first, second = attach(tmp_path / "a", level="info"), attach(tmp_path / "b", level="info")
    detach(first)
    assert (logger.propagate, logger.level) == (False, logging.INFO)
    detach(second)
    assert (logger.propagate, logger.level) == (True, logging.NOTSET)


def test_record_becomes_one_json_line_with_its_fields(tmp_path: Path) -> None:
    """Other programs read the log; a message with a newline stays one line."""
    handler = attach(tmp_path, level="info")
    logging.getLogger("commonplace.store").warning("two\nlines", extra={"fields": {"passages": 3}})
    detach(handler)
    (line,) = lines(tmp_path / "commonplace.jsonl")
    assert (line["message"], line["level"], line["logger"]) == ("two\nlines", "warning", "commonplace.store")
    assert line["fields"] == {"passages": 3}


def test_traceback_is_kept(tmp_path: Path) -> None:
    """The screen shows one sentence; the log has the rest."""
    handler = attach(tmp_path, level="error")
    try:
        int("broken")
    except ValueError:
        logging.getLogger("commonplace").exception("failed")
    detach(handler)
    (line,) = lines(tmp_path / "commonplace.jsonl")
    assert "ValueError: invalid literal" in str(line["traceback"])


def test_level_off_writes_nothing(tmp_path: Path) -> None:
    """Who turns logging off means it."""
    handler = attach(tmp_path, level="off")
    logging.getLogger("commonplace").critical("loud")
    detach(handler)
    assert list(tmp_path.iterdir()) == []


def test_file_is_put_aside_at_its_size_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are bounded."""
    monkeypatch.setattr(logs, "MAX_BYTES", 30)
    monkeypatch.setattr(logs, "KEPT", 2)
    file = LineFile(tmp_path / "a.jsonl")
    for number in range(7):
        file.write({"number": number, "pad": "x" * 10})
    kept = {path.name: [line["number"] for line in lines(path)] for path in sorted(tmp_path.iterdir())}
    assert kept == {"a.jsonl.1": [6], "a.jsonl.2": [5]}


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    """An MCP server, a hook and a command log to one file at once."""
    program = (
        "import sys; from pathlib import Path; from commonplace.logs import LineFile\n"
        "file = LineFile(Path(sys.argv[1]))\n"
        "for number in range(50): file.write({'child': int(sys.argv[2]), 'number': number, 'pad': 'y' * 3000})"
    )
    path = tmp_path / "a.jsonl"
    children = [subprocess.Popen([sys.executable, "-c", program, str(path), str(child)]) for child in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    written = lines(tmp_path / "a.jsonl")
    assert sorted((line["child"], line["number"]) for line in written) == [(c, n) for c in range(4) for n in range(50)]


def test_full_or_missing_disk_does_not_stop_the_work(tmp_path: Path) -> None:
    """Logging is a convenience; a search goes on without it."""
    (tmp_path / "logs").write_text("a file where the directory should be")
    RetrievalLog(tmp_path / "logs", queries="hash").write("q", {})
    handler = attach(tmp_path / "logs", level="info")
    logging.getLogger("commonplace").error("lost")
    detach(handler)
    assert (tmp_path / "logs").read_text() == "a file where the directory should be"


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        ("hash", {"at": "1970-01-01T00:00:00Z", "query_hash": query_hash("who"), "hits": 2}),
        ("text", {"at": "1970-01-01T00:00:00Z", "query": "who", "hits": 2}),
    ],
)
def test_retrieval_line_names_its_query_as_the_setting_says(
    tmp_path: Path, queries: str, expected: dict[str, object]
) -> None:
    """Queries tell what a person works on; by default the log has only their hash."""
    RetrievalLog(tmp_path, queries=queries).write("who", {"hits": 2}, now=0.0)
    assert lines(tmp_path / "retrieval" / "retrieval.jsonl") == [expected]


def test_retrieval_log_can_be_off(tmp_path: Path) -> None:
    """`log.queries = "off"` leaves no trace of a search."""
    RetrievalLog(tmp_path, queries="off").write("who", {"hits": 2})
    assert list(tmp_path.iterdir()) == []


def test_log_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """They may hold the text of queries."""
    RetrievalLog(tmp_path, queries="text").write("who", {})
    assert (tmp_path / "retrieval" / "retrieval.jsonl").stat().st_mode & 0o077 == 0


def offsets(data: bytes, word: bytes) -> list[int]:
    return [place for place in range(len(data)) if data.startswith(word, place)]


def test_lines_that_hold_something_are_blanked_in_every_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten must not be read in a log; every other line stays, and each line is JSON."""
    monkeypatch.setattr(logs, "MAX_BYTES", 200)
    log = RetrievalLog(tmp_path, queries="text")
    for query in ("apple", "pear", "apple pie", "plum", "apple"):
        log.write(query, {}, now=0.0)
    LineFile(tmp_path / "commonplace.jsonl").write({"message": "apple apple"})
    assert blank_lines(tmp_path, lambda data: offsets(data, b"apple"), dry_run=True) == 4
    before = sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl*"))
    assert blank_lines(tmp_path, lambda data: offsets(data, b"apple")) == 4
    assert blank_lines(tmp_path, lambda data: offsets(data, b"apple")) == 0
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl*")) == before
    left = [line for path in sorted(tmp_path.rglob("*.jsonl*")) for line in lines(path)]
    assert sorted(str(line.get("query", "")) for line in left) == ["", "", "", "", "pear", "plum"]


def test_a_line_that_is_appended_while_others_are_blanked_is_not_lost(tmp_path: Path) -> None:
    """Another process logs at this very moment; a file in the place of the old one would miss its line."""
    file = LineFile(tmp_path / "a.jsonl")
    file.write({"word": "apple"})

    def find_and_append(data: bytes) -> list[int]:
        file.write({"word": "pear"})
        return offsets(data, b"apple")

    assert blank_lines(tmp_path, find_and_append) == 1
    assert lines(tmp_path / "a.jsonl") == [{}, {"word": "pear"}]


def test_logs_that_do_not_exist_have_no_lines(tmp_path: Path) -> None:
    """Most stores never log."""
    assert blank_lines(tmp_path / "logs", lambda data: [0]) == 0
