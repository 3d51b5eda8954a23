"""The commands for single memories: `remember`, `get`, `list`, `update`, and the group `memory` with more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import time as clock
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.input import can_ask, read_text
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import (
    Beginning,
    Fields,
    Line,
    Paragraphs,
    Row,
    Rows,
    counted,
    emit,
    local_time,
    notify,
    print_rows,
)
from commonplace.dataclasses import asdict
from commonplace.dates.time import iso
from commonplace.errors import NotFoundError, UsageError
from commonplace.types import STATUSES

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.engine.review import Question
    from commonplace.memory.view import Memory

_OUTCOMES: Final = {
    "added": "Remembered",
    "touched": "Remembered before; touched",
    "reviewed": "Reviewed",
    "updated": "Updated",
    "unchanged": "Unchanged",
    "archived": "Archived",
    "restored": "Restored",
    "read": "Memory",
}


def _json_object(_: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        found = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not JSON: {error}", param=parameter) from None
    if not isinstance(found, dict):
        raise click.BadParameter(f'{value!r} is not a JSON object; write {{"key": "value"}}', param=parameter)
    return found


_fields = options.group(
    options.text_file,
    options.choice("--tier", of=options.STORED_TIERS, help="How long to keep it."),
    options.text("--tag", "tags", metavar="TAG", many=True, help="A tag; may be repeated."),
    options.text("--entity", "entities", metavar="NAME", many=True, help="A subject; may be repeated."),
    click.option("--source", metavar="TEXT", help="Who or what it came from."),
    options.time("--at", is_start=True, help="When it happened: ISO 8601, or 'yesterday'."),
    click.option("--category", metavar="WORD", help="decision, preference, fact, context, …"),
    click.option("--metadata", metavar="JSON", callback=_json_object, help="A JSON object to keep with it."),
)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


def _outcome(memory: Memory) -> Rows:
    done = "Touched" if memory.outcome == "touched" and not memory.notices else _OUTCOMES[memory.outcome]
    yield Line(f"{done}: {memory.id} ({memory.tier})", "bold")


def _outcomes(memories: Sequence[Memory]) -> Rows:
    for each in memories:
        yield from _outcome(each)


def _list(memories: Sequence[Memory], *, is_filtered: bool) -> Rows:
    if not memories:
        yield "No such memories." if is_filtered else "No memories. Keep one with `commonplace remember`."
    for each in memories:
        tags = " ".join(f"#{tag}" for tag in each.tags)
        status = "" if each.status == "active" else each.status
        known = (each.tier, status, local_time(each.at), f"retention {each.retention:.2f}", each.source, tags)
        yield Row(each.id, known, each.content)


def _versions(versions: Sequence[Memory]) -> Rows:
    for each in versions:
        until = local_time(each.expired_at) or "now"
        yield Line(f"Version {each.version}, {local_time(each.updated_at)} until {until}", "bold")
        yield Paragraphs(each.content, 1)


def _links(found: Mapping[str, int] | Sequence[Mapping[str, Any]]) -> Rows:
    if isinstance(found, Mapping):
        yield f"Removed {counted(found['removed'], 'link')}"
        return
    for each in found:
        yield f"{each['source']} → {each['target']}  {each['type']} ({each['strength']:.2f})"
    if not found:
        yield "No links."


def _whole(memory: Memory) -> Rows:
    yield Paragraphs(memory.content)
    yield ""
    used = f"{counted(memory.use_count, 'use')}, last {local_time(memory.last_used)}"
    stored = f"{local_time(memory.created_at)}, version {memory.version} since {local_time(memory.updated_at)}"
    fields = {
        "id": memory.id,
        "tier": f"{memory.tier} ({memory.status})",
        "at": local_time(memory.at),
        "stored": stored,
        "expired": local_time(memory.expired_at),
        "retention": f"{memory.retention:.3f}; {used}; strength {memory.strength:.1f}",
        "category": memory.category,
        "tags": ", ".join(memory.tags),
        "entities": ", ".join(memory.entities),
        "source": memory.source,
        "origin": f"{memory.origin}, trust {memory.trust:.2f}",
        "session": f"{memory.session}, turn {memory.position + 1}" if memory.session else "",
        "made from": ", ".join(memory.derived_from),
        "reviews": str(memory.review_count or ""),
        "note": memory.vault_path,
        "forced": "yes" if memory.is_forced else "",
        "metadata": json.dumps(dict(memory.metadata), ensure_ascii=False) if memory.metadata else "",
    }
    yield Fields(fields)


@command()
@click.argument("text", nargs=-1)
@_fields
@click.option("--session", metavar="NAME", help="The conversation it belongs to.")
@click.option("--id", metavar="ID", help="Your own id; a known one makes the next version.")
@options.origin
@click.option("--force", is_flag=True, help="Store it even if it is a duplicate or looks binary.")
def remember(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, force: bool, **values: Any) -> None:
    """Store TEXT, or standard input, as a memory.

    Secrets are replaced. A duplicate is not stored again: the known memory counts as used.

    Example: commonplace remember "We chose Postgres for billing" --tag decision --source standup
    """
    from commonplace.engine.memory_api import refuse_unfit_memory

    loaded = invocation.settings()
    content = read_text(text, file, loaded.memory.max_bytes)
    if content is None:
        raise click.UsageError("there is nothing to remember; give a text, a --file, or a pipe")
    given = _given(values)
    refuse_unfit_memory({"content": content, **given}, loaded, clock(), force=force)  # before a store is made for it
    with opened(invocation, loaded, create=True) as engine:
        memory = engine.remember(content, force=force, **given)
    emit(invocation, memory, _outcome)


@command()
@click.argument("id")
@click.argument("text", nargs=-1)
@_fields
def update(invocation: Invocation, /, id: str, text: tuple[str, ...], file: Path | None, **values: Any) -> None:  # noqa: A002
    """Write a new version of memory ID.

    Fields that are not given stay. Old versions remain readable: `commonplace get ID --as-of TIME`.

    Example: commonplace update 3f2a "We moved billing to SQLite" --tag storage
    """
    loaded = invocation.settings()
    content = read_text(text, file, loaded.memory.max_bytes) if text or file is not None else None
    with invocation.open(loaded) as engine:
        memory = engine.update(engine.resolve_id(id), content, **_given(values))
    emit(invocation, memory, _outcome)


@command()
@click.argument("id")
@options.as_of
@click.option("--versions", is_flag=True, help="Every version, oldest first.")
@click.option("--touch/--no-touch", default=None, help="Count a use, or none. [default: at most one an hour]")
def get(invocation: Invocation, /, id: str, as_of: str | None, versions: bool, touch: bool | None) -> None:  # noqa: A002
    """Show memory ID.

    Example: commonplace get 3f2a --versions
    """
    with invocation.open() as engine:
        id = engine.resolve_id(id)  # noqa: A001 - the name of the argument
        found = engine.versions(id) if versions else engine.get(id, as_of=as_of, touch=touch)
        engine.log_use(id)
    emit(invocation, found, _versions if versions else _whole)


@command(name="list")
@options.tiers
@options.choice("--status", "statuses", of=STATUSES, many=True, help="Only this status.")
@options.tags
@options.place
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
        found = engine.list(**values)
        passed = values["offset"] + len(found)
        is_more = len(found) == values["limit"] and engine.list(**{**values, "limit": 1, "offset": passed})
    emit(invocation, found, lambda memories: _list(memories, is_filtered=is_filtered))
    if is_more:
        notify((f"there are more; see them with --offset {passed}",), invocation)


@click.group(cls=Group)
def memory() -> None:
    """Link, review, archive and restore memories."""


def _for_each(engine: Engine, ids: tuple[str, ...], act: Callable[[str], Memory]) -> list[Memory]:
    # Each is looked up before any is changed: a wrong id among many leaves all as they were.
    return [act(id_) for id_ in [engine.get(engine.resolve_id(id_), touch=False).id for id_ in ids]]


_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")


@ask(memory, _outcomes)
@_ids
@click.option("--reinforce", is_flag=True, help="Also raise its strength by 0.1, up to 2.")
def touch(engine: Engine, /, ids: tuple[str, ...], reinforce: bool) -> list[Memory]:
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
    """Settle what waits for you, or confirm memories.

    Without ID it shows contradicting facts, memories that a newer one may have overtaken, and proposals of
    consolidation, one at a time. With ID a review counts as a use; after three, `commonplace consolidate run promote`
    writes a memory to the vault.

    Example: commonplace review
    """
    if given is not None and len(ids) > 1:
        raise click.UsageError("There are memories and an --answer; give one of them.")
    with opened(invocation) as engine:
        if given is not None:
            done = engine.answer(given, "".join(ids), reason=reason, text=text)
            emit(invocation, done, lambda done: [Line(f"{done['id']} settled: {done['answer']}", "green")])
        elif ids:
            emit(invocation, _for_each(engine, ids, engine.review), _outcomes)
        elif can_ask(invocation):
            _ask_all(engine, reason)
        else:
            found = engine.questions()
            emit(invocation, found, _questions, value={"questions": [each.to_dict() for each in found]})


_KEYS: Final = {
    "\x1b[D": "left",
    "1": "left",
    "\x1b[C": "right",
    "2": "right",
    "b": "both",
    "e": "edit",
    "a": "accept",
    "x": "reject",
    "l": "later",
    "q": "quit",
}
_NAMES_OF_KEYS: Final = {"left": "← left", "right": "→ right", "both": "b both", "edit": "e edit", "accept": "a accept"}
_WHAT_IS_RIGHT: Final = "What is right (Enter leaves it as it was)"


def _question(question: Question) -> Rows:
    yield Line(question.question, "bold yellow")
    if question.why:
        yield Line(question.why, "dim", 1)
    for place, side in enumerate(question.sides, 1):
        when = "" if side.at is None else local_time(side.at)
        yield Row(f"{place}. {' · '.join(filter(None, (when, side.source, f'trust {side.trust:.2f}')))}", (side.id,))
        yield Beginning(side.text)


def _questions(found: Sequence[Question]) -> Rows:
    for each in found:
        yield from _question(each)
        yield Line(f"Answer {', '.join(each.answers).replace('edit', 'edit (with --text TEXT)')}:", "dim")
        yield Line(f"commonplace review --answer {each.id} ANSWER", "dim")
    if not found:
        yield "Nothing waits for you."


def _ask_all(engine: Engine, reason: str) -> None:
    found = engine.questions()
    if not found:
        print_rows(_questions(found))
    for place, each in enumerate(found, 1):
        print_rows([Line(f"{place} of {len(found)}", "dim"), *_question(each)])
        keys = [_NAMES_OF_KEYS.get(name, f"x {name}") for name in each.answers]
        print_rows([Line("   ".join((*keys, "l later", "q quit")), "cyan")])
        chosen = ""
        while chosen not in (*each.answers, "later", "quit"):
            chosen = _KEYS.get(click.getchar(), "")
        if chosen == "quit":
            return
        if chosen != "later":
            text = click.prompt(_WHAT_IS_RIGHT, "", show_default=False) if chosen == "edit" else ""
            if chosen == "edit" and not text.strip():
                print_rows([Line("left as it was", "dim", 1)])
                continue
            try:
                done = engine.answer(each.id, chosen, reason=reason, text=text)
                print_rows([Line(f"settled: {done['answer']}", "green", 1)])
            except (NotFoundError, UsageError) as error:
                print_rows([Line(f"{error}", "red", 1)])  # the rest can still be answered


@ask(memory, _outcomes)
@_ids
def archive(engine: Engine, /, ids: tuple[str, ...]) -> list[Memory]:
    """Hide memories from searches without deleting them.

    `commonplace memory restore` brings one back; `commonplace store gc` deletes it after 30 days.

    Example: commonplace memory archive 3f2a
    """
    return _for_each(engine, ids, engine.archive)


@ask(memory, _outcomes)
@_ids
def restore(engine: Engine, /, ids: tuple[str, ...]) -> list[Memory]:
    """Bring archived memories back.

    Example: commonplace memory restore 3f2a
    """
    return _for_each(engine, ids, engine.restore_memory)


@ask(memory, _links)
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--type", "type_", metavar="WORD", help="Type of the link. [default: related]")
@click.option("--strength", type=float, default=1.0, show_default=True, metavar="SHARE", help="0 to 1.")
@click.option("--remove", is_flag=True, help="Delete the links from SOURCE to TARGET instead.")
def link(
    engine: Engine, /, source: str | None, target: str | None, type_: str | None, strength: float, remove: bool
) -> dict[str, int] | list[dict[str, Any]]:
    """Link memories, or list links.

    With SOURCE and TARGET, link them; with SOURCE, list its links; with neither, list all.

    Example: commonplace memory link 3f2a 9c41 --type because
    """
    if remove and target is None:
        raise click.UsageError("--remove needs SOURCE and TARGET")
    source, target = (None if end is None else engine.resolve_id(end) for end in (source, target))
    if source is None or target is None:
        links = engine.links(source)
    elif remove:
        return {"removed": engine.unlink(source, target, type_)}
    else:
        links = [engine.link(source, target, type_ or "related", strength)]
    return [{**asdict(each), "created_at": iso(each.created_at)} for each in links]
