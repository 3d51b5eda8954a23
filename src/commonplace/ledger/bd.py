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
from commonplace.ledger.ledger import EVERY, Ledger
from commonplace.ledger.rules import ImportedIssues
from commonplace.types.ledger import ISSUE_STATUSES, UNFINISHED, Issue, IssueEvent, IssueSelection

TIMEOUT_S: Final = 30.0
DIRECTORY: Final = ".beads"
_MAX_EXCERPT_LENGTH: Final = 300


class BdLedger(Ledger):
    """The issues of a beads database. Every call raises a `ProviderError` where `bd` fails.

    Whoever calls `bd` at the same time may file the same issue: it has no transaction over two of its commands. Only a
    claim is atomic; it never lapses, and issues neither open again nor grow more urgent by themselves.

    Args:
        program: the path of `bd`.
        directory: where its `.beads` is.
    """

    def __init__(self, program: str, directory: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._program = program
        self._directory = directory
        self._timeout_s = timeout_s

    def _file(self, issue: Issue) -> str:
        for known in self.selected(IssueSelection(agents=(issue.agent,), statuses=UNFINISHED)):
            if known.memory_ids == issue.memory_ids:
                return known.id
        options = [f"--notes={issue.notes}", "-t=task", f"-p={issue.priority}", f"-l={','.join(issue.labels)}"]
        made = self._ask("create", *options, "--", issue.title)
        made = made[0] if isinstance(made, list) and made else made
        id_ = made.get("id") if isinstance(made, dict) else ""
        if not isinstance(id_, str) or not id_:
            raise self._misunderstood("create", json.dumps(made))
        return id_

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        found = self.selected(IssueSelection(agents=(agent,), statuses=tuple(statuses)))
        return {id_ for issue in found for id_ in issue.memory_ids}

    def claim(self, id_: str) -> bool:
        if self.get(id_).status != "open":
            return False
        try:
            self._ask("update", "--claim", "--", id_)
        except ProviderError as error:
            if "claimed" in str(error).lower() or self.get(id_).status != "open":
                return False
            raise
        return True

    def close(self, id_: str, reason: str) -> None:
        why, issue = rules.said("reason", reason), self.get(id_)
        if issue.status == "closed":
            raise UsageError(f"issue {id_!r:.80} is closed already", remedy="open it again, or leave it")
        self._ask("close", f"--reason={why}", "--", id_)

    def block(self, id_: str, error: str) -> None:
        why, issue = rules.said("error", error), self.get(id_)
        if issue.status == "closed":
            raise UsageError(f"issue {id_!r:.80} is closed", remedy="open it again first")
        self._ask("update", "--status=blocked", "--assignee=", f"--append-notes=blocked: {why}", "--", id_)

    def reopen(self, id_: str, why: str = "") -> None:
        status = self.get(id_).status
        if status == "closed":
            self._ask("reopen", f"--reason={rules.line_of(why)}", "--", id_)
        elif status in ("blocked", "in_progress"):
            self._ask("update", "--status=open", "--assignee=", "--", id_)
        else:
            raise UsageError(f"issue {id_!r:.80} is {status}", remedy="there is nothing to open again")

    def get(self, id_: str) -> Issue:
        missing = NotFoundError(f"beads has no issue {id_!r:.80}", remedy="see `commonplace ledger list --all`")
        if not id_ or id_.startswith("-"):
            raise missing
        try:
            found = self._issues("show", self._ask("show", "--", id_))
        except ProviderError as error:
            if "not found" in str(error).lower() or "no issue" in str(error).lower():
                raise missing from error
            raise
        if not found:
            raise missing
        return found[0]

    def history(self, id_: str) -> list[IssueEvent]:
        raise UsageError("beads keeps the history of its issues itself", remedy=f"ask it: bd show {id_}")

    def export(self, target: Path) -> int:
        raise UsageError(f"beads keeps these issues, {target} was not written", remedy="ask it: bd export")

    def import_(self, source: Path) -> ImportedIssues:
        raise UsageError(f"beads keeps these issues, {source} was not read", remedy="ask it: bd import")

    def selected(self, wanted: IssueSelection = EVERY) -> list[Issue]:
        # Of several labels beads lists what has them all.
        labels = [f"--label={beads.AGENT_LABEL}{agent}" for agent in wanted.agents if len(wanted.agents) == 1]
        found = [
            issue
            for status in wanted.statuses or ISSUE_STATUSES
            for issue in self._issues("list", self._ask("list", f"--status={status}", *labels, "--limit=0"))
        ]
        chosen = [
            issue
            for issue in found
            if (not wanted.agents or issue.agent in wanted.agents)
            and (not wanted.memory_ids or not set(wanted.memory_ids).isdisjoint(issue.memory_ids))
        ]
        return sorted(chosen, key=lambda issue: (issue.created_at, issue.id))

    def counts(self) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = {}
        for issue in sorted(self.selected(), key=lambda issue: (issue.agent, issue.status)):
            of_agent = counted.setdefault(issue.agent, {})
            of_agent[issue.status] = of_agent.get(issue.status, 0) + 1
        return counted

    def _ask(self, command: str, *arguments: str) -> Any:
        """Run `bd`, and return what its JSON holds, without the envelope that newer versions put around it."""
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
                _end(process)
                raise ProviderError(
                    f"bd {command} gave no answer within {self._timeout_s:g} s",
                    remedy=f"try it by hand in {self._directory}",
                ) from error
            except BaseException:
                _end(process)
                raise
        answer = output.decode(errors="replace")
        if process.returncode:
            said = errors.decode(errors="replace").strip() or answer.strip()
            raise self._failed(command, said or f"it ended with {process.returncode}")
        try:
            found = json.loads(answer) if answer.strip() else []
        except (ValueError, RecursionError) as error:
            raise self._misunderstood(command, answer) from error
        if isinstance(found, dict) and "schema_version" in found and "data" in found:
            found = found["data"]
        if isinstance(found, dict) and found.get("error") and "id" not in found:
            raise self._failed(command, str(found["error"]))
        return [] if found is None else found

    def _issues(self, command: str, found: Any) -> list[Issue]:
        rows = found if isinstance(found, list) else [found]
        try:
            return [beads.from_object(row, "an issue") for row in rows]
        except UsageError as error:
            raise self._misunderstood(command, str(error)) from error

    def _failed(self, command: str, said: str) -> ProviderError:
        return ProviderError(
            f"bd {command} failed: {rules.line_of(said)[:_MAX_EXCERPT_LENGTH]}",
            remedy=f"try it by hand in {self._directory}",
        )

    def _misunderstood(self, command: str, answer: str) -> ProviderError:
        return ProviderError(
            f"bd {command} answered {rules.line_of(answer)[:_MAX_EXCERPT_LENGTH]!r}",
            remedy="see whether the setting ledger.bd names the program of beads",
        )


def open_bd(program: str, start: Path, *, timeout_s: float = TIMEOUT_S) -> BdLedger:
    """Return the ledger that `bd` keeps for a directory or one above it.

    Raises:
        UsageError: there is no such program, or no `.beads` directory.
    """
    found = shutil.which(program)
    if found is None:
        raise UsageError(
            f"there is no program {program!r:.80}",
            remedy="install beads, correct ledger.bd, or set ledger.backend = store",
        )
    for directory in (start, *start.parents):
        if (directory / DIRECTORY).is_dir():
            return BdLedger(str(Path(found).absolute()), directory, timeout_s=timeout_s)
    raise UsageError(
        f"there is no {DIRECTORY} directory in {start} or above it",
        remedy="make one with `bd init`, or set ledger.backend = store",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, which may hold its output open."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
