"""Time the search for secrets in a million characters of each of many hostile texts, and in a text of words.

    .venv/bin/python scripts/redaction_speed.py

A careless pattern takes minutes on one of them. The time is that of the process, in seconds.
"""

from __future__ import annotations

import random
import time

from commonplace.redaction import find_secrets
from commonplace.redaction.patterns import VENDORS

SIZE = 1_000_000
NAMES = (
    "password",
    "passw",
    "pass",
    "pwd",
    "pw",
    "pin",
    "secret",
    "token",
    "key",
    "api_key",
    "authorization",
    "bearer",
    "auth",
)
COMMANDS = (
    "curl -u ",
    "curl -u a:",
    "curl -\n",
    "sshpass -p ",
    "mysql -p",
    "machine ",
    "machine a login b ",
    " login -p ",
)
MARKS = (
    "=",
    "= ",
    ":",
    ": ",
    "=a1",
    "=a1b2c3 ",
    '="',
    "='",
    '="a1',
    "=\\",
    " is ",
    " for a b ",
    " to ",
    "**: ",
    "\n value:",
    " ",
    ">",
    "|",
)
PIECES = (
    *"a7-_.~/+=:\"'`\\& \n",
    *(
        "a1",
        "\\n",
        "\\\\",
        "''",
        '""',
        "://",
        "://a:",
        "://a:b",
        "a://a:a1@",
        "aws ",
        "aws",
        "aws secret ",
        "akia",
        "AKIA",
    ),
    *(
        "eyJ",
        "eyJ.",
        "eyJ0.",
        "eyJhbGciOiJub.",
        "sk-",
        "sk-.",
        "ghp_",
        "xoxb-",
        "MDEw~",
        "Q~",
        ".atlasv1.",
        "-us",
        "whsec_",
    ),
    *("sig=", "?sig=", "&sig=a", "/api/webhooks/", "4111 ", "4111-", "0-", "41111111111111 ", "[redacted: "),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----aB1cdefgh\n", "-----END "),
    *(name + mark for name in NAMES for mark in MARKS),
    *COMMANDS,
    *(prefix + end for _, prefixes, _ in VENDORS for prefix in prefixes for end in ("", ".")),
)


def texts() -> dict[str, str]:
    """Return the hostile texts by a short name."""
    chance = random.Random(7)  # noqa: S311 - no secret is made
    base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    lines = "\n".join("".join(chance.choices(base64, k=76)) for _ in range(SIZE // 77))
    words = ("the", "password", "of", "a", "token", "is", "in", "key", "curl", "login", "secret", "and", "value", "x1")
    by_name = {repr(piece): piece * (SIZE // len(piece)) for piece in PIECES}
    by_name["base64 in lines"] = lines
    by_name["base64 in one line"] = lines.replace("\n", "")
    by_name["a key without an end"] = "-----BEGIN PRIVATE KEY-----\n" + lines
    by_name["words behind the mark of a key"] = "-----BEGIN PRIVATE KEY-----\n" + "a word or two " * (SIZE // 14)
    by_name["words"] = " ".join(chance.choices(words, k=SIZE // 5))
    by_name["pieces"] = "".join(chance.choices(PIECES, k=SIZE // 6))
    return by_name


def main() -> None:
    timings = []
    for name, text in texts().items():
        start = time.process_time()
        find_secrets(text)
        timings.append((time.process_time() - start, name))
    timings.sort(reverse=True)
    for seconds, name in timings[:30]:
        print(f"{seconds:6.3f} s  {name}")
    slowest, middle = timings[0][0], timings[len(timings) // 2][0]
    print(f"{len(timings)} texts of a million characters: the slowest {slowest:.3f} s, the middle one {middle:.3f} s")


if __name__ == "__main__":
    main()
