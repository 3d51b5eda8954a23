"""Which texts are suspected of being worth nothing, and which are not."""

from __future__ import annotations

import pytest

from commonplace.health.examine import suspicion

WORTH_KEEPING = [
    "We chose Postgres for billing",
    "No deploys on Friday",
    "Ann",
    "Thanks to Ann the build is green again",
    "deploy.sh -x --force && make test",
    "北京的办公室在八点开门",
    "def a(x):\n    return x\n\n\ndef b(y):\n    return y\n",
    "| name | city |\n| --- | --- |\n| Ann | Oslo |\n",
    "Meeting on 2026-03-01 10:00: budget approved",
]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ok", "it is a pleasantry or a placeholder"),
        ("Thanks, sounds good!", "it is a pleasantry or a placeholder"),
        ("TODO", "it is a pleasantry or a placeholder"),
        ("n/a", "it is a pleasantry or a placeholder"),
        ("Lorem ipsum dolor sit amet", "it is a placeholder"),
        ("12345 --- 99", "it has no words"),
        ("17;4.25;88;-3;0;0;19;4.75;90;-2;0;1;21;5.00;ok;93;-1;1;1", "most of it is neither letters nor words"),
        (
            "\n".join(f"2026-03-01 10:00:0{n} INFO worker started" for n in range(6)),
            "it looks like a log or a traceback",
        ),
        ("\n".join(["same line here"] * 4 + ["another one"]), "it repeats the same lines"),
        ("buy milk " * 30, "it repeats the same words"),
    ],
)
def test_what_says_nothing_is_suspected(text: str, why: str) -> None:
    assert suspicion(text) == why


@pytest.mark.parametrize("text", WORTH_KEEPING)
def test_what_says_something_is_not(text: str) -> None:
    assert suspicion(text) == ""
