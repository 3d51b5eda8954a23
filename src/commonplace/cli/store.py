"""The command `init`, and the group `store`: back up, restore, export, import, examine and clean up a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import commonplace
from commonplace.cli import options, rows
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.memory import forget_namespace, gc
from commonplace.cli.output import notify, progress_bars, say
from commonplace.dataclasses import asdict
from commonplace.errors import CommonplaceError, NotFoundError, UsageError
from commonplace.formats.escaping import harmless_line
from commonplace.types import KINDS

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.exchange.import_ import ImportReport
    from commonplace.health.examine import Finding, Health
    from commonplace.settings import Settings

_OUTCOMES: Final[Mapping[str, str]] = {
    "added": "",
    "unchanged": "Already here",
    "replaced": "Replaced what had the same id",
    "skipped": "Skipped, because the id is taken",
}


@command(None, makes_store=True)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--move-memories", is_flag=True, help="Move the memories of your user store into it, without asking.")
@click.option("--anew", is_flag=True, help="Recreate a lost database from the Markdown pages.")
@click.option("--grant-to", default="", metavar="ROLE", help="Let a PostgreSQL role read and write the store.")
@click.option("--partitions", type=click.IntRange(2, 1024), metavar="N", help="Partitions of each PostgreSQL table.")
def init(
    invocation: Invocation, /, directory: Path, move_memories: bool, anew: bool, grant_to: str, partitions: int | None
) -> None:
    """Create the store of a project.

    The store is `.commonplace` in DIRECTORY, by default the working directory, or where --store says. An existing store
    stays as it is.

    A store that lost its database is refused: restore a backup, or use --anew, which creates a new database and imports
    the memories from the Markdown pages.

    For PostgreSQL, run it as the database owner; run it again after an upgrade, and once a namespace has 50,000
    passages, to add its vector index (needs pgvector).

    Example: commonplace init ~/projects/billing
    """
    from commonplace.engine.open import make_on_server, recreate_lost_store
    from commonplace.settings.paths import DATABASE, STORE_NAME, address_of, directory_of, find_project

    outer = None
    if invocation.store is None:
        project = directory.expanduser().absolute()
        invocation.store = str(project / STORE_NAME)
        ancestor = find_project(project.parent)
        outer = ancestor / STORE_NAME if ancestor is not None and (ancestor / STORE_NAME).is_dir() else None
    loaded = invocation.settings()
    store = loaded.store.path
    address = address_of(store)
    if address is not None:
        already_existed = not make_on_server(address, grant_to, partitions or 0)
    elif grant_to or partitions:
        option = "--grant-to" if grant_to else "--partitions"
        raise UsageError(f"{option} is for a store in PostgreSQL", remedy="name one with --store postgresql://…")
    else:
        already_existed = (directory_of(store) / DATABASE).is_file()
    is_lost = anew and recreate_lost_store(directory_of(store))
    with invocation.open(loaded, create=True) as engine:
        imported = engine.sync().added if is_lost else 0
    moved = _move_memories(invocation, loaded, is_agreed=move_memories)
    if outer is not None:
        notify((f"from here downward this store is used, not {outer}",), invocation)
    hides = None if outer is None else str(outer)
    value = {"store": store, "created": not already_existed, "hides": hides, "moved": moved, "taken_in": imported}
    value |= {"granted_to": grant_to} if grant_to else {}
    lines = [f"There is already a store at {store}; what it holds was left as it is."]
    if not already_existed:
        lines = [f"Created {store}", "Next: commonplace index build, or commonplace remember TEXT"]
        lines[1:1] = [f"Imported {rows.counted(imported, 'memory', 'memories')} from its pages"] if imported else []
    lines += [f"The role {grant_to} may read and write it."] if grant_to else []
    lines += [f"Moved {rows.counted(moved, 'memory', 'memories')} here from your user store."] if moved else []
    rows.emit(invocation, value, lines)


def _move_memories(invocation: Invocation, loaded: Settings, *, is_agreed: bool) -> int:
    from commonplace.engine.open import hidden_memories, move_hidden_memories
    from commonplace.settings.paths import user_store

    try:
        texts = hidden_memories(loaded)
    except CommonplaceError as error:
        if is_agreed:
            raise
        notify((f"your user store, {user_store()}, cannot be read: {error.args[0]}",), invocation)
        return 0
    if not texts:
        return 0
    message = (
        f"your user store, {user_store()}, holds {rows.counted(len(texts), 'memory', 'memories')} not found from here"
    )
    if not is_agreed and not invocation.as_json and sys.stdin.isatty():
        for text in texts[:3]:
            say(f"  {harmless_line(text[:80])}", err=True)
        is_agreed = click.confirm(f"{message[0].upper()}{message[1:]}. Move them here?", err=True)
    if not is_agreed:
        notify((f"{message}; `commonplace init --move-memories` moves them here",), invocation)
        return 0
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        return move_hidden_memories(engine, loaded, progress)


def _imported(report: ImportReport, source: Path) -> rows.Rows:
    kinds = {kind: getattr(report, kind) for kind in rows.STORED}
    outcomes = {
        name: rows.holdings({kind: getattr(counts, name) for kind, counts in kinds.items()}) for name in _OUTCOMES
    }
    verb = "Would import" if report.is_dry_run else "Imported"
    yield rows.Line(f"{verb} {outcomes['added'] or 'nothing new'} from {source} ({report.format})", "bold")
    for name, words in _OUTCOMES.items():
        if outcomes[name] and words:
            yield rows.Line(f"{words}: {outcomes[name]}", "", 1)
    # Either all conflicts were replaced, or all were skipped.
    yield from rows.listed(report.conflicts, lambda conflict: rows.Line(conflict, "", 2), limit=rows.MAX_LISTED)
    if report.problems:
        yield rows.Line(f"{rows.counted(len(report.problems), 'problem')}:", "yellow", 1)
        yield from rows.listed(report.problems, lambda fault: rows.Line(str(fault), "yellow", 2), limit=rows.MAX_LISTED)
    yield from rows.listed(report.notices, rows.note, limit=rows.MAX_LISTED)
    if report.is_dry_run:
        yield rows.Line("Nothing was written.", "dim", 1)


@click.group(cls=Group)
def store() -> None:
    """Back up, move, examine and clean up a store."""


for _command in (forget_namespace, gc):
    store.add_command(_command)


@ask(store, is_long=True, fails=lambda answer: not answer["healthy"])
@click.option("--no-mend", is_flag=True, help="Only examine and report; change nothing.")
@click.option("--secrets", is_flag=True, help="Also replace stored secrets with placeholders.")
def doctor(engine: Engine, /, no_mend: bool, secrets: bool) -> rows.Answer:
    """Check store, index and model data; repair the index.

    A faulty index is rebuilt, and interrupted deletions are finished. --secrets also replaces stored keys, tokens and
    passwords with placeholders, but changes no indexed file; with --no-mend it only reports them. The exit code is 1 if
    something is wrong and was not repaired.

    Example: commonplace doctor --secrets
    """
    report, path = engine.doctor(mend=not no_mend, secrets=secrets), engine.settings.store.path

    def report_rows() -> rows.Rows:
        yield f"Store: {path}"
        for part in report.checked:
            findings = [finding for finding in report.findings if finding.part == part]
            if not findings:
                yield rows.Line(f"  {part}: ok", "green")
            for fault in findings:
                fate = "repaired" if fault.mended else f"not repaired: {fault.remedy}"
                yield rows.Line(f"  {part}: {fault.problem} ({fate})", "yellow" if fault.mended else "red")
            # A secret mended in the store may still be exposed elsewhere.
            for remedy in dict.fromkeys(fault.remedy for fault in findings if fault.mended and part == "secrets"):
                yield rows.Line(f"  {part}: now {remedy}", "yellow")

    return {"store": path, "healthy": report.is_healthy, **asdict(report)}, report_rows()


_file = click.argument("file", type=options.ANY_FILE)


@ask(store, _file, is_long=True, has_notices=True)
def backup(engine: Engine, /, file: Path) -> rows.Answer:
    """Write a complete copy of the store to FILE.

    Other processes may keep working. The copy is verified before it gets its name.

    Example: commonplace backup ~/backups/billing.zip
    """
    report = engine.backup(file)
    pages = f" and {rows.counted(report.files, 'Markdown page')}" if report.files else ""
    return report, [
        rows.Line(f"Backed up to {report.path} ({rows.size_text(report.size)})", "bold"),
        rows.Line(f"The whole store{pages}, as of change {report.change:,}; read back and verified.", "dim", 1),
        *(rows.Line(f"note: {notice}", "yellow", 1) for notice in report.notices),
    ]


@command(store, _file, makes_store=True)
@click.option("--replace", is_flag=True, help="Replace the store there, which is kept beside it.")
def restore(invocation: Invocation, /, file: Path, replace: bool) -> None:
    """Make a store from the backup FILE.

    Everything is checked before anything is touched. Close other programs that have the store open.

    Example: commonplace restore ~/backups/billing.zip --replace
    """
    target = Path(invocation.settings().store.path)
    with progress_bars(invocation) as progress:
        report = commonplace.restore(file, target, replace=replace, progress=progress)
    pages = f", with {rows.counted(report.files, 'Markdown page')}" if report.files else ""
    state = f"As it was on {rows.local_time(report.backed_up_at)}, change {report.change:,}{pages}"
    lines = [
        rows.Line(f"Restored {report.directory} from {file}", "bold"),
        rows.Line(f"{state}; the next search builds the index.", "dim", 1),
        rows.Line(f"The store that was there is kept at {report.kept}" if report.kept else "", "", 1),
    ]
    rows.emit(invocation, report, lines)


@command(store, _file)
@options.choice("--kind", "kinds", of=(*KINDS, "graph", "ledger"), many=True, help="Only this kind.")
def export(invocation: Invocation, /, file: Path, kinds: tuple[str, ...]) -> None:
    """Write the namespace to FILE as JSON lines.

    A FILE of - is standard output.

    Example: commonplace export memories.jsonl --kind memory
    """
    is_stream = str(file) == "-"
    # Bars would be drawn among the exported lines on a terminal.
    bars = nullcontext() if is_stream else progress_bars(invocation)
    with bars as progress, invocation.open(progress=progress) as engine:
        report = engine.export(sys.stdout if is_stream else file, kinds=kinds or None)
    if is_stream:
        return
    has_old = report.versions > report.memories
    versions = f"{rows.counted(report.versions, 'version')} of the memories, " if has_old else ""
    lines = [
        rows.Line(f"Exported {rows.holdings(report) or 'nothing'} to {report.path}", "bold"),
        rows.Line(f"{versions}{rows.counted(report.lines + 1, 'line')}, {rows.size_text(report.size)}", "dim", 1),
        rows.Line(f"sha256 {report.sha256}", "dim", 1),
    ]
    rows.emit(invocation, report, lines)


class _Format(click.Option):
    """An option whose help names all formats; they are loaded only for the help."""

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - the name is click's
        from commonplace.exchange.read import FORMATS

        return f"[{'|'.join(FORMATS)}]"


@command(store, name="import", makes_store=True)
@click.argument("path", type=options.ANY_FILE)
@click.option("--format", "format_", default="auto", show_default=True, cls=_Format, help="Format of the files.")
@options.choice("--on-conflict", of=("refuse", "skip", "replace"), default="refuse", help="If an id is already taken.")
@click.option("--skip-problems", is_flag=True, help="Leave out what cannot be stored; a damaged export is refused.")
@click.option("--dry-run", is_flag=True, help="Check everything; write nothing.")
def import_(invocation: Invocation, /, path: Path, format_: str, **values: Any) -> None:
    """Import an export, or another system's memories.

    If anything is refused, nothing is written; importing twice changes nothing.

    Example: commonplace import memories.jsonl --dry-run
    """
    try:
        path.expanduser().stat()
    except OSError as error:
        remedy = "name a file or folder to import"
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    with opened(invocation, create=not values["dry_run"], is_long=True) as engine:
        report = engine.import_(path, format=format_, **values)
    rows.emit(invocation, report, _imported(report, path), has_notices=True)


@ask(store, has_notices=True)
@click.option("--accept", metavar="FILE", help="Import this page, or the file it was kept in, as it is.")
def sync(engine: Engine, /, accept: str | None) -> rows.Answer:
    """Synchronize memories with their Markdown pages.

    Other commands do this too, unless the setting memory.mirror is off. A page that looks damaged is written again, and
    the old one is kept beside it; --accept imports it.

    Example: commonplace sync
    """
    report = engine.sync(accept=accept)
    names = {"added": "new", "updated": "edited", "archived": "archived", "restored": "brought back", "moved": "moved"}
    imported = rows.counts_text({words: getattr(report, name) for name, words in names.items()})
    parts = [
        f"{rows.counted(report.pages_written, 'page')} written" if report.pages_written else "",
        f"memories imported: {imported}" if imported else "",
        f"{rows.counted(len(report.conflicts), 'version')} kept beside the pages" if report.conflicts else "",
    ]
    nothing = "Nothing was changed; the notes say why." if report.notices else "Markdown and memories agree."
    return report, f"{'; '.join(filter(None, parts))}." if any(parts) else nothing


@ask(store, options.time("--since", is_start=True, help="Only from this time on."))
def logs(engine: Engine, /, since: str | None) -> rows.Answer:
    """Summarize the log of searches: latency, misses, hits.

    It covers command line, MCP and CSP/1 in this namespace. A hit that was opened or touched afterwards counts as used.

    Example: commonplace store logs --since yesterday
    """
    summary = engine.retrievals(since)
    if summary.first is None or summary.last is None:
        return summary, "No search is logged."
    first, last = rows.local_time(summary.first), rows.local_time(summary.last)

    def summary_rows() -> rows.Rows:
        yield f"{rows.counted(summary.searches, 'search', 'searches')} from {first} to {last}"
        yield f"Found nothing: {summary.nothing:.0%}, degraded: {summary.degraded:.0%}"
        for method, stats in summary.methods.items():
            yield rows.Line(f"{method}: {stats.searches:,}, p50 {stats.p50_ms:.0f}ms, p95 {stats.p95_ms:.0f}ms", "bold")
            stages = ", ".join(f"{name} {ms:.1f}ms" for name, ms in stats.stages.items())
            yield rows.Line(stages or "no stages", "dim", 1)
        if summary.agents:
            yield "By agent: " + ", ".join(f"{name} {number:,}" for name, number in summary.agents.items())
        after = f"after {summary.followed:.0%} of the searches that found something"
        yield f"Then opened or touched: {rows.counted(summary.uses, 'use')}, {after}"
        yield from rows.listed(
            summary.most_found, lambda item: rows.Line(f"{item.searches:,}  {item.path}", level=1), "Found most often:"
        )

    return summary, summary_rows()


@ask(store, options.golden("a miss exits with 1"), fails=lambda report: bool(report.failed))
def health(engine: Engine, /, golden: Path | None) -> rows.Answer:
    """Find duplicates, contradictions and stale memories.

    Also lists possibly superseded memories, notes without their memory, and junk. It changes nothing.

    Example: commonplace health --golden golden.jsonl
    """
    report = engine.health(golden)
    findings = (finding for finding in report.findings if finding.kind != "contradiction")
    texts = rows.memory_texts(engine, (id_ for finding in findings for id_ in finding.ids))
    return report, _health(report, texts)


_HEADINGS: Final = {
    "duplicate": "Duplicates",
    "contradiction": "Contradictions",
    "overtaken": "Possibly superseded",
    "stale": "Stale",
    "orphan": "Orphans",
    "junk": "Junk",
}
"""Headings of the kinds of findings, in the order in which they are printed."""


def _health(report: Health, texts: Mapping[str, str]) -> rows.Rows:
    archived = report.statuses.get("archived", 0)
    apart = f", and {archived:,} archived (not counted)" if archived else ""
    yield rows.Line(f"{rows.counted(report.memories, 'memory', 'memories')}{apart}", "bold")
    for name, counts in {"tiers": report.tiers, "status": report.statuses, "pending issues": report.pending}.items():
        text = rows.counts_text(counts)
        yield rows.Line(f"{name}: {text}" if text else "", "", 1)
    if peak := max(report.retention.values(), default=0):
        yield rows.Line("retention of active memories:", "", 1)
        for bound, number in report.retention.items():
            yield rows.Line(f"       ≤ {bound} {number:>7,} {'█' * round(30 * number / peak)}", "" if number else "dim")

    def finding_rows(finding: Finding) -> rows.Rows:
        yield rows.Row(", ".join(finding.ids), (finding.why,))
        yield from (rows.Body(texts[id_]) for id_ in finding.ids if id_ in texts)
        yield rows.Line(finding.command, "dim", 1)

    for kind, heading in _HEADINGS.items():
        findings = [entry for entry in report.findings if entry.kind == kind]
        yield from rows.listed(findings, finding_rows, f"\n{heading}: {len(findings):,}", "bold", limit=rows.MAX_LISTED)
    if not (report.findings or report.failed):
        yield rows.Line(
            "\nNothing to look at" + (" but what `commonplace review` asks." if report.pending else "."), "green"
        )
    for answer in report.failed:
        missing = ", ".join(name for name in answer.relevant if name not in answer.found)
        faults = [f"does not find {missing}"] if missing else []
        faults += [f"shows {', '.join(answer.shown)}"] if answer.shown else []
        yield rows.Line(f"\ngolden query {answer.query!r} {' and '.join(faults)}", "red")
    if report.golden and not report.failed:
        queries = rows.counted(len(report.golden), "golden query", "golden queries")
        yield rows.Line(f"\n{queries}: each finds its expected results", "green")
