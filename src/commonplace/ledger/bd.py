"""The ledger kept by `bd`, the command line of beads.

Each call runs a process without a shell and with a deadline. Values are passed as `--flag=value`, so that none is
parsed as a flag.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from commonplace.errors import NotFoundError, ProviderError, UsageError
from commonplace.formats import beads
from commonplace.ledger import rules
from commonplace.ledger.ledger import ALL_ISSUES, Ledger
from commonplace.ledger.rules import ImportedIssues
from commonplace.types.ledger import ISSUE_STATUSES, UNFINISHED, Issue, IssueEvent, IssueSelection

TIMEOUT_S: Final = 30.0
DIRECTORY: Final = ".beads"
_MAX_EXCERPT_LENGTH: Final = 300


class BdLedger(Ledger):
    """The issues of a beads database. Every call raises a `ProviderError` if `bd` fails.

    Concurrent callers of `bd` may file the same issue, as it has no transaction over several commands. Only a claim is
    atomic. Claims never lapse, and issues are neither reopened nor escalated automatically.

    Args:
        program: the path of `bd`.
        directory: the directory that contains `.beads`.
    """

    def __init__(self, program: str, directory: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._program = program
        self._directory = directory
        self._timeout_s = timeout_s

    def _file(self, issue: Issue) -> str:
        for existing in self.selected(IssueSelection(agents=(issue.agent,), statuses=UNFINISHED)):
            if existing.memory_ids == issue.memory_ids:
                return existing.id
        options = [f"--notes={issue.notes}", "-t=task", f"-p={issue.priority}", f"-l={','.join(issue.labels)}"]
        created = self._run("create", *options, "--", issue.title)
        created = created[0] if isinstance(created, list) and created else created
        id_ = created.get("id") if isinstance(created, dict) else ""
        if not isinstance(id_, str) or not id_:
            raise self._misunderstood("create", json.dumps(created))
        return id_

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        issues = self.selected(IssueSelection(agents=(agent,), statuses=tuple(statuses)))
        return {id_ for issue in issues for id_ in issue.memory_ids}

    def claim(self, id_: str) -> bool:
        if self.get(id_).status != "open":
            return False
        try:
            self._run("update", "--claim", "--", id_)
        except ProviderError as error:
            if "claimed" in str(error).lower() or self.get(id_).status != "open":
                return False
            raise
        return True

    def close(self, id_: str, reason: str) -> None:
        line, issue = rules.required_line("reason", reason), self.get(id_)
        if issue.status == "closed":
            raise UsageError(f"issue {id_!r:.80} is closed already", remedy="open it again, or leave it")
        self._run("close", f"--reason={line}", "--", id_)

    def block(self, id_: str, error: str) -> None:
        line, issue = rules.required_line("error", error), self.get(id_)
        if issue.status == "closed":
            raise UsageError(f"issue {id_!r:.80} is closed", remedy="open it again first")
        self._run("update", "--status=blocked", "--assignee=", f"--append-notes=blocked: {line}", "--", id_)

    def reopen(self, id_: str, why: str = "") -> None:
        status = self.get(id_).status
        if status == "closed":
            self._run("reopen", f"--reason={rules.line_of(why)}", "--", id_)
        elif status in ("blocked", "in_progress"):
            self._run("update", "--status=open", "--assignee=", "--", id_)
        else:
            raise UsageError(f"issue {id_!r:.80} is {status}", remedy="there is nothing to open again")

    def get(self, id_: str) -> Issue:
        missing = NotFoundError(f"beads has no issue {id_!r:.80}", remedy="see `commonplace ledger list --all`")
        if not id_ or id_.startswith("-"):
            raise missing
        try:
            issues = self._issues("show", self._run("show", "--", id_))
        except ProviderError as error:
            if "not found" in str(error).lower() or "no issue" in str(error).lower():
                raise missing from error
            raise
        if not issues:
            raise missing
        return issues[0]

    def history(self, id_: str) -> list[IssueEvent]:
        raise UsageError("beads keeps the history of its issues itself", remedy=f"ask it: bd show {id_}")

    def export(self, target: Path) -> int:
        raise UsageError(f"beads keeps these issues, {target} was not written", remedy="ask it: bd export")

    def import_(self, source: Path) -> ImportedIssues:
        raise UsageError(f"beads keeps these issues, {source} was not read", remedy="ask it: bd import")

    def selected(self, wanted: IssueSelection = ALL_ISSUES) -> list[Issue]:
        # Given several labels, beads lists the issues that have all of them.
        labels = [f"--label={beads.AGENT_LABEL}{agent}" for agent in wanted.agents if len(wanted.agents) == 1]
        issues = [
            issue
            for status in wanted.statuses or ISSUE_STATUSES
            for issue in self._issues("list", self._run("list", f"--status={status}", *labels, "--limit=0"))
        ]
        chosen = [
            issue
            for issue in issues
            if (not wanted.agents or issue.agent in wanted.agents)
            and (not wanted.memory_ids or not set(wanted.memory_ids).isdisjoint(issue.memory_ids))
        ]
        return sorted(chosen, key=lambda issue: (issue.created_at, issue.id))

    def counts(self) -> dict[str, dict[str, int]]:
        by_agent: dict[str, dict[str, int]] = {}
        for issue in sorted(self.selected(), key=lambda issue: (issue.agent, issue.status)):
            by_status = by_agent.setdefault(issue.agent, {})
            by_status[issue.status] = by_status.get(issue.status, 0) + 1
        return by_agent

    def _run(self, command: str, *arguments: str) -> Any:
        """Run `bd` and return its parsed JSON, without the envelope that newer versions add."""
        try:
            process = subprocess.Popen(
                [self._program, "--json", command, *arguments],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProviderError(f"bd cannot be run: {error}", remedy="correct the setting ledger.bd") from error
        with process:
            try:
                output, errors = process.communicate(timeout=self._timeout_s)
            except subprocess.TimeoutExpired as error:
                _kill(process)
                raise ProviderError(
                    f"bd {command} gave no answer within {self._timeout_s:g} s",
                    remedy=f"try it by hand in {self._directory}",
                ) from error
            except BaseException:
                _kill(process)
                raise
        answer = output.decode(errors="replace")
        if process.returncode:
            message = errors.decode(errors="replace").strip() or answer.strip()
            raise self._failed(command, message or f"it ended with {process.returncode}")
        try:
            parsed = json.loads(answer) if answer.strip() else []
        except (ValueError, RecursionError) as error:
            raise self._misunderstood(command, answer) from error
        if isinstance(parsed, dict) and "schema_version" in parsed and "data" in parsed:
            parsed = parsed["data"]
        if isinstance(parsed, dict) and parsed.get("error") and "id" not in parsed:
            raise self._failed(command, str(parsed["error"]))
        return [] if parsed is None else parsed

    def _issues(self, command: str, parsed: Any) -> list[Issue]:
        rows = parsed if isinstance(parsed, list) else [parsed]
        try:
            return [beads.from_object(row, "an issue") for row in rows]
        except UsageError as error:
            raise self._misunderstood(command, str(error)) from error

    def _failed(self, command: str, message: str) -> ProviderError:
        return ProviderError(
            f"bd {command} failed: {rules.line_of(message)[:_MAX_EXCERPT_LENGTH]}",
            remedy=f"try it by hand in {self._directory}",
        )

    def _misunderstood(self, command: str, answer: str) -> ProviderError:
        return ProviderError(
            f"bd {command} answered {rules.line_of(answer)[:_MAX_EXCERPT_LENGTH]!r}",
            remedy="see whether the setting ledger.bd names the program of beads",
        )


def open_bd(program: str, start: Path, *, timeout_s: float = TIMEOUT_S) -> BdLedger:
    """Return the ledger that `bd` keeps in a directory, or in the nearest one above it.

    Raises:
        UsageError: there is no such program, or no `.beads` directory.
    """
    path = shutil.which(program)
    if path is None:
        raise UsageError(
            f"there is no program {program!r:.80}",
            remedy="install beads, correct ledger.bd, or set ledger.backend = store",
        )
    for directory in (start, *start.parents):
        if (directory / DIRECTORY).is_dir():
            return BdLedger(str(Path(path).absolute()), directory, timeout_s=timeout_s)
    raise UsageError(
        f"there is no {DIRECTORY} directory in {start} or above it",
        remedy="make one with `bd init`, or set ledger.backend = store",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, which may keep its output open."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
