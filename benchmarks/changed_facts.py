"""Measure what becomes of a fact when somebody says another in everyday words: overtaken, disputed, or both hold.

Each pair of messages is a store of its own. An older fact is overtaken where recall marks its memory or the graph ends
it, and disputed where a person is asked or the graph disputes it: what is only marked is asked about as well.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

import commonplace
from benchmarks.output import FILE, json_option, show
from commonplace.benchmarks.harness import describe
from commonplace.engine import Engine

PAIRS: Final = Path(__file__).with_suffix(".jsonl")


def run(path: Path) -> dict[str, Any]:
    """Return by verdict how many pairs became what, and how many facts ended wrongly."""
    became: dict[str, Counter[str]] = {}
    ended_wrongly = 0
    with tempfile.TemporaryDirectory() as directory:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            pair = json.loads(line)
            with commonplace.open(Path(directory) / "store", namespace=f"pair-{number}") as book:
                outcomes = outcome(book, pair)
            became.setdefault(pair["verdict"], Counter())["pairs"] += 1
            became[pair["verdict"]].update(name for name, is_so in outcomes.items() if is_so)
            ended_wrongly += outcomes["newer ended"] or (outcomes["older ended"] and pair["verdict"] != "overtaken")
    counts = ("pairs", "newer first", "marked", "older ended", "asked", "neither")
    verdicts = {verdict: {name: totals[name] for name in counts} for verdict, totals in sorted(became.items())}
    return {"benchmark": "changed_facts", "machine": describe(), "verdicts": verdicts, "ended_wrongly": ended_wrongly}


def outcome(book: Engine, pair: dict[str, str]) -> dict[str, bool]:
    """Return what is so after both messages of a pair."""
    older, newer = (
        book.remember(pair[name], at=pair[f"{name}_at"], origin="user", source="user") for name in ("first", "second")
    )
    hits = book.recall(pair["question"], limit=5, touch=False).hits
    facts = book.graph.search_edges(f"{pair['old']} {pair['new']}", 50, include_past=True)
    sides = [
        [fact for fact in facts if pair[name].lower() in f"{fact.source_name} {fact.target_name}".lower()]
        for name in ("old", "new")
    ]
    outcomes = {
        "newer first": bool(hits) and hits[0].owner_id == newer.id,
        "marked": any(hit.owner_id == older.id and hit.superseded_by for hit in hits),
        "older ended": bool(sides[0]) and all(fact.valid_to is not None for fact in sides[0]),
        "newer ended": any(fact.valid_to is not None for fact in sides[1] if fact not in sides[0]),
        "asked": bool(book.questions()) or any(fact.disputed for fact in (*sides[0], *sides[1])),
    }
    return outcomes | {"neither": not (outcomes["marked"] or outcomes["older ended"] or outcomes["asked"])}


@click.command()
@click.option("--pairs", type=FILE, default=PAIRS, help="Other pairs of messages. [default: the forty to judge by]")
@json_option
def main(*, as_json: bool, pairs: Path) -> None:
    """Measure what becomes of facts that were changed in everyday words."""
    show(lambda: run(pairs), as_json=as_json)


if __name__ == "__main__":
    main()
