"""The commands for single memories: `remember`, `get`, `list`, `update`, `forget`, and the group `memory` with more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options, rows
from commonplace.cli.app import FAILURE, SUCCESS, Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, say
from commonplace.dataclasses import asdict
from commonplace.dates.time import iso
from commonplace.errors import NotFoundError, UsageError
from commonplace.types import STATUSES

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.engine.review import Question
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.memory.view import Memory

_OUTCOMES: Final = {"added": "Remembered", "touched": "Remembered before; touched", "read": "Memory"}


def _outcome(memory: Memory) -> rows.Line:
    is_touch = memory.outcome == "touched" and not memory.notices  # with notices, a duplicate was remembered
    verb = "Touched" if is_touch else _OUTCOMES.get(memory.outcome, memory.outcome.capitalize())
    return rows.Line(f"{verb}: {memory.id} ({memory.tier})", "bold")


def _version(memory: Memory) -> rows.Rows:
    until = f" until {rows.local_time(memory.expired_at)}" if memory.expired_at else ""
    yield rows.Line(f"Version {memory.version}, {rows.local_time(memory.updated_at)}{until}", "bold")
    yield rows.Body(memory.content, is_whole=True)


def _whole(memory: Memory) -> rows.Rows:
    last = f", last {rows.local_time(memory.last_used)}" if memory.last_used else ""
    uses = f"{rows.counted(memory.use_count, 'use')}{last}; strength {memory.strength:.1f}"
    since = f"version {memory.version} since {rows.local_time(memory.updated_at)}"
    fields = {
        "id": memory.id,
        "tier": f"{memory.tier} ({memory.status})",
        "at": rows.local_time(memory.at),
        "stored": f"{rows.local_time(memory.created_at)}, {since}",
        "expired": rows.local_time(memory.expired_at),
        "retention": f"{memory.retention:.3f}; {uses}",
        "category": memory.category,
        "tags": ", ".join(memory.tags),
        "entities": ", ".join(memory.entities),
        "source": memory.source,
        "origin": f"{memory.origin}, trust {memory.trust:.2f}",
        "session": f"{memory.session}, turn {memory.position + 1}" if memory.session else "",
        "made from": ", ".join(memory.derived_from),
        "reviews": f"{memory.review_count:,}" if memory.review_count else "",
        "note": memory.vault_path,
        "forced": "yes" if memory.is_forced else "",
        "metadata": json.dumps(dict(memory.metadata), ensure_ascii=False) if memory.metadata else "",
    }
    yield from (rows.Body(memory.content, 0, is_whole=True), "", rows.Fields(fields))


def _json_object(_: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        document = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not JSON: {error}", param=parameter) from None
    if not isinstance(document, dict):
        raise click.BadParameter(f'{value!r} is not a JSON object; write {{"key": "value"}}', param=parameter)
    return document


_fields = options.group(
    options.text_file,
    options.text("--tag", "tags", metavar="TAG", many=True, help="A tag; may be repeated."),
    options.text("--entity", "entities", metavar="NAME", many=True, help="A subject; may be repeated."),
    click.option("--source", metavar="TEXT", help="Who or what said it, in your words."),
    options.time("--at", is_start=True, help="When it happened: ISO 8601, or words such as 'last Tuesday'."),
    click.option("--category", metavar="WORD", help="decision, preference, fact, …; sets how fast it fades."),
    click.option("--metadata", metavar="JSON", callback=_json_object, help="A JSON object to keep with it."),
)
_text, _id = click.argument("text", nargs=-1), click.argument("id")


def _without_unset(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


_stored_tier = partial(options.choice, "--tier", of=options.STORED_TIERS)
_TIERS: Final = "When it may be archived: short from 7 days without use, medium from 90, long never."


_tier_option = _stored_tier(help=f"{_TIERS} [default: short, or medium with --session]")


@command(None, _text, _tier_option, _fields, options.origin)
@click.option("--session", metavar="NAME", help="The conversation it belongs to.")
@click.option("--id", metavar="ID", help="Your own id; one in use gets a new version, which keeps what is not given.")
@click.option("--force", is_flag=True, help="Store it even if it is a duplicate or looks binary.")
def remember(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, force: bool, **values: Any) -> None:
    """Store TEXT, or standard input, as a memory.

    Secrets are replaced. A duplicate is not stored again: the known memory counts as used.

    Example: commonplace remember "We chose Postgres for billing" --tag decision --source standup
    """
    loaded = invocation.settings()
    content = options.read_text(text, file, loaded.memory.max_bytes)  # before the store is opened: somebody may type
    if content is None:
        raise click.UsageError("there is nothing to remember; give a text, a --file, or a pipe")
    with opened(invocation, loaded, create=True) as engine:
        memory = engine.remember(content, force=force, **_without_unset(values))
    rows.emit(invocation, memory, _outcome(memory))


@ask(None, _id, _text, _stored_tier(help=_TIERS), _fields)
def update(engine: Engine, /, id: str, text: tuple[str, ...], file: Path | None, **values: Any) -> rows.Answer:  # noqa: A002
    """Write a new version of memory ID.

    Fields that you do not give keep their values. --tag, --entity and --metadata replace all that were there. Old
    versions remain: `commonplace get ID --versions`.

    Example: commonplace update 3f2a "We moved billing to SQLite" --tag storage
    """
    content = options.read_text(text, file, engine.settings.memory.max_bytes) if text or file is not None else None
    memory = engine.update(engine.resolve_id(id), content, **_without_unset(values))
    return memory, _outcome(memory)


@ask(None, _id, options.as_of)
@click.option("--versions", is_flag=True, help="Every version, oldest first.")
def get(engine: Engine, /, id: str, as_of: str | None, versions: bool) -> rows.Answer:  # noqa: A002
    """Show memory ID.

    Example: commonplace get 3f2a --versions
    """
    full_id = engine.resolve_id(id)
    if versions:
        history = engine.versions(full_id)
        engine.log_use(full_id)
        return history, rows.listed(history, _version)
    memory = engine.get(full_id, as_of=as_of)
    engine.log_use(full_id)
    return memory, _whole(memory)


@command(None, options.tiers, options.tags, options.place, name="list")
@options.choice("--status", "statuses", of=STATUSES, many=True, help="Only this status.")
@options.text("--category", "categories", metavar="WORD", many=True, help="Only of this category.")
@options.time("--since", is_start=True, help="Only from this time on.")
@options.time("--until", is_start=True, help="Only before this time.")
@options.limit()
@click.option("--offset", type=int, default=0, metavar="N", help="Skip the first N.")
def list_(invocation: Invocation, /, **values: Any) -> None:
    """List memories, newest first.

    Archived ones are listed with --status archived.

    Example: commonplace list --tag decision --since 2026-01-01
    """
    is_filtered = any(value for name, value in values.items() if name != "limit")
    values["statuses"] = values["statuses"] or ("active", "promoted")
    with invocation.open() as engine:
        memories = engine.list(**values)
        next_offset = values["offset"] + len(memories)
        is_more = len(memories) == values["limit"] and engine.list(**{**values, "limit": 1, "offset": next_offset})

    def row(memory: Memory) -> rows.Row:
        status = "" if memory.status == "active" else memory.status
        retention = f"retention {memory.retention:.2f}"
        details = (memory.tier, status, rows.local_time(memory.at), retention, memory.source, rows.tagged(memory.tags))
        return rows.Row(memory.id, details, memory.content)

    scope = f" in namespace {invocation.namespace!r}" if invocation.namespace else ""
    empty = f"No memories{scope}. Keep one with `commonplace remember`."
    rows.emit(invocation, memories, rows.listed(memories, row, none="No such memories." if is_filtered else empty))
    notify((f"there are more; see them with --offset {next_offset}",) if is_more else (), invocation)


@click.group(cls=Group)
def memory() -> None:
    """Link, review, archive and restore memories."""


def _for_each(engine: Engine, ids: tuple[str, ...], act: Callable[[str], Memory]) -> rows.Answer:
    # Look up all ids before changing any memory, so that a wrong id changes nothing.
    memories = [act(id_) for id_ in [engine.get(engine.resolve_id(id_), touch=False).id for id_ in ids]]
    return memories, map(_outcome, memories)


_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")


@ask(memory, _ids, click.option("--reinforce", is_flag=True, help="Also raise its strength by 0.1, up to 2."))
def touch(engine: Engine, /, ids: tuple[str, ...], reinforce: bool) -> rows.Answer:
    """Count a use of memories.

    Three uses in seven days move a memory to the next tier.

    Example: commonplace touch 3f2a --reinforce
    """

    def act(id_: str) -> Memory:
        touched = engine.touch(id_, reinforce=reinforce)
        engine.log_use(id_)
        return touched

    return _for_each(engine, ids, act)


@command(memory)
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--answer", "given", metavar="QUESTION ANSWER", help="Settle one question without being asked.")
@click.option("--reason", default="", metavar="TEXT", help="Why; kept with what is settled.")
@click.option("--text", default="", metavar="TEXT", help="With the answer `edit`: what is right.")
def review(invocation: Invocation, /, ids: tuple[str, ...], given: str | None, reason: str, text: str) -> None:
    """Answer open questions, or confirm memories.

    Without ID: show what needs your decision, one at a time: contradicting facts, possibly superseded memories,
    proposals of consolidation. With ID: confirm the memory, which counts as a use. After three reviews, `commonplace
    consolidate run promote` keeps it for good and writes a note to `vault/`.

    Example: commonplace review
    """
    if given is not None and len(ids) > 1:
        raise click.UsageError("There are memories and an --answer; give one of them.")
    with opened(invocation) as engine:
        if given is not None:
            settled = engine.answer(given, "".join(ids), reason=reason, text=text)
            rows.emit(invocation, settled, _settled(settled, f"{settled['id']} "))
        elif ids:
            rows.emit(invocation, *_for_each(engine, ids, engine.review))
        elif options.can_ask(invocation):
            _ask_all(engine, reason)
        else:
            queue = engine.questions()
            rows.emit(invocation, queue, _questions(queue), value={"questions": [item.to_dict() for item in queue]})


_SIDES: Final = {"\x1b[D": "left", "1": "left", "\x1b[C": "right", "2": "right"}
_KEYS: Final = {**_SIDES, "b": "both", "e": "edit", "a": "accept", "x": "reject", "l": "later", "q": "quit"}


def _question(question: Question) -> rows.Rows:
    yield rows.Line(question.question, "bold yellow")
    if question.why:
        yield rows.Line(question.why, "dim", 1)
    for position, side in enumerate(question.sides):
        name = ("left", "right")[position] if "left" in question.answers and position < 2 else f"{position + 1}."
        details = filter(None, (rows.local_time(side.at), side.source, f"trust {side.trust:.2f}"))
        yield rows.Row(f"{name} {' · '.join(details)}", (side.id,), side.text)


def _unasked(question: Question) -> rows.Rows:
    yield from _question(question)
    yield rows.Line(f"Answer {', '.join(question.answers).replace('edit', 'edit (with --text TEXT)')}:", "dim")
    yield rows.Line(f"commonplace review --answer {quote(question.id)} ANSWER", "dim")


def _questions(questions: Sequence[Question]) -> rows.Rows:
    return rows.listed(questions, _unasked, none="Nothing waits for you.")


def _settled(result: Mapping[str, Any], label: str = "") -> rows.Line:
    return rows.Line(f"{label}settled: {result['answer']} ({result['reason']})", "green", 0 if label else 1)


def _ask_all(engine: Engine, reason: str) -> None:
    questions = engine.questions()
    if not questions:
        rows.print_rows(_questions(questions))
    for number, question in enumerate(questions, 1):
        keys = [f"{key} {name}" for key, name in _KEYS.items() if key.isprintable() and name in question.answers]
        rows.print_rows([rows.Line(f"{number} of {len(questions)}", "dim"), *_question(question)])
        verdict = text = ""
        while verdict not in (*question.answers, "later", "quit"):
            rows.print_rows([rows.Line("   ".join((*keys, "l later", "q quit")), "cyan")])
            verdict = _KEYS.get(click.getchar(), "")
        if verdict == "quit":
            return
        if verdict == "later":
            continue
        if verdict == "edit":
            text = click.prompt("What is right (Enter leaves it as it was)", "", show_default=False)
            if not text.strip():
                rows.print_rows([rows.Line("left as it was", "dim", 1)])
                continue
        try:
            settled = engine.answer(question.id, verdict, reason=reason, text=text)
            rows.print_rows([_settled(settled)])
        except (NotFoundError, UsageError) as error:
            rows.print_rows([rows.Line(f"{error}", "red", 1)])  # the other questions can still be answered


@ask(memory, _ids)
def archive(engine: Engine, /, ids: tuple[str, ...]) -> rows.Answer:
    """Hide memories from searches without deleting them.

    `commonplace memory restore` brings one back; `commonplace store gc` deletes it after 30 days.

    Example: commonplace memory archive 3f2a
    """
    return _for_each(engine, ids, engine.archive)


@ask(memory, _ids)
def restore(engine: Engine, /, ids: tuple[str, ...]) -> rows.Answer:
    """Bring archived memories back.

    Example: commonplace memory restore 3f2a
    """
    return _for_each(engine, ids, engine.restore_memory)


@ask(memory)
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--type", "type_", metavar="WORD", help="Type of the link. [default: related]")
@click.option("--strength", type=float, default=1.0, show_default=True, metavar="SHARE", help="0 to 1.")
@click.option("--remove", is_flag=True, help="Delete the links from SOURCE to TARGET instead.")
def link(
    engine: Engine, /, source: str | None, target: str | None, type_: str | None, strength: float, remove: bool
) -> rows.Answer:
    """Link memories, or list links.

    With SOURCE and TARGET, link them; with SOURCE, list its links; with neither, list all.

    Example: commonplace memory link 3f2a 9c41 --type because
    """
    if remove and target is None:
        raise click.UsageError("--remove needs SOURCE and TARGET")
    source, target = (None if end is None else engine.resolve_id(end) for end in (source, target))
    if source is None or target is None:
        links = engine.links(source and engine.get(source, touch=False).id)
    elif remove:
        removed = engine.unlink(source, target, type_)
        return {"removed": removed}, f"Removed {rows.counted(removed, 'link')}"
    else:
        links = [engine.link(source, target, type_ or "related", strength)]

    def row(link: Mapping[str, Any]) -> str:
        return f"{link['source']} → {link['target']}  {link['type']} ({link['strength']:.2f})"

    forms = [{**asdict(edge), "created_at": iso(edge.created_at)} for edge in links]
    return forms, rows.listed(forms, row, none="No links.")


_OWNERS: Final = "memories owners knowledge contexts in_process episodes entities relations".split()
_PARTS: Final = (
    ("versions", "version", ""),
    ("passages", "passage", ""),
    ("links", "link", ""),
    ("blocks", "Markdown block", ""),
    ("vault_notes", "vault note", ""),
    ("issues", "issue of the ledger cleaned", "issues of the ledger cleaned"),
    ("reversals", "change that could be undone", "changes that could be undone"),
    ("log_lines", "log line", ""),
)
_MAX_TEXT: Final = 72


def _deleted(receipt: ForgetReceipt) -> str:
    deleted = rows.holdings(receipt.counts, _OWNERS) or "nothing"
    derived = receipt.counts.get("derived", 0)
    return f"{deleted}, {derived:,} of them as copies of the others" if derived else deleted


def _receipt(receipt: ForgetReceipt, whole: str, texts: Mapping[str, str]) -> rows.Rows:
    """Yield what was or would be deleted and how it was verified; `whole` names a namespace that is deleted whole."""
    if not whole and not any(receipt.counts.values()):
        yield "Nothing to forget: nothing was archived that long ago."
        return
    subject = f"namespace {receipt.namespace!r} with {_deleted(receipt)}" if whole else _deleted(receipt)
    yield rows.Line(f"{'Would forget' if receipt.dry_run else 'Forgot'} {subject}", "bold")
    if parts := rows.tally((receipt.counts.get(name, 0), noun, plural) for name, noun, plural in _PARTS):
        yield rows.Line(f"with {parts}", "dim", 1)
    for id_ in receipt.ids[: rows.MAX_LISTED]:
        text = " ".join(texts.get(id_, "").split())
        yield rows.Row(id_, (text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…",), level=1)
    yield from rows.more(len(receipt.ids))
    if receipt.dry_run:
        yield from _outside(receipt)
        return
    size = rows.size_text(sum(size for _, size in receipt.checked))
    scan = f"Searched {rows.counted(len(receipt.checked), 'file')} of the store ({size})"
    if receipt.verified:
        yield rows.Line(f"{scan}: nothing of it is left.", "green")
    else:
        traces = rows.tally([(len(receipt.found), "trace", "")])
        remains = [f"found {traces}"] * bool(traces) + ["some of it is still waiting"] * bool(receipt.waiting)
        yield rows.Line(f"{scan}: {rows.joined(remains) or 'not verified'}.", "red" if receipt.found else "yellow")
    yield from _unfinished(receipt)
    yield from _outside(receipt)
    yield rows.Line(f"Receipt {receipt.id}", "dim")


def _unfinished(receipt: ForgetReceipt, prefix: str = "") -> rows.Rows:
    yield from rows.listed(
        receipt.found, lambda trace: rows.Line(f"{prefix}{trace[0]}: {trace[1]}", "red", 1), limit=rows.MAX_LISTED
    )
    yield from rows.listed(
        receipt.waiting, lambda item: rows.Line(f"waiting: {item}", "yellow", 1), limit=rows.MAX_LISTED
    )


def _outside(receipt: ForgetReceipt) -> rows.Rows:
    yield from map(rows.note, receipt.notices)
    title = "Not deleted, because it is outside the store:"
    yield from rows.listed(receipt.outside, lambda copy: rows.Line(copy, "dim", 1), title, "dim", limit=rows.MAX_LISTED)


def _past(receipt: ForgetReceipt) -> rows.Rows:
    proof = "verified" if receipt.verified else "waiting" if receipt.waiting else "not verified"
    time = rows.local_time(datetime.fromtimestamp(receipt.at, UTC))
    yield rows.Line(f"{time}  {_deleted(receipt)}: {proof}", "" if receipt.verified else "yellow")
    yield rows.Line(f"receipt {receipt.id}", "dim", 1)
    yield from _unfinished(receipt, "still in ")


@command(None, options.dry_run, options.yes)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options.text("--tag", metavar="TAG", help="Every memory with this tag.")
@options.text("--source", help="Everything from this source.")
@options.text("--session", metavar="NAME", help="Every turn of this conversation.")
@options.text("--path", metavar="FILE", help="An indexed file; the file itself stays.")
@options.text("--agent", metavar="NAME", help="All knowledge of this agent, with what `knowledge delete` has hidden.")
@click.option("--receipts", is_flag=True, help="List past deletions and whether they are verified.")
def forget(
    invocation: Invocation, /, ids: tuple[str, ...], dry_run: bool, yes: bool, receipts: bool, **named: str | None
) -> int:
    """Delete memories and every copy in the store, and verify it.

    IDs may name memories, documents, indexed files, knowledge, episodes, entities and facts. On a terminal it asks
    first; elsewhere, and with --json, it needs --yes.

    The store is scanned afterwards and you get a receipt. The exit code is 1 if something was found, or if part of the
    deletion has to wait; `commonplace doctor` finishes it.

    Example: commonplace forget --source standup --dry-run
    """
    selector: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if receipts:
        if ids or selector or dry_run or yes:
            raise click.UsageError("--receipts lists past deletions; it takes no other option")
        with invocation.open() as engine:
            deletions = engine.receipts()
        rows.emit(invocation, deletions, rows.listed(deletions, _past, none="Nothing was forgotten in this namespace."))
        return SUCCESS

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget([engine.resolve_id(id_) for id_ in ids] or None, dry_run=dry_run, **selector)

    is_named = bool(ids or selector)  # otherwise the engine's error lists the selectors
    if is_named and not dry_run and not yes:
        options.refuse_unasked(invocation, "forget for good, or --dry-run to see what would go")
        _delete(invocation, act, dry_run=True)
        # The store is closed while a person thinks.
        invocation.close()
        if not click.confirm("Forget this for good?", err=True):
            say("Nothing was forgotten.", err=True)
            return FAILURE
    return _delete(invocation, act, dry_run=dry_run)


@command(None, options.dry_run, name="forget-namespace")
@click.argument("name")
@click.option("--confirm", metavar="NAME", required=True, help="The exact name once more.")
def forget_namespace(invocation: Invocation, /, name: str, confirm: str, dry_run: bool) -> int:
    """Delete namespace NAME with all it holds, and verify it.

    Example: commonplace store forget-namespace old-team --confirm old-team
    """

    def act(engine: Engine, dry_run: bool) -> ForgetReceipt:
        return engine.forget_namespace(name, confirm=confirm, dry_run=dry_run)

    return _delete(invocation, act, dry_run=dry_run, whole=name)


@command(None, options.dry_run)
@click.option("--older-than-days", type=float, metavar="N", help="Minimum days since it was archived. [default: 30]")
def gc(invocation: Invocation, /, older_than_days: float | None, dry_run: bool) -> int:
    """Delete what was archived more than 30 days ago.

    Example: commonplace store gc --older-than-days 90 --dry-run
    """
    return _delete(invocation, lambda engine, dry: engine.gc(older_than_days, dry_run=dry), dry_run=dry_run)


def _delete(
    invocation: Invocation, act: Callable[[Engine, bool], ForgetReceipt], *, dry_run: bool, whole: str = ""
) -> int:
    """Delete and print the receipt; a dry run prints what would be deleted, with the start of each text."""
    texts: dict[str, str] = {}
    with opened(invocation, is_long=not dry_run) as engine:
        receipt = act(engine, dry_run)
        # Texts of memories and parts of the graph; artifacts and documents are shown only by their ids.
        readers: tuple[Callable[[str], str], ...] = (
            lambda id_: engine.get(id_, touch=False).content,
            lambda id_: engine.graph.episode(id_).content,
            lambda id_: engine.graph.relation(id_).fact,
            lambda id_: engine.graph.entity(id_).name,
        )
        for id_ in receipt.ids[: rows.MAX_LISTED] if dry_run and not invocation.as_json else ():
            for reader in readers:
                with suppress(NotFoundError):
                    texts[id_] = reader(id_)
                    break
    rows.emit(invocation, receipt, _receipt(receipt, whole, texts), has_notices=True)
    return SUCCESS if dry_run or receipt.verified else FAILURE
