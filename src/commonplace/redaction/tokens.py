"""Secrets that show by their own form: vendors' keys and tokens, web tokens, private keys. It knows no context."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from commonplace.redaction.values import decoded, may_be_token
from commonplace.redaction.view import Secret, View, places, runs

_WORD: Final = "[A-Za-z0-9_-]"
_SNOWFLAKE: Final = "[MNO][DTjz][AEIMQUYcgk][w-z0-5]"
"""Three digits in base64, as which a Discord bot's token begins with its number."""
_DISCORD: Final = (
    rf"[MNO](?<![A-Za-z0-9_.-].)[DTjz][AEIMQUYcgk][w-z0-5](?:{_SNOWFLAKE}){{4,5}}[A-Za-z0-9]{{0,4}}"
    rf"\.{_WORD}{{6,7}}\.{_WORD}{{27,40}}+"
)

_FORMS: Final = (
    ("aws access key", r"A(?<![A-Za-z0-9_/+-]A)[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9_/+-])"),
    ("gcp key", rf"A(?<!{_WORD}A)Iza{_WORD}{{35}}(?!{_WORD})"),
    ("gcp key", rf"G(?<!{_WORD}G)OCSPX-{_WORD}{{24,}}+"),
    ("azure key", r"[A-Za-z0-9_~.-](?<![\w~.-].)[A-Za-z0-9_~.-]{2}[0-9]Q~[A-Za-z0-9_~.-]{31,34}+(?![\w~-])"),
    ("github token", r"g(?<![A-Za-z0-9]g)h[pousr]_[A-Za-z0-9]{36,}+(?!_)"),
    ("github token", r"g(?<![A-Za-z0-9]g)ithub_pat_[A-Za-z0-9_]{36,}+"),
    ("gitlab token", rf"g(?<![A-Za-z0-9]g)l(?:pat|dt|rt|ptt|ft|agent|soat|cbt)-{_WORD}{{20,}}+"),
    ("slack token", rf"x(?<!{_WORD}x)ox[abeoprs]-(?=[A-Za-z-]{{0,20}}[0-9])[A-Za-z0-9-]{{16,}}+"),
    ("slack token", rf"x(?<!{_WORD}x)app-[0-9]-[A-Za-z0-9-]{{30,}}+"),
    ("stripe key", r"[sr](?<![A-Za-z0-9].)k_(?:live|test)_[A-Za-z0-9]{16,}+"),
    ("stripe key", r"w(?<![A-Za-z0-9]w)hsec_[A-Za-z0-9+/]{24,}+=*"),
    ("anthropic key", rf"s(?<!{_WORD}s)k-ant-[a-z0-9]{{3,12}}-{_WORD}{{20,}}+"),
    ("openai key", rf"s(?<!{_WORD}s)k-{_WORD}{{20,}}+"),
    ("hugging face token", r"h(?<![A-Za-z0-9]h)f_[A-Za-z0-9]{30,}+(?!_)"),
    ("npm token", r"n(?<![A-Za-z0-9]n)pm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    ("pypi token", rf"p(?<!{_WORD}p)ypi-AgE{_WORD}{{50,}}+"),
    ("sendgrid key", rf"S(?<!{_WORD}S)G\.{_WORD}{{16,32}}+\.{_WORD}{{30,}}+"),
    ("twilio key", r"S(?<![A-Za-z0-9_]S)K[0-9a-f]{32}(?![A-Za-z0-9_])"),
    ("telegram token", rf"A(?<=[0-9]{{8}}:A)A{_WORD}{{33}}(?!{_WORD})"),
    ("discord token", _DISCORD),
    ("private key", r"A(?<![A-Za-z0-9_-]A)GE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("json web token", rf"e(?<!{_WORD}e)yJ{_WORD}{{12,}}+\.{_WORD}++\.{_WORD}*+(?:\.{_WORD}++){{0,2}}"),
)
"""Each begins with one character, which the search compares first, and only then looks at what stands before it."""

_TOKEN: Final = re.compile("|".join(f"({pattern})" for _, pattern in _FORMS))
_SHORTEST: Final = 20
_DIGIT: Final = re.compile("[0-9]")

_PATHS: Final = (
    ("azure key", "AccountKey=", r"(?<=AccountKey=)[A-Za-z0-9+/]{40,}+={0,2}"),
    ("azure key", "SharedAccessKey=", r"(?<=SharedAccessKey=)[A-Za-z0-9+/]{40,}+={0,2}"),
    ("azure key", "sig=", r"(?<=[?&;]sig=)(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){40,}+={0,2}"),
    ("slack webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/_-]{20,}+"),
    ("slack webhook", "hooks.slack.com/workflows/", r"[A-Za-z0-9/_-]{20,}+"),
    ("discord token", "/api/webhooks/", rf"[0-9]{{17,20}}/{_WORD}{{60,}}+"),
)
_AFTER: Final = tuple((kind, anchor, re.compile(pattern)) for kind, anchor, pattern in _PATHS)
"""A kind, what it stands behind, and its pattern."""

_FILLING: Final = r"""(?:[ \t\r\n>|#*"'`,\\]|\\[rn])*+"""
_LINE: Final = re.compile(
    _FILLING + r"(?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):[^\n\\]{0,200}|([A-Za-z0-9+/=]++))"
)
_PEM_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(_FILLING + "-----END [A-Z0-9 ]{0,60}-----")
_KEY_LINE: Final = re.compile(r"(?=.*[a-z][A-Z]|.*[0-9+/]).{8,}")
_SHORTEST_LINE: Final = 16
"""Shorter lines of a block without an end are taken for text that follows it."""


def find_tokens(view: View) -> Iterator[Secret]:
    """Yield what shows by its own form."""
    yield from _private_keys(view.plain)
    for start, end in runs(view.words, b"w", _SHORTEST):
        if _DIGIT.search(view.plain, start, end) or view.plain.find("hf_", start, end) >= 0:
            yield from _tokens(view.plain, start, end)
    for kind, anchor, pattern in _AFTER:
        for at in places(view.plain, anchor):
            match = pattern.match(view.plain, at + len(anchor))
            if match:
                yield Secret(kind, match.start(), match.end())


def _tokens(text: str, start: int, end: int) -> Iterator[Secret]:
    """Yield the tokens that begin in a long word."""
    while match := _TOKEN.search(text, start, end):
        kind = _FORMS[(match.lastindex or 1) - 1][0]
        is_real = _CHECKS.get(kind, bool)(match[0])
        if is_real:
            yield Secret(kind, match.start(), match.end())
        start = match.end() if is_real or kind != "json web token" else text.index(".", match.start())


def _is_web_token(value: str) -> bool:
    """Tell whether the first part is JSON that names an algorithm."""
    try:
        header = json.loads(decoded(value.partition(".")[0]))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


def _is_mixed(value: str) -> bool:
    """Tell disordered letters, in which small and capital ones come together, from a name."""
    return may_be_token(value) or (value.lower() != value != value.upper() and len(set(value)) > 9)


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "openai key": may_be_token,
    "hugging face token": _is_mixed,
    "json web token": _is_web_token,
}


def _private_keys(text: str) -> Iterator[Secret]:
    """Yield blocks with their marks; of one without an end the lines of base64. A mark alone is no secret."""
    for at in places(text, "-----BEGIN "):
        begin = _PEM_BEGIN.match(text, at)
        if begin:
            end = _end_of_key(text, begin.end())
            if end > begin.end():
                yield Secret("private key", at, end)


def _end_of_key(text: str, begin: int) -> int:
    """Return where a block ends that has something of a key in it; else `begin`."""
    end = certain = begin
    is_certain, holds_key = True, False
    while line := _LINE.match(text, end):
        end = line.end()
        is_certain = is_certain and (line[1] is None or len(line[1]) >= _SHORTEST_LINE)
        if is_certain:
            certain = end
        holds_key = holds_key or bool(line[1] and _KEY_LINE.fullmatch(line[1]))
    close = _PEM_END.match(text, end)
    if not holds_key:
        return begin
    return close.end() if close else certain
