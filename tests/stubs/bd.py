"""A program that behaves like `bd`, the command line of beads, in several versions; it is no test.

It keeps its issues in `.beads/issues.json`. What it is told by BD_FAKE decides how it behaves, several words apart by
commas: `array`, `envelope` (how newer versions answer), `stale` (it shows a claimed
issue as open, as a slow replica would), `rubbish`, `fail`, `error` (JSON that tells an error), `hang`, `silent`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

BEHAVIOUR = os.environ.get("BD_FAKE", "").split(",")
DATABASE = Path(".beads/issues.json")
VALUES = {"-t", "-p", "-l", "--notes", "--reason", "--status", "--assignee", "--append-notes", "--label", "--limit"}


Flags = dict[str, list[str]]
Issue = dict[str, Any]
Issues = dict[str, Issue]


def fail(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(1)


def parsed(arguments: list[str]) -> tuple[Flags, list[str]]:
    """Return flags with their values, and what is no flag."""
    flags: Flags = {}
    rest: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--":
            return flags, rest + arguments[place + 1 :]
        if not argument.startswith("-"):
            rest.append(argument)
            continue
        name, _, value = argument.partition("=")
        if name not in VALUES | {"--claim", "--json"}:
            fail(f"Error: unknown flag: {name}")
        flags.setdefault(name, []).append(value)
    return flags, rest


def told(answer: object) -> None:
    if "envelope" in BEHAVIOUR:
        answer = {"schema_version": 1, "data": answer}
    elif "array" in BEHAVIOUR and isinstance(answer, dict):
        answer = [answer]
    print(json.dumps(answer))


def misbehave() -> None:
    """Fail, hang or talk as the behaviour has it."""
    if "rubbish" in BEHAVIOUR:
        print("Welcome to beads!")
        sys.exit(0)
    if "fail" in BEHAVIOUR:
        fail("Error: database is locked\nby ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8")
    if "error" in BEHAVIOUR:
        print('{"error": "no such database"}')
        sys.exit(0)
    if "silent" in BEHAVIOUR:
        sys.exit(3)
    if "hang" in BEHAVIOUR:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # holds the output open
        time.sleep(600)


def listed(flags: Flags, issues: Issues) -> list[Issue]:
    assert flags["--limit"] == ["0"]
    wanted = set(flags.get("--label", []))
    return [each for each in issues.values() if each["status"] in flags["--status"] and wanted <= set(each["labels"])]


def created(flags: Flags, title: str, number: int) -> Issue:
    return {
        "id": f"bd-{number}",
        "title": title,
        "notes": flags["--notes"][0],
        "status": "open",
        "priority": int(flags["-p"][0]),
        "issue_type": flags["-t"][0],
        "labels": flags["-l"][0].split(","),
        "created_at": f"2026-01-0{number}T00:00:00Z",
        "owner": "me",
    }


def update(flags: Flags, issue: Issue) -> None:
    if "--claim" in flags:
        if issue.get("assignee"):
            fail(f"Error: issue already claimed by {issue['assignee']}")
        issue.update(assignee="me", status="in_progress")
    issue.update({name: flags[f"--{name}"][0] for name in ("status", "assignee", "notes") if f"--{name}" in flags})
    if "--append-notes" in flags:
        issue["notes"] += "\n" + flags["--append-notes"][0]


def main() -> None:
    misbehave()
    flags, (command, *words) = parsed([argument for argument in sys.argv[1:] if argument != "--json"])
    issues: Issues = json.loads(DATABASE.read_text()) if DATABASE.exists() else {}
    if command == "list":
        told(listed(flags, issues))
        return
    if command == "create":
        issue = created(flags, words[0], len(issues) + 1)
        issues[issue["id"]] = issue
    elif words[0] not in issues:
        fail(f"Error: issue not found: {words[0]}")
    issue = issues[words[0]] if command != "create" else issue
    if command == "update":
        update(flags, issue)
    elif command == "close":
        issue.update(status="closed", close_reason=flags["--reason"][0], closed_at="2026-02-01T00:00:00Z")
    elif command == "reopen":
        issue.update(status="open")
    DATABASE.write_text(json.dumps(issues))
    told({**issue, "status": "open"} if command == "show" and "stale" in BEHAVIOUR else issue)


main()
