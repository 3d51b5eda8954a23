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
    from commonplace.engine.open import make_anew, make_on_server
    from commonplace.settings.paths import DATABASE, STORE_NAME, address_of, directory_of, find_project

    outer = None
    if invocation.store is None:
        project = directory.expanduser().absolute()
        invocation.store = str(project / STORE_NAME)
        above = find_project(project.parent)
        outer = above / STORE_NAME if above is not None and (above / STORE_NAME).is_dir() else None
    loaded = invocation.settings()
    store = loaded.store.path
    address = address_of(store)
    if address is not None:
        existed = not make_on_server(address, grant_to, partitions or 0)
    elif grant_to or partitions:
        option = "--grant-to" if grant_to else "--partitions"
        raise UsageError(f"{option} is for a store in PostgreSQL", remedy="name one with --store postgresql://…")
    else:
        existed = (directory_of(store) / DATABASE).is_file()
    is_lost = anew and make_anew(directory_of(store))
    with invocation.open(loaded, create=True) as engine:
        taken = engine.sync().added if is_lost else 0
    moved = _move_memories(invocation, loaded, is_agreed=move_memories)
    if outer is not None:
        notify((f"from here downward this store is used, not {outer}",), invocation)
    hides = None if outer is None else str(outer)
    value = {"store": store, "created": not existed, "hides": hides, "moved": moved, "taken_in": taken}
    value |= {"granted_to": grant_to} if grant_to else {}
    shown = [f"There is already a store at {store}; what it holds was left as it is."]
    if not existed:
        shown = [f"Created {store}", "Next: commonplace index build, or commonplace remember TEXT"]
        shown[1:1] = [f"Imported {rows.counted(taken, 'memory', 'memories')} from its pages"] if taken else []
    shown += [f"The role {grant_to} may read and write it."] if grant_to else []
    shown += [f"Moved {rows.counted(moved, 'memory', 'memories')} here from your user store."] if moved else []
    rows.emit(invocation, value, shown)


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
    found = (
        f"your user store, {user_store()}, holds {rows.counted(len(texts), 'memory', 'memories')} not found from here"
    )
    if not is_agreed and not invocation.as_json and sys.stdin.isatty():
        for text in texts[:3]:
            say(f"  {harmless_line(text[:80])}", err=True)
        is_agreed = click.confirm(f"{found[0].upper()}{found[1:]}. Move them here?", err=True)
    if not is_agreed:
        notify((f"{found}; `commonplace init --move-memories` moves them here",), invocation)
        return 0
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as here:
        return move_hidden_memories(here, loaded, progress)


def _imported(report: ImportReport, source: Path) -> rows.Rows:
    sorts = {sort: getattr(report, sort) for sort in rows.STORED}
    outcomes = {
        name: rows.holdings({sort: getattr(counts, name) for sort, counts in sorts.items()}) for name in _OUTCOMES
    }
    done = "Would import" if report.is_dry_run else "Imported"
    yield rows.Line(f"{done} {outcomes['added'] or 'nothing new'} from {source} ({report.format})", "bold")
    for name, words in _OUTCOMES.items():
        if outcomes[name] and words:
            yield rows.Line(f"{words}: {outcomes[name]}", "", 1)
    # Either all conflicts were replaced, or all were skipped.
    yield from rows.listed(report.conflicts, lambda each: rows.Line(each, "", 2), limit=rows.MAX_LISTED)
    if report.problems:
        yield rows.Line(f"{rows.counted(len(report.problems), 'problem')}:", "yellow", 1)
        yield from rows.listed(report.problems, lambda each: rows.Line(str(each), "yellow", 2), limit=rows.MAX_LISTED)
    yield from rows.listed(report.notices, rows.note, limit=rows.MAX_LISTED)
    if report.is_dry_run:
        yield rows.Line("Nothing was written.", "dim", 1)


@click.group(cls=Group)
def store() -> None:
    """Back up, move, examine and clean up a store."""


for _command in (forget_namespace, gc):
    store.add_command(_command)


@ask(store, is_long=True, fails=lambda found: not found["healthy"])
@click.option("--no-mend", is_flag=True, help="Only examine and report; change nothing.")
@click.option("--secrets", is_flag=True, help="Also replace stored secrets with placeholders.")
def doctor(engine: Engine, /, no_mend: bool, secrets: bool) -> rows.Answer:
    """Check store, index and model data; repair the index.

    A faulty index is rebuilt, and interrupted deletions are finished. --secrets also replaces stored keys, tokens and
    passwords with placeholders, but changes no indexed file; with --no-mend it only reports them. The exit code is 1 if
    something is wrong and was not repaired.

    Example: commonplace doctor --secrets
    """
    found, place = engine.doctor(mend=not no_mend, secrets=secrets), engine.settings.store.path

    def shown() -> rows.Rows:
        yield f"Store: {place}"
        for part in found.checked:
            findings = [finding for finding in found.findings if finding.part == part]
            if not findings:
                yield rows.Line(f"  {part}: ok", "green")
            for each in findings:
                fate = "repaired" if each.mended else f"not repaired: {each.remedy}"
                yield rows.Line(f"  {part}: {each.problem} ({fate})", "yellow" if each.mended else "red")
            # What is mended in the store may still be open elsewhere.
            for remedy in dict.fromkeys(each.remedy for each in findings if each.mended and part == "secrets"):
                yield rows.Line(f"  {part}: now {remedy}", "yellow")

    return {"store": place, "healthy": found.is_healthy, **asdict(found)}, shown()


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
        *(rows.Line(f"note: {each}", "yellow", 1) for each in report.notices),
    ]


@command(store, _file, makes_store=True)
@click.option("--replace", is_flag=True, help="Replace the store there, which is kept beside it.")
def restore(invocation: Invocation, /, file: Path, replace: bool) -> None:
    """Make a store from the backup FILE.

    Everything is checked before anything is touched. Close other programs that have the store open.

    Example: commonplace restore ~/backups/billing.zip --replace
    """
    place = Path(invocation.settings().store.path)
    with progress_bars(invocation) as progress:
        report = commonplace.restore(file, place, replace=replace, progress=progress)
    pages = f", with {rows.counted(report.files, 'Markdown page')}" if report.files else ""
    when = f"As it was on {rows.local_time(report.backed_up_at)}, change {report.change:,}{pages}"
    shown = [
        rows.Line(f"Restored {report.directory} from {file}", "bold"),
        rows.Line(f"{when}; the next search builds the index.", "dim", 1),
        rows.Line(f"The store that was there is kept at {report.kept}" if report.kept else "", "", 1),
    ]
    rows.emit(invocation, report, shown)


@command(store, _file)
@options.choice("--kind", "kinds", of=(*KINDS, "graph", "ledger"), many=True, help="Only this kind.")
def export(invocation: Invocation, /, file: Path, kinds: tuple[str, ...]) -> None:
    """Write the namespace to FILE as JSON lines.

    A FILE of - is standard output.

    Example: commonplace export memories.jsonl --kind memory
    """
    is_stream = str(file) == "-"
    # On a terminal, bars would be drawn among the lines.
    bars = nullcontext() if is_stream else progress_bars(invocation)
    with bars as progress, invocation.open(progress=progress) as engine:
        report = engine.export(sys.stdout if is_stream else file, kinds=kinds or None)
    if is_stream:
        return
    has_old = report.versions > report.memories
    versions = f"{rows.counted(report.versions, 'version')} of the memories, " if has_old else ""
    shown = [
        rows.Line(f"Exported {rows.holdings(report) or 'nothing'} to {report.path}", "bold"),
        rows.Line(f"{versions}{rows.counted(report.lines + 1, 'line')}, {rows.size_text(report.size)}", "dim", 1),
        rows.Line(f"sha256 {report.sha256}", "dim", 1),
    ]
    rows.emit(invocation, report, shown)


class _Format(click.Option):
    """An option whose help names all formats, which are loaded only for that help."""

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
    found = engine.retrievals(since)
    if found.first is None or found.last is None:
        return found, "No search is logged."
    first, last = rows.local_time(found.first), rows.local_time(found.last)

    def shown() -> rows.Rows:
        yield f"{rows.counted(found.searches, 'search', 'searches')} from {first} to {last}"
        yield f"Found nothing: {found.nothing:.0%}, degraded: {found.degraded:.0%}"
        for method, took in found.methods.items():
            yield rows.Line(f"{method}: {took.searches:,}, p50 {took.p50_ms:.0f}ms, p95 {took.p95_ms:.0f}ms", "bold")
            stages = ", ".join(f"{name} {ms:.1f}ms" for name, ms in took.stages.items())
            yield rows.Line(stages or "no stages", "dim", 1)
        if found.agents:
            yield "By agent: " + ", ".join(f"{name} {n:,}" for name, n in found.agents.items())
        after = f"after {found.followed:.0%} of the searches that found something"
        yield f"Then opened or touched: {rows.counted(found.uses, 'use')}, {after}"
        yield from rows.listed(
            found.most_found, lambda one: rows.Line(f"{one.searches:,}  {one.path}", level=1), "Found most often:"
        )

    return found, shown()


@ask(store, options.golden("a miss exits with 1"), fails=lambda found: bool(found.failed))
def health(engine: Engine, /, golden: Path | None) -> rows.Answer:
    """Find duplicates, contradictions and stale memories.

    Also lists possibly superseded memories, notes without their memory, and junk. It changes nothing.

    Example: commonplace health --golden golden.jsonl
    """
    found = engine.health(golden)
    said = (each for each in found.findings if each.kind != "contradiction")
    texts = rows.memory_texts(engine, (id_ for each in said for id_ in each.ids))
    return found, _health(found, texts)


_HEADINGS: Final = {
    "duplicate": "Duplicates",
    "contradiction": "Cannot all be true",
    "overtaken": "Perhaps out of date",
    "stale": "Of files that have changed",
    "orphan": "Left alone",
    "junk": "Perhaps worth nothing",
}
"""What a kind of finding is called, in the order in which they are printed."""


def _health(found: Health, texts: Mapping[str, str]) -> rows.Rows:
    archived = found.statuses.get("archived", 0)
    apart = f", and {archived:,} archived (not counted)" if archived else ""
    yield rows.Line(f"{rows.counted(found.memories, 'memory', 'memories')}{apart}", "bold")
    for name, counts in {"tiers": found.tiers, "status": found.statuses, "pending issues": found.pending}.items():
        text = rows.counts_text(counts)
        yield rows.Line(f"{name}: {text}" if text else "", "", 1)
    if most := max(found.retention.values(), default=0):
        yield rows.Line("retention of what is active:", "", 1)
        for end, number in found.retention.items():
            yield rows.Line(f"      to {end} {number:>7,} {'█' * round(30 * number / most)}", "" if number else "dim")

    def shown(finding: Finding) -> rows.Rows:
        yield rows.Row(", ".join(finding.ids), (finding.why,))
        yield from (rows.Body(texts[id_]) for id_ in finding.ids if id_ in texts)
        yield rows.Line(finding.command, "dim", 1)

    for kind, heading in _HEADINGS.items():
        findings = [each for each in found.findings if each.kind == kind]
        yield from rows.listed(findings, shown, f"\n{heading}: {len(findings):,}", "bold", limit=rows.MAX_LISTED)
    if not found.findings:
        yield rows.Line("\nNothing to look at.", "green")
    for answer in found.failed:
        missing = ", ".join(name for name in answer.relevant if name not in answer.found)
        wrong = [f"does not find {missing}"] if missing else []
        wrong += [f"shows {', '.join(answer.shown)}"] if answer.shown else []
        yield rows.Line(f"golden query {answer.query!r} {' and '.join(wrong)}", "red", 1)
    if found.golden and not found.failed:
        queries = rows.counted(len(found.golden), "golden query", "golden queries")
        yield rows.Line(f"{queries}: each finds its expected results", "green", 1)
