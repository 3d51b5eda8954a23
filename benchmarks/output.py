"""Run one benchmark of this directory: print what it measured as tables, or as JSON with `--json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from commonplace.errors import CommonplaceError

FILE: Final = click.Path(dir_okay=False, path_type=Path)
DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)

embedder_option = click.option("--embedder", metavar="NAME", help="Measure with this embedder, not the usual one.")
keep_option = click.option("--keep", type=DIRECTORY, help="Leave the store that was filled in this directory.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Draw the same again.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def show(measure: Callable[[], dict[str, Any]], *, as_json: bool) -> None:
    """Measure, and print the result."""
    try:
        result = measure()
    except CommonplaceError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    console = Console(width=160, soft_wrap=True)
    for title, rows in tables("", result):
        columns = list(dict.fromkeys(name for row in rows.values() for name in row))
        table = Table("", *columns, title=title, title_justify="left", box=None)
        for what, row in rows.items():
            table.add_row(str(what), *(_cell(row.get(name, "–")) for name in columns))
        console.print(table, "")


def tables(title: str, value: Mapping[Any, Any]) -> Iterator[tuple[str, dict[Any, dict[str, Any]]]]:
    """Yield a title and rows of named cells for each part of a result that holds no further tables."""
    plain = {what: {"": each} for what, each in value.items() if not isinstance(each, Mapping | list)}
    flat = {
        what: dict(each)
        for what, each in value.items()
        if isinstance(each, Mapping) and not any(isinstance(inner, Mapping | list) for inner in each.values())
    }
    if plain:
        yield title, plain
    if flat:
        yield title, flat
    for what, each in value.items():
        if isinstance(each, list) and each and isinstance(each[0], Mapping):
            yield f"{title} {what}", {number: dict(row) for number, row in enumerate(each, start=1)}
        elif isinstance(each, Mapping) and what not in flat:
            yield from tables(f"{title} {what}".strip(), each)


def _cell(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
