"""Redaction over texts that are mixed from secrets, placeholders, words and anything else."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from commonplace.redaction import KINDS, find_secrets, redact

HEX = "9f86d081884c7d659a2feaa0c55ad015"
MIXED = "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEaXoKi"
PIECES = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + MIXED[:36],
    "sk-" + MIXED + "-" + HEX,
    "xoxb-" + "123456789012-" + MIXED[:24],
    "4111 1111" + " 1111 1111",
    "41111111" + "11111111",
    MIXED,
    HEX,
    "123456789:" + "AA" + MIXED[:33],
    "-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5,
    "-" * 5 + "END PRIVATE KEY" + "-" * 5,
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw",
    "eyJhbGciOiJIUzI1NiJ9",
    "://ada:",
    "@example.com",
    "password",
    "api_key",
    "Authorization: Bearer ",
    "aws_secret_access_key",
    "hunter2",
    "4471",
    "'s",
    "passwd",
    *(f"[redacted: {kind}]" for kind in KINDS),
    "[redacted: ",
    *"=:.-_/+ \"'`\n\r>*|",
    "\r\n",
    " is ",
    "order ",
    "\u2028",
    "é",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=14).map("".join)
PLACEHOLDER = re.compile(r"\[redacted: (?:" + "|".join(KINDS) + r")\]")


@given(TEXTS)
def test_a_redacted_text_holds_no_secret(text: str) -> None:
    """Redaction runs on write and on output: the second must not change what the first has stored."""
    redacted = redact(text)
    assert find_secrets(redacted.text) == ()
    assert redact(redacted.text).text == redacted.text


@given(TEXTS)
def test_secrets_are_in_order_apart_and_clear_of_placeholders(text: str) -> None:
    secrets = find_secrets(text)
    assert all(0 <= secret.start < secret.end <= len(text) and secret.kind in KINDS for secret in secrets)
    assert all(left.end <= right.start for left, right in pairwise(secrets))
    for placeholder in PLACEHOLDER.finditer(text):
        assert all(secret.end <= placeholder.start() or placeholder.end() <= secret.start for secret in secrets)


@given(TEXTS)
def test_a_redacted_text_has_as_many_lines(text: str) -> None:
    """A reference to lines of a file must stay right."""
    assert len((redact(text).text + ".").splitlines()) == len((text + ".").splitlines())


@given(TEXTS)
def test_what_is_no_secret_stays_and_every_placeholder_is_accounted_for(text: str) -> None:
    redacted = redact(text)
    new = len(PLACEHOLDER.findall(redacted.text)) - len(PLACEHOLDER.findall(text))
    assert new == len(redacted.kinds)
    if not redacted.kinds:
        assert redacted.text == text


@given(st.text())
def test_any_text_at_all_is_read(text: str) -> None:
    assert redact(text).text == text or find_secrets(text)
