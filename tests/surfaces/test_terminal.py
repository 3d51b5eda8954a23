"""How results look on terminals of many kinds, and that no indexed text can do anything to them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.processes import PROGRAM, Child
from tests.surfaces.conftest import Program, made_once

from commonplace.formats.escaping import harmless, harmless_json, harmless_line

MAIN = "from commonplace.cli.main import main; main()"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""The only sequences that we send: colours, bold, dim, and their end."""

HOSTILE = (
    "# Sesame\n\nThe sesame\x1b[2J opens \x1b]0;owned\x07 the \x9b31mdoor\u202e for nobody\x08\x7f. Ünïcode — too.\n"
)


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "TERM": "xterm-256color", **changes}


def started(*arguments: str, has_terminal: bool = False, **changes: str) -> Child:
    """Start the program in this directory."""
    words, surroundings = [str(PROGRAM), *arguments], environment(**changes)
    request = {"arguments": words, "directory": str(Path.cwd()), "environment": surroundings}
    return Child(request, has_terminal=has_terminal)


def on_terminal(*arguments: str, **changes: str) -> str:
    """Return what a command writes to standard output on a terminal; progress bars go elsewhere."""
    parts = []
    with started(*arguments, has_terminal=True, **changes) as process:
        with suppress(OSError):  # the last writer has closed the terminal
            while part := os.read(process.stdout.fileno(), 65536):
                parts.append(part)
        assert process.wait() == 0, b"".join(parts)
    return b"".join(parts).decode().replace("\r\n", "\n")


def in_pipe(*arguments: str, **changes: str) -> tuple[bytes, bytes]:
    """Return what a command writes to standard output and to standard error."""
    with started(*arguments, **changes) as process:
        process.stdin.close()
        written = process.stdout.buffer.read(), process.stderr.buffer.read()
        assert process.wait() == 0, written
    return written


def in_locale(*arguments: str, **changes: str) -> bytes:
    """Return what a command writes to standard output in a locale, which an interpreter takes when it starts."""
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, capture_output=True, env=environment(**changes), check=True).stdout


@pytest.fixture(scope="module")
def hostile_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built index over a file whose name and text try to take over the terminal."""
    with made_once(tmp_path_factory) as program:
        (program.project / "docs" / "evil\x1b]0;owned\x07\nname.md").write_text(HOSTILE)
        (program.project / "docs" / "sesame.md").write_text(HOSTILE)
        program.run("init")
        program.run("index", "build")
    return program.project


@pytest.fixture
def hostile(bare: Program, hostile_once: Path) -> Program:
    """A copy of that project."""
    return bare.take(hostile_once)


@pytest.mark.parametrize("arguments", [("search", "sesame", "door"), ("search", "sesame", "--min-score", "0")])
def test_no_control_character_of_a_file_reaches_the_terminal(hostile: Program, arguments: tuple[str, ...]) -> None:
    """An indexed file must not clear the screen, retitle the window or turn the text round."""
    shown = STYLE.sub("", on_terminal(*arguments))
    assert "sesame" in shown
    assert r"\x1b[2J" in shown
    assert re.findall(r"[^\n\x20-\x7e\xa0-\u0fff—…·]", shown) == []


def test_no_control_character_of_a_file_reaches_a_pipe(hostile: Program) -> None:
    """What is piped ends on a terminal too."""
    for arguments in (("search", "sesame", "door"), ("index", "build", "--force"), ("index", "export")):
        written = b"".join(in_pipe(*arguments))
        assert re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]", written) == []
        assert re.findall("[\x80-\x9f\u202e]", written.decode()) == []


def test_json_shows_no_control_character_and_tells_the_same_text(hostile: Program) -> None:
    """The value is kept to the last character; only its spelling is harmless."""
    written, _ = in_pipe("search", "sesame", "door", "--json")
    found = json.loads(written)
    assert "\x9b31mdoor\u202e for nobody\x08\x7f." in found["hits"][0]["text"]
    assert re.findall("[\x7f-\x9f\u202e]", written.decode()) == []


def test_message_about_a_hostile_name_is_harmless(hostile: Program) -> None:
    """Errors repeat what was typed or found."""
    told = hostile.run("index", "build", "no\x1b[2J\nsuch", code=1).stderr
    assert told.startswith("error: there is no file or directory no\\x1b[2J\\nsuch; ")
    assert "\x1b" not in hostile.run("search", "x", "--type", "\x1b[2J", code=2).stderr


@pytest.mark.parametrize("columns", [60, 200])
def test_running_text_fits_the_terminal(program: Program, columns: int) -> None:
    """Prose is wrapped to the width of the terminal."""
    for words in (("session", "expires"), ("zebra", "quagga")):
        lines = STYLE.sub("", on_terminal("search", *words, COLUMNS=str(columns))).splitlines()
        body = [line for line in lines if line.startswith("   ")]
        assert body
        assert max(map(len, body)) <= columns
        assert [line for line in body if line != line.rstrip()] == []


def test_colours_are_for_terminals_that_want_them(program: Program) -> None:
    """A pipe gets plain text, and NO_COLOR is honoured: emphasis is bold, nothing is coloured."""
    assert "\x1b[36m" in on_terminal("search", "session")
    plain = on_terminal("search", "session", NO_COLOR="1")
    assert set(STYLE.findall(plain)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;2m", "\x1b[2;1m"}
    assert b"\x1b" not in in_pipe("search", "session")[0]
    assert "\x1b" not in on_terminal("search", "session", TERM="dumb")


@pytest.mark.parametrize("arguments", [("search", "sesame"), ("search", "sesame", "--json"), ("settings", "show")])
def test_terminal_without_utf_8_gets_escapes_and_no_error(hostile: Program, arguments: tuple[str, ...]) -> None:
    """A bare container has the C locale; a dash in a file must not end the search."""
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    text = in_locale(*arguments, **locale).decode("ascii")
    if "--json" in arguments:
        assert "Ünïcode — too." in json.loads(text)["hits"][0]["text"]
    elif arguments[0] == "search":
        assert r"\u2014" in text
        in_locale(*arguments, LC_ALL="C")


def test_arguments_that_are_no_text_are_told_and_not_fatal(program: Program) -> None:
    """A file name in another encoding arrives as bytes that no encoding can write."""
    done = subprocess.run(
        [sys.executable.encode(), b"-c", MAIN.encode(), b"search", b"caf\xe9", b"--json"],
        capture_output=True,
        env=environment(),
        check=True,
    )
    assert json.loads(done.stdout)["query"] == "caf\udce9"


def test_escapes_are_exact() -> None:
    """Each character that is changed is written as Python writes it; everything else stays."""
    assert harmless("a\x1b\x00\x9b\u202e\ud800\n\tü—日\\x1b") == "a\\x1b\\x00\\x9b\\u202e\\ud800\n\tü—日\\x1b"
    assert harmless_line("a\n\tb\r\u2028") == "a\\n\\tb\\r\\u2028"
    value = {"a\x9b": "\x1b\x7f\u202e\udc80ü"}
    text = harmless_json(value)
    assert text == '{"a\\u009b": "\\u001b\\u007f\\u202e\\udc80ü"}'
    assert json.loads(text) == value
    assert harmless_json("ü", ascii_only=True) == '"\\u00fc"'


def test_console_itself_lets_no_control_character_of_a_text_through(capsys: pytest.CaptureFixture[str]) -> None:
    """The net below all: whoever forgets to make a name harmless before printing it does no harm."""
    from rich.table import Table

    from commonplace.cli.output import console

    table = Table("name")
    table.add_row("\x1b[2Jcell\x9b")
    console().print("\x1b]0;owned\x07", style="bold")
    console().print(table)
    shown = capsys.readouterr().out
    assert r"\x1b[2J" in shown
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown) == []
