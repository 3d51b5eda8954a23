"""A fact changes over three episodes: what was decided, the answer before and after, why, and a drawing of it.

Run it anywhere: python a_fact_changes.py graph.svg. It needs no key and leaves nothing behind but the drawing; without
a file's name it prints that in the language of Mermaid.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import commonplace
from commonplace.engine.graph_api import Graph

JANUARY, FEBRUARY, MARCH = (datetime(2026, month, 12, 9, 0, tzinfo=UTC) for month in (1, 2, 3))
now = JANUARY


def say(title: str, *lines: object) -> None:
    """Print a heading and indented lines."""
    print(f"\n{title}")
    for line in lines:
        print(f"    {line}")


def answer(graph: Graph, asked: str, **when: datetime) -> str:
    """Return the best fact of what was decided, that holds now or held then."""
    return graph.search_edges(asked, 1, relation_types=["DECIDED"], **when)[0].fact


with (
    TemporaryDirectory() as directory,
    commonplace.open(Path(directory) / "store", clock=lambda: now.timestamp()) as book,
):
    graph = book.graph
    # The clock is ours, so that three months are over in a second.
    planning = graph.add_episode("We chose SQLite for billing because it needs no server. Billing is part of the shop.")
    now = FEBRUARY
    graph.add_episode("Billing uses Stripe. invoices.py is part of billing, and invoices.py depends on tax.py.")
    say(
        "12 January and 12 February: two episodes. The first one states, found without a model:",
        *(f"{fact.source_name} {fact.relation_type} {fact.target_name}" for fact in planning.relations),
    )
    question = "which database did we choose for billing?"
    say(question, answer(graph, question))

    now = MARCH
    changed = graph.add_episode("We chose Postgres for billing because SQLite was locked too often.")
    say("12 March, the third episode:", "We chose Postgres for billing because SQLite was locked too often.")
    say(question, answer(graph, question))
    say("… and in February?", answer(graph, question, valid_at=FEBRUARY))
    [ended] = changed.ended
    why = (each.reason for each in graph.history(ended.uuid).entries[1:])
    say("What the third episode ended, and why:", ended.fact, *why)
    say(
        "Nothing is lost:",
        *(f"{each.at:%d %b}  {each.what}  {each.relation.fact}" for each in graph.timeline("billing").entries),
    )

    if len(sys.argv) > 1:
        drawn = graph.show("billing", form="svg", include_past=True)
        Path(sys.argv[1]).write_text(drawn.drawing, encoding="utf-8")
        say("Drawn with times, ended facts in grey:", f"{sys.argv[1]} (open it in a browser)")
    else:
        drawn = graph.show("billing", include_past=True)
        say("Drawn as Mermaid, with times:", *drawn.drawing.splitlines())
