"""Secrets that only their surroundings tell: addresses, headers, assignments. It knows no vendor but AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.redaction.values import decoded, is_disordered, may_be_password, may_be_token
from commonplace.redaction.view import Secret, View, places

_URL_PASSWORD: Final = re.compile(
    r"://(?<=[A-Za-z0-9]://)[^\s/?#@:\"'`<>]{0,256}:([^\s/@\"'`<>]{1,256})@[A-Za-z0-9_\[$({%]"
)
_TEMPLATE: Final = re.compile(r"[$%{<\[(].*|[A-Z_]{3,}|\*+|x{3,}|\.{3,}|.*[{}].*")

_HEADER: Final = re.compile(
    r"""(?i:authorization)(?:\\{0,7}["'`\]]){0,2}[ \t]{0,4}[:=,][ \t]{0,4}(?:\\{0,7}["'`])?"""
    r"""(?i:(bearer|basic|token|apikey))[ \t]{1,4}"""
    r"([A-Za-z0-9._~+/=:-]{6,}+)"
)
_BEARER: Final = re.compile(r"""(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=:-]{16,}+)""")

_AWS_CONTEXT: Final = tuple(
    (anchor, re.compile(pattern))
    for anchor, pattern in (
        ("aws", r"aws[\w .:'\"-]{0,24}(?:secret|cred|access.?key)"),
        ("akia", "akia[a-z0-9]{16}"),
        ("asia", "asia[a-z0-9]{16}"),
        ("secretaccesskey", ""),
        ("secret_access_key", ""),
    )
)
_AWS_SECRET: Final = re.compile(r"""[\s"'`=:>,]([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=_-])""")
_AWS_REACH: Final = 160

_SEPARATOR: Final = (
    r"""[*_]{0,2}(?:\\{0,7}["'`\]]){0,2}[*_]{0,2}[ \t]{0,8}"""  # what closes the name
    r"(?::[ ]?[A-Za-z]{1,12}(?:[ ]?\|[ ]?None)?[ ]{0,2}(?==))?"  # the type in `password: str = "…"`
    r"(?:=>|:=|={1,3}|:|(?<=[ ])is:?(?=[ ]))[*]{0,2}[ \t]{0,8}"
)
_BARE: Final = r"""(?:[^\s"'`,;<>()\[\]{}&?\\]|&(?!\w{1,30}=)|\\(?![nrt"'`\\]))"""
"""A character of a value without quotes; a line break written as `\\n` ends it, as a real one does."""
_VALUE: Final = (
    r"""(?:[rbuRBU]{0,2}(?P<quote>\\{0,7}(?:"{1,3}|'{1,3}|`))(?P<quoted>[^\s"'`\\]{6,}+)(?P=quote)|"""
    rf"""(?P<bare>{_BARE}{{6,128}}+)(?![(\[{{]|'[a-z]|(?<=[=:])["'`]\w))"""
)
"""In quotes, escaped or doubled where a string is in a string; or bare, as where the name is in the quotes too."""
_PUNCTUATION: Final = ".:*|\\"
_REST: Final = re.compile(f"{_BARE}*+")
_KINDS_OF_KEY: Final = (
    "api", "access", "secret", "private", "account", "storage", "master", "encryption", "signing", "auth"
)  # fmt: skip
_PASSWORD: Final = re.compile(r"(?i:passwor[dt]|passwd|passphrase|pwd)(?![A-Za-z0-9])" + _SEPARATOR + _VALUE)
_TOKEN: Final = re.compile(
    f"(?i:secret|token|(?:{'|'.join(f'(?<={kind})|(?<={kind}[ _-])' for kind in _KINDS_OF_KEY)})key)(?![A-Za-z0-9])"
    + _SEPARATOR
    + _VALUE
)
_ASSIGNMENTS: Final = (
    ("passw", _PASSWORD, "password"),
    ("passphrase", _PASSWORD, "password"),
    ("pwd", _PASSWORD, "password"),
    ("secret", _TOKEN, "secret value"),
    ("token", _TOKEN, "secret value"),
    ("key", _TOKEN, "secret value"),
)
_NO_SECRET: Final = re.compile(
    r"(?:next|page|paging|pagination|continuation|forward|backward|output|cursor|lock|change|update|action|sync|"
    r"idempotency|client|request|identity|public[_-]?key)[_-]?(?:tok|key)\Z|::\w{0,40}\Z"
)
"""What makes another thing of the `token` or `key` that follows: a page's mark, a lock, the name of a type."""
_BEFORE: Final = 48
_JUDGED: Final = 128
"""By so many characters of a value it is told whether it is a secret; all of it is then one."""
_CODE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""What stands unquoted and is an attribute or the name of a constant."""


def find_in_context(view: View) -> Iterator[Secret]:
    """Yield passwords in addresses, credentials in headers, AWS secret keys and literal values of assignments."""
    for at in places(view.plain, "://"):
        match = _URL_PASSWORD.match(view.plain, at)
        if match and not _TEMPLATE.fullmatch(match[1]):
            yield Secret("password in a url", match.start(1), match.end(1))
    yield from _headers(view)
    yield from _aws_secrets(view)
    for anchor, pattern, kind in _ASSIGNMENTS:
        done = 0
        for at in places(view.lowered, anchor):
            secret = _assigned(view, at, pattern, kind) if at >= done else None
            if secret:
                yield secret
                done = secret.end


def _headers(view: View) -> Iterator[Secret]:
    for at in places(view.lowered, "authorization"):
        match = _HEADER.match(view.plain, at)
        if not match:
            continue
        is_basic = match[1].lower() == "basic"
        if b":" in decoded(match[2]) if is_basic else may_be_password(match[2]) or may_be_token(match[2]):
            yield Secret("authorization header", match.start(2), match.end(2))
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


def _assigned(view: View, at: int, pattern: re.Pattern[str], kind: str) -> Secret | None:
    match = pattern.match(view.plain, at)
    if not match:
        return None
    if kind == "password":
        may_be_secret = may_be_password
    elif _NO_SECRET.search(view.lowered, max(0, at - _BEFORE), at + len("key")):
        return None
    else:
        may_be_secret = may_be_token
    group = "quoted" if match["quoted"] else "bare"
    value = match[group][:_JUDGED]
    if group == "bare":
        value = value.rstrip(_PUNCTUATION)
        if _CODE.fullmatch(value):
            return None
    if not may_be_secret(value):
        return None
    start, end = match.span(group)
    if group == "bare":
        if end - start == _JUDGED and (rest := _REST.match(view.plain, end)):
            end = rest.end()
        end = start + len(view.plain[start:end].rstrip(_PUNCTUATION))
    return Secret(kind, start, end)
