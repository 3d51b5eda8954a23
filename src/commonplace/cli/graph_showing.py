"""The command `graph show`: a picture of what lies about an entity, in the form that its file's name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.values import time

if TYPE_CHECKING:
    from commonplace.formats.drawing import Drawing

FORMATS = ("svg", "html", "dot", "mermaid", "png")
_ENDINGS = {"htm": "html", "gv": "dot", "mmd": "mermaid"}
_READABLE = 60


@click.command(cls=Command)
@click.argument("entity")
@click.option("--depth", type=int, default=2, show_default=True, metavar="N", help="How many facts away, up to 4.")
@click.option(
    "-n", "--limit", type=int, default=_READABLE, show_default=True, metavar="N", help="How many entities at most."
)
@click.option("--as-of", metavar="TIME", callback=time, help="What was known then.")
@click.option("--valid-at", metavar="TIME", callback=time, help="What was true in the world then.")
@click.option("--past", "include_past", is_flag=True, help="Also what has ended, in grey.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file: .svg, .html, .dot, .mmd, .png.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="In place of what the file's name says.")
@pass_invocation
def show(invocation: Invocation, /, entity: str, out: Path | None, form: str | None, **options: Any) -> None:
    """Draw what lies about ENTITY, with the time on each fact.

    Without --out, the drawing is printed in the language of Mermaid, which most viewers of Markdown show.
    """
    from commonplace.cli.screen import console, print_json, say

    chosen = form or _form_of(out)
    if chosen == "png" and out is None:
        raise click.UsageError("a PNG picture is not text; name a file with --out")
    with invocation.open(invocation.settings()) as engine:
        drawing = engine.graph.show(entity, **options)
    drawn = _drawn(drawing, chosen)
    if out is not None:
        from commonplace.cli.writing import write_whole

        write_whole(out, drawn, store=engine.directory, remedy="name another --out")
    if invocation.as_json:
        told = {
            "entity": drawing.title,
            "format": chosen,
            "out": None if out is None else str(out),
            "entities": len(drawing.nodes),
            "facts": len(drawing.edges),
            "is_capped": drawing.is_capped,
            "drawing": drawn if out is None else None,
        }
        print_json(told)
    elif out is None:
        say(str(drawn).rstrip("\n"))
    else:
        from commonplace.cli.graph_rendering import print_drawn

        print_drawn(drawing, out, console())


def _form_of(out: Path | None) -> str:
    if out is None:
        return "mermaid"
    ending = out.suffix.lower().removeprefix(".")
    found = _ENDINGS.get(ending, ending)
    if found not in FORMATS:
        endings = ", ".join(f".{each}" for each in (*FORMATS, *_ENDINGS))
        raise click.UsageError(
            f"{out.name!r} does not say what to draw; end it with one of {endings}, or give --format"
        )
    return found


def _drawn(drawing: Drawing, form: str) -> str | bytes:
    if form == "svg":
        from commonplace.formats.drawing_svg import to_svg

        return to_svg(drawing)
    if form == "html":
        from commonplace.formats.drawing_html import to_html

        return to_html(drawing)
    if form == "png":
        from commonplace.formats.drawing_png import to_png

        return to_png(drawing)
    from commonplace.formats.drawing_text import to_dot, to_mermaid

    return to_dot(drawing) if form == "dot" else to_mermaid(drawing)
