"""Detect secrets by context: URLs, headers, commands, assignments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from commonplace.lazy_regex import lazy_pattern
from commonplace.redaction.patterns import (
    MIN_PASSWORD_LENGTH,
    MIN_TOKEN_LENGTH,
    Secret,
    View,
    decoded,
    is_disordered,
    is_given,
    may_be_password,
    may_be_token,
    places,
    table,
)

_URL_PASSWORD: Final = lazy_pattern(
    r"://(?<=[A-Za-z0-9]://)[^\s/?#@:\"'`<>]{0,256}+:([^\s/@\"'`<>]{1,256}+)@[A-Za-z0-9_\[$({%]"
)
_TEMPLATE: Final = lazy_pattern(r"[$%{<\[(].*|[A-Z_]{3,}|\*+|x{3,}|\.{3,}|.*[{}].*")

_QUOTE: Final = r"""\\{0,7}["'`]"""
"""A quotation mark, escaped or not: strings may be nested."""
_HEADER: Final = lazy_pattern(
    rf"(?i:authorization)(?:{_QUOTE}|\]){{0,2}}[ \t]{{0,4}}[:=,][ \t]{{0,4}}(?:{_QUOTE})?"
    r"(?:(?i:(bearer|basic|token|apikey))[ \t]{1,4})?([A-Za-z0-9._~+/=:-]{6,}+)"
)
_BEARER: Final = lazy_pattern(r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=:-]{16,}+)")
_ENCODED: Final = lazy_pattern(rf"auth{_QUOTE}[ ]?:[ ]?{_QUOTE}([A-Za-z0-9+/]{{8,}}+={{0,2}}){_QUOTE}")
"""The name and password that Docker keeps for a registry, in base64."""

_AWS_CONTEXT: Final = tuple(
    (anchor, lazy_pattern(pattern))
    for anchor, pattern in (
        ("aws", r"aws(?:(?!aws)[\w .:'\"-]){0,24}?(?:secret|cred|access.?key)"),
        ("akia", "(?<![a-z0-9])akia[a-z0-9]{16}"),
        ("asia", "(?<![a-z0-9])asia[a-z0-9]{16}"),
        ("secretaccesskey", ""),
        ("secret_access_key", ""),
    )
)
_AWS_SECRET: Final = lazy_pattern(r"""[\s"'`=:>,]([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=_-])""")
_AWS_REACH: Final = 160

_SEPARATOR: Final = (
    rf"[*_]{{0,2}}+(?:{_QUOTE}|\]){{0,2}}+[*_]{{0,2}}+[ \t]{{0,8}}+"  # what closes the name
    r"(?::[ ]?[a-z]{1,12}+(?:[ ]?\|[ ]?none)?[ ]{0,2}(?==))?+"  # the type in `password: str = "…"`
    rf"(?:(?:=>|:=|={{1,3}}+|:|(?<=[ ])is:?+(?=[ ])|,?[\s\\]{{0,40}}+(?:{_QUOTE})?value(?:{_QUOTE})?[ ]?[:=])"
    r"[*]{0,2}+[ \t]{0,8}+|>(?=[^\s<>]{6,256}</)|(?P<space>(?<=[ \t])))"
)
"""The separator of a name and its value; after `--password` and `ENV PASSWORD` a space is enough."""
_NAMES: Final = "(?:passwor[dt]|passwd|passphrase|pwd|secret|token|key)"
_VALUE: Final = (
    r"""(?:[rbu]{0,2}(?P<quote>\\{0,7}(?:"{1,3}|'{1,3}|`))(?P<quoted>[^\s"'`\\]{6,}+)(?P=quote)|"""
    rf"""(?P<bare>(?:[^\s"'`,;<>()\[\]{{}}&?kpst]++|&(?!\w{{1,30}}=)|(?!{_NAMES}[*_]{{0,2}}[:=])[kpst])++)"""
    r"""(?![(\[{]|'[a-z]|(?<=[=:])["'`]\w))"""
)
"""In quotes, escaped or doubled where a string is in a string; or bare, as where the name is in the quotes too.

Another name with a separator ends a bare value: so no character is read for two names.
"""
_OF: Final = r"[ ](?:for|of|on|at|in|to)(?:[ ][\w'./@-]{1,30}+){1,6}?"
_SAID: Final = (
    rf"(?:{_OF}:|(?:{_OF})?(?:(?:[ ](?:is|was|has[ ]been|got))?[ ](?:changed|set|updated|reset|rotated)[ ]to|"
    r"[ ](?:is|was)(?:[ ]now)?|(?P<to>[ ]to)))[ ]"
)
"""The same in words: `the password for the guest network is now …`, `it was changed to …`, `set the password to …`."""
_PASSWORD: Final = lazy_pattern(
    r"""(?:pass(?:wor[dt]|wd|phrase|(?<=[_"'`-]pass)|(?=:[ ]?["'`]))|pwd|(?<![a-z0-9])pw)(?![a-z0-9])"""
    rf"(?:{_SAID}|{_SEPARATOR}){_VALUE}"
)
_SETS: Final = lazy_pattern(r"\b(?:set|chang|updat|reset|rotat)[a-z]{0,3}[ ][\w' ]{0,30}\Z")
_PIN: Final = lazy_pattern(rf"(?<![\w-])pin(?:{_SAID}|:[ ])(?P<given>[0-9]{{4}}|[0-9]{{6}})(?![\w-])")
_TOKEN: Final = lazy_pattern("(?:secret|token|key)(?![a-z0-9])" + _SEPARATOR + _VALUE)
_PASSWORDS, _TOKENS = ("pass", "pw"), ("secret", "token", "key")
"""What is looked for, as the names of passwords and of tokens hold it."""
_KIND_OF_KEY: Final = lazy_pattern(
    r"(?:api|access|secret|private|account|storage|master|encryption|signing|auth)[ _-]?\Z"
)
_FLAG: Final = lazy_pattern(r"(?:--[\w-]{0,40}|\benv[ ]\w{0,40})\Z")
_NO_SECRET: Final = lazy_pattern(
    r"(?:next|page|paging|pagination|continuation|forward|backward|output|cursor|lock|change|update|action|sync|"
    r"idempotency|client|request|identity|public[_-]?key)[_-]?(?:tok|key)\Z|::\w{0,40}\Z"
)
"""What makes another thing of the `token` or `key` that follows: a page's mark, a lock, the name of a type."""
_BEFORE: Final = 48
_JUDGED: Final = 128
"""Number of first characters of a value that decide whether all of it is a secret."""
_PUNCTUATION: Final = ".:*|\\"
_CODE: Final = lazy_pattern(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]\w+(?:Key|Token|Secret|Type)s?"
)
"""An unquoted attribute, or the name of a constant or a type."""


_GIVEN: Final = r"""(?P<given>[^\s"'`\\]{4,256}+)"""
_COMMANDS: Final = tuple(
    (
        name,
        lazy_pattern(r"(?<=[\s\"'`])" + flag.replace("<quote>", _QUOTE).replace("<given>", _GIVEN)),
        is_given if judge == "given" else may_be_password,
    )
    for name, judge, flag in table("commands.txt")
)
"""A command, its flag for a password, and the pattern of one."""
_COMMAND: Final = lazy_pattern(r"(?:[^\n\\]++|\\[\s\S])*+")
_MAX_COMMAND_LENGTH: Final = 1_000
_NETRC: Final = lazy_pattern(
    r"(?:default|machine\s{1,40}+(?:localhost|[\w-]{1,63}+[.:][\w.:-]{1,192}+))\s{1,40}+"
    r"(?:(?:login|account)\s{1,40}+\S{1,256}+\s{1,40}+){1,2}password\s{1,40}+" + _GIVEN
)


def find_in_context(view: View) -> Iterator[Secret]:
    """Yield passwords in addresses, credentials in headers, AWS secret keys and literal values of assignments."""
    for at in places(view.plain, "://"):
        match = _URL_PASSWORD.match(view.plain, at)
        if match and not _TEMPLATE.fullmatch(match[1]):
            yield Secret("password in a url", match.start(1), match.end(1))
    yield from _headers(view)
    yield from _aws_secrets(view)
    yield from _commands(view)
    for anchor in (*_PASSWORDS, *_TOKENS):
        yield from _assigned(view, anchor)
    for at in places(view.lowered, "pin"):
        if match := _PIN.match(view.lowered, at):
            yield Secret("password", *match.span("given"))


def _commands(view: View) -> Iterator[Secret]:
    """Yield passwords that commands are given, and those of a `.netrc`."""
    given: list[tuple[re.Match[str], Callable[[str], bool]]] = []
    for name, flag, may_be_secret in _COMMANDS:
        done = 0
        for at in places(view.lowered, name):
            command = _COMMAND.match(view.lowered, at, at + _MAX_COMMAND_LENGTH) if at >= done else None
            if command:
                done = command.end()
                given.extend((match, may_be_secret) for match in flag.finditer(view.lowered, at, done))
    for anchor in ("machine", "default"):
        entries = (_NETRC.match(view.lowered, at) for at in places(view.lowered, anchor))
        given.extend((entry, is_given) for entry in entries if entry)
    for match, may_be in given:
        start, end = match.span("given")
        if may_be(view.plain[start:end]):
            yield Secret("password", start, end)


def _headers(view: View) -> Iterator[Secret]:
    done = 0
    for at in places(view.lowered, "authorization"):
        match = _HEADER.match(view.plain, at) if at >= done else None
        if not match:
            continue
        done = match.end()
        scheme, value = (match[1] or "").lower(), match[2]
        is_basic = scheme == "basic"
        start = value[:_JUDGED]
        if b":" in decoded(value) if is_basic else may_be_token(start) or (scheme and may_be_password(start)):
            yield Secret("authorization header", match.start(2), match.end(2))
    for at in places(view.lowered, "auth"):
        match = _ENCODED.match(view.plain, at)
        if match and b":" in decoded(match[1]):
            yield Secret("authorization header", match.start(1), match.end(1))
    for at in places(view.lowered, "bearer"):
        match = _BEARER.match(view.plain, at)
        if match and may_be_token(match[1]):
            yield Secret("authorization header", match.start(1), match.end(1))


def _aws_secrets(view: View) -> Iterator[Secret]:
    """Yield 40 characters of base64, soon after a key's id or a name such as AWS secret or SecretAccessKey."""
    named = sorted(
        at for word, pattern in _AWS_CONTEXT for at in places(view.lowered, word) if pattern.match(view.lowered, at)
    )
    done = 0
    for at in named:
        start, done = max(at, done), at + _AWS_REACH
        for match in _AWS_SECRET.finditer(view.plain, start, done):
            value = match[1]
            if value.lower() != value != value.upper() and is_disordered(value):
                yield Secret("aws secret key", match.start(1), match.end(1))


def _assigned(view: View, anchor: str) -> Iterator[Secret]:
    """Yield literal values behind a name. Many names may have one value, which is judged once."""
    is_password = anchor in _PASSWORDS
    kind, pattern, may_be_secret, shortest = (
        ("password", _PASSWORD, may_be_password, MIN_PASSWORD_LENGTH)
        if is_password
        else ("secret value", _TOKEN, may_be_token, MIN_TOKEN_LENGTH)
    )
    judged: dict[str, bool] = {}
    text = view.lowered
    for at in places(text, anchor):
        match = pattern.match(text, at)
        start, end = match.span("quoted" if match["quoted"] else "bare") if match else (0, 0)
        if not match or end - start < shortest:
            continue
        # Is the name that ends in the anchor that of a secret?
        first = max(0, at - _BEFORE)
        if match["space"] is not None and not _FLAG.search(text, first, at):
            continue
        if is_password:
            is_named = match["to"] is None or bool(_SETS.search(text, first, at))
        else:
            is_key = anchor != "key" or _KIND_OF_KEY.search(text, first, at)
            is_named = bool(is_key) and not _NO_SECRET.search(text, first, at + len("key"))
        if not is_named:
            continue
        value = view.plain[start:end] if match["quoted"] else view.plain[start:end].rstrip(_PUNCTUATION)
        key = value[:_JUDGED]
        if key not in judged:
            is_code = not match["quoted"] and _CODE.fullmatch(key)
            judged[key] = not is_code and may_be_secret(key)
        if judged[key]:
            yield Secret(kind, start, start + len(value))
