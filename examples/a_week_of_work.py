"""A week of an agent's work: remember it, find it in other words with overtaken memories marked, ask what was believed
last Tuesday, explain a hit, forget one thing.

Run it anywhere: python a_week_of_work.py. It needs no key and leaves nothing behind, unless a directory is named.
"""

import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import commonplace

MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
now = MONDAY


def say(title: str, *lines: object) -> None:
    """Print a heading and indented lines."""
    print(f"\n{title}")
    for line in lines:
        print(f"    {line}")


def shown(hit: commonplace.Hit) -> str:
    """Return a hit with how sure it is, and whether a newer one may have overtaken it."""
    return f"{hit.text}  [{hit.confidence}{', older' if hit.superseded_by else ''}]"


with (
    nullcontext(sys.argv[1]) if sys.argv[1:] else TemporaryDirectory() as directory,
    commonplace.open(Path(directory) / "store", clock=lambda: now.timestamp()) as book,
):
    # Monday to Friday. The clock is ours, so that the week is over in a second.
    billing = book.remember(
        "The database for billing is Postgres: the team knows it.", category="decision", tags=["db"]
    )
    now = MONDAY + timedelta(days=1)
    book.remember("The user wants short answers, with the command to run first.", category="preference", origin="user")
    book.remember("Deploys run on Thursdays, after the standup.")
    customer = book.remember("Customer Ada Marsh called: her phone number is 030 1234567.", source="call")
    now = MONDAY + timedelta(days=2)
    book.update(billing.id, "The database for billing is SQLite: one file, no server to run.")
    now = MONDAY + timedelta(days=3)
    again = book.remember("the database for billing is SQLite: one file, no server to run")
    book.remember("The deploy failed because the token ghp_" + "4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRg had expired.")
    book.remember("My daughter Ines starts school in September.", origin="user")
    book.remember("Deploys moved to Tuesdays: nobody is around on Friday to watch them.")
    now = MONDAY + timedelta(days=7)

    question = "when does my kid go to class?"
    say(f"{question}  (no word in common)", shown(book.recall(question, limit=1).hits[0]))
    question = "on which day do we deploy?"
    say(f"{question}  (the newer fact first)", *map(shown, book.recall(question, limit=2).hits))
    question = "what is my blood type?"
    likely = [hit for hit in book.recall(question).hits if hit.confidence != "weak"]
    say(f"{question}  (not stored)", *(map(shown, likely) if likely else ["nothing likely"]))

    question = "which database does billing use?"
    result = book.recall(question)
    say(question, result.hits[0].text)
    say("… and what did we believe last Tuesday?", book.recall(question, as_of="last Tuesday").hits[0].text)
    say("What happened on Tuesday?", *(hit.text for hit in book.recall("what happened on 3 March?").hits))
    say("The same text twice is one memory:", again.outcome, *again.notices)
    say("A secret is not stored:", book.recall("why did the deploy fail?").hits[0].text)

    receipt = book.why(result, result.hits[0].id)
    say(
        f"Why that hit? Score {receipt.score:.2f}, {receipt.confidence}:",
        *(f"{signal.name:<20} {signal.value:6.2f}" for signal in receipt.signals),
        f"words found: {', '.join(receipt.matched_terms)}",
    )

    gone = book.forget(customer.id)
    files = [path for path in Path(directory).rglob("*") if path.is_file()]
    left = [path.name for path in files if b"Ada Marsh" in path.read_bytes()]
    say(
        "Forget the customer, and prove it:",
        f"verified: {gone.verified}, {len(gone.checked)} files searched",
        f"files that still hold her name: {left or 'none'}",
        f"still found: {any('Ada Marsh' in hit.text for hit in book.recall('Ada Marsh phone number').hits)}",
    )
