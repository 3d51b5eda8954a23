"""Measure how fast memories are stored and recalled."""

from __future__ import annotations

from typing import Any

import click

from benchmarks.output import embedder_option, json_option, keep_option, seed_option, show
from commonplace.benchmarks.memories import MemoryOptions, run


@click.command()
@click.option(
    "--memories", type=int, default=10_000, show_default=True, metavar="N", help="How many are stored before."
)
@click.option(
    "--calls", type=int, default=300, show_default=True, metavar="N", help="How often is stored, and recalled."
)
@embedder_option
@keep_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure how fast memories are stored and recalled.

    A fresh process stores and recalls in turn; a bare durable commit is measured beside it.
    """
    show(lambda: run(MemoryOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
