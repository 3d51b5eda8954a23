"""Detect secrets by form (API tokens, JSON Web Tokens, private keys, card numbers) and by context (URLs, headers,
commands, assignments), and rule out placeholders.

Secrets are rare, so a text without secrets must be cheap to check: in two copies of the text, long words and long
numbers are runs of one character, so that `find` locates candidates faster than a pattern.

Names, types, paths, templates (`${VAR}`, `<your password>`, `%s`) and stand-ins (`changeme`, `abcdef123456`, `****`)
are not secrets, and neither is a value with too little entropy.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of one kind; `start` and `end` are character offsets, end exclusive."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextView:
    """A text in ASCII, as it is and in lower case, and two outlines of it; all offsets are those of the original text.

    `words` has `w` for each letter, digit and `_.~-`; `digits` has `0` for each digit and `-` for each space and `-`;
    both have a space for every other character.
    """

    plain: str
    lowered: str
    words: bytes
    digits: bytes


_WORD_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "_.~-")
_WORDS: Final = bytes(ord("w" if chr(code) in _WORD_CHARACTERS else " ") for code in range(256))
_DIGITS: Final = bytes(
    ord("0" if chr(code) in string.digits else "-" if chr(code) in " -" else " ") for code in range(256)
)


def view_of(text: str) -> TextView:
    """Return the view of a text; non-ASCII characters become one `?` each: patterns stay cheap, offsets agree.

    An escaped line break or tab (`\n`, `\r`, `\t`) becomes a blank, so that its letter does not join the next word.
    """
    plain = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    if "\\" in plain:
        for written in (r"\n", r"\r", r"\t"):
            plain = plain.replace(written, "\\ ")
    raw = plain.encode("ascii")
    return TextView(plain, plain.lower(), raw.translate(_WORDS), raw.translate(_DIGITS))


def find_all(text: str, anchor: str) -> Iterator[int]:
    """Yield the offsets of an anchor's non-overlapping occurrences."""
    offset = text.find(anchor)
    while offset >= 0:
        yield offset
        offset = text.find(anchor, offset + len(anchor))


def runs(drawing: bytes, mark: bytes, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of every run of a mark with at least the length `shortest`."""
    needle = mark * shortest
    whole = re.compile(mark + b"++")
    offset = drawing.find(needle)
    while offset >= 0 and (run := whole.match(drawing, offset)):
        yield run.span()
        offset = drawing.find(needle, run.end())


PASSWORD_BITS: Final = 15.0
"""Minimum entropy of a password; seven characters, six of them distinct, have 18 bits."""
TOKEN_BITS: Final = 44.0
"""Minimum entropy of a token; sixteen hexadecimal digits have 48 bits on average, less for repetitions."""
MIN_PASSWORD_LENGTH, MIN_SHORT_TOKEN_LENGTH, MIN_TOKEN_LENGTH = 6, 8, 16

_TEMPLATE: Final = lazy_pattern(
    r"\$[{(]|^\$\w|\{\{|\{[\w.!: ]*\}|<[^<>]*>|%\(|%[a-z]\b|%\w+%|\*{3}|\.{3}|\?{3}|x{4}|\\[dswnrtbx]|\(\?|://|"
    r"change.?me|change.?it|your|example|sample|dummy|fake|mock|placeholder|redacted|replace|insert|todo|fixme|here$|"
    r"not.?set|\A(?:arn|data):|undefined|foobar",
    re.IGNORECASE,
)
_SEQUENCE: Final = lazy_pattern(r"0?12345678(?:90?)?|abcdef[g-z]*|ABCDEF[G-Z]*")
"""Sequences typed as a stand-in, if half of a value or more: a generated value may hold one by chance."""
_STAND_IN: Final = lazy_pattern(
    r"(?:my|the|new|old|db|some|super|top|test|root|admin|user|db|bad|wrong|good|no|this.?is.?a)?[_-]?"
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd|pw|secret|token|key|test|testing|admin|user|username|root|guest|"
    r"foo|bar|baz|abc|value|string|none|null|true|false|default|empty|letmein|qwerty|hello|demo)"
    r"[_-]?(?:key|token|secret|password)?[_-]?[0-9]{0,4}!?",
    re.IGNORECASE,
)
_TECHNICAL: Final = lazy_pattern(
    r"(?:u?int|float|str|bytes?|char|vec|sha|md|base|utf|iso|hmac|argon|oauth|pbkdf|scrypt|bcrypt|aes|rsa|ed|rs|hs|es|ps|http|"
    r"ipv|tls|ssl|x|v)[_-]?[0-9]{1,5}[a-z]{0,3}(?:[-_].*)?",
    re.IGNORECASE,
)
_DIGIT: Final = lazy_pattern("[0-9]")
_LETTER: Final = lazy_pattern("[A-Za-z]")
_MARK: Final = lazy_pattern(r"[!@#$%^&*?~]")
_PARTS: Final = lazy_pattern(r"[-_./:@,|+=&]+")
_WORDY_PART: Final = lazy_pattern(r"[A-Za-z]*(?:[0-9]{0,4}|0?12345678(?:90?)?)|[0-9]{1,4}[A-Za-z]{0,2}")
_SHORT_TOKEN: Final = lazy_pattern(
    r"(?:[A-Za-z]+[0-9]+){3}|(?:[0-9]+[A-Za-z]+){3}|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9]).*[!@#$%^&*?~]"
)
"""Alternating letters and digits, unlike `v1alpha1` and `secp256k1`; or both cases, a digit and a mark."""
_UNITS: Final = lazy_pattern(r"[0-9.]+[a-z]{1,3}", re.IGNORECASE)


def _is_stand_in(value: str) -> bool:
    """Return whether a value is a template or a placeholder for a secret."""
    is_sequence = len(value) >= 2 * len(_SEQUENCE.sub("", value))
    return bool(is_sequence or _TEMPLATE.search(value) or _STAND_IN.fullmatch(value) or len(set(value)) < 4)


def _entropy_bits(value: str) -> float:
    """Return the Shannon entropy of a value's characters times their number."""
    size = len(value)
    return -sum(count * math.log2(count / size) for count in Counter(value).values())


def may_be_password(value: str) -> bool:
    """Return whether a value mixes letters and digits, or both cases and marks, and is neither name nor placeholder."""
    if len(value) < MIN_PASSWORD_LENGTH:
        return False
    if _DIGIT.search(value):
        is_mixed = bool(_LETTER.search(value))
    else:
        is_mixed = value.lower() != value != value.upper() and bool(_MARK.search(value))
    return is_mixed and _entropy_bits(value) >= PASSWORD_BITS and not (_is_name(value) or _is_stand_in(value))


def is_plausible(value: str) -> bool:
    """Return whether a value given as a password is neither a name nor a placeholder."""
    return not (_is_name(value) or _is_stand_in(value))


def may_be_token(value: str) -> bool:
    """Return whether a value looks generated, by its disorder or, if short, by its form, and is no placeholder."""
    if MIN_SHORT_TOKEN_LENGTH <= len(value) < MIN_TOKEN_LENGTH:
        return may_be_password(value) and bool(_SHORT_TOKEN.search(value))
    return is_disordered(value) and not _is_stand_in(value)


def is_disordered(value: str) -> bool:
    """Return whether a value has letters and digits as disordered as a generated value."""
    if len(value) < MIN_TOKEN_LENGTH or not (_DIGIT.search(value) and _LETTER.search(value)):
        return False
    return _entropy_bits(value) >= TOKEN_BITS and not all(_WORDY_PART.fullmatch(part) for part in _PARTS.split(value))


def _is_name(value: str) -> bool:
    """Return whether a value is an identifier, path, address or quantity; `hunter2` alone is none of these."""
    if _TECHNICAL.fullmatch(value) or _UNITS.fullmatch(value) or value[0] in "/.-" or value[1:3] == ":\\":
        return True
    parts = _PARTS.split(value)
    if len({part.islower() for part in value.split("-") if _LETTER.search(part)}) > 1:
        return False  # no name mixes cases by part, as `gorilla-Tango-77` does
    return len(parts) > 1 and all(_WORDY_PART.fullmatch(part) for part in parts)


def decoded(part: str) -> bytes:
    """Return the decoded bytes of a base64 or base64url text, padded or not; b"" if it is neither."""
    plain = part.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


_WORD: Final = "[A-Za-z0-9_-]"
_ALNUM: Final = "[A-Za-z0-9]"
_HEX: Final = "[0-9a-f]"


def read_table(name: str) -> list[list[str]]:
    """Return the cells of a data file of this package, without its first line."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


VENDORS: Final = tuple((name, tuple(prefixes.split()), rest) for name, prefixes, rest in read_table("vendors.txt"))
"""Vendors whose keys have their own prefixes: name, prefixes, and a pattern of what follows."""

_FORMS: Final = (
    *((kind, first, prefix, rest) for kind, first, prefix, rest in read_table("forms.txt")),
    *(
        (f"{vendor.lower()} key", rf"{prefix[0]}(?<!{_WORD}.)", re.escape(prefix[1:]), f"(?:{rest})(?!{_WORD})")
        for vendor, prefixes, rest in VENDORS
        for prefix in prefixes
    ),
)
"""Kind; first character with its lookbehind; rest of the prefix; pattern of what follows.

The search compares one character, then the one before it, and only then the rest.
"""


_BEGINNINGS: Final[dict[str, list[str]]] = {}
for _, _first, _prefix, _ in _FORMS:
    _BEGINNINGS.setdefault(_first, []).append(_prefix)
_PREFIX: Final = lazy_pattern(
    "|".join(f"{first}(?:{'|'.join(dict.fromkeys(rest))})(?={_WORD}{{2}})" for first, rest in _BEGINNINGS.items())
)
_SAME_FIRST: Final = {
    letter: (lazy_pattern("|".join(f"({first}{prefix}{rest})" for _, first, prefix, rest in forms)), forms)
    for letter, forms in (
        (letter, [form for form in _FORMS if form[1][0] == letter]) for letter in {form[1][0] for form in _FORMS}
    )
}
"""By first letter, one pattern with a group for every form, and the forms."""
_MIN_LENGTH, _JUDGED = 20, 256

_AFTER: Final = tuple(
    (kind, anchor, lazy_pattern(pattern))
    for kind, anchor, pattern in (
        ("azure key", "AccountKey=", r"(?<=AccountKey=)[A-Za-z0-9+/]{40,}+={0,2}"),
        ("azure key", "SharedAccessKey=", r"(?<=SharedAccessKey=)[A-Za-z0-9+/]{40,}+={0,2}"),
        ("azure key", "sig=", r"(?<=[?&;]sig=)(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){40,}+={0,2}"),
        ("slack webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/_-]{20,}+"),
        ("slack webhook", "hooks.slack.com/workflows/", r"[A-Za-z0-9/_-]{20,}+"),
        ("discord token", "/api/webhooks/", rf"[0-9]{{17,20}}/{_WORD}{{60,}}+"),
    )
)
"""Kind, the anchor that precedes the secret, and its pattern."""

_INNER: Final = tuple(
    (kind, before, lazy_pattern(pattern))
    for kind, before, pattern in (
        (
            "azure key",
            4,
            r"Q~(?<![\w~.-][A-Za-z0-9_~.-]{3}[0-9]..)(?<=[A-Za-z0-9_~.-]{3}[0-9]..)[A-Za-z0-9_~.-]{31,34}+(?![\w~-])",
        ),
        ("mailchimp key", 32, rf"-us(?<![A-Za-z0-9]{_HEX}{{32}}...)(?<={_HEX}{{32}}...)[0-9]{{1,2}}(?!{_WORD})"),
        ("terraform key", 14, rf"\.atlasv1\.(?<={_ALNUM}{{14}}.{{9}}){_WORD}{{60,}}+"),
        ("fly key", 0, r"fm2_(?<![A-Za-z0-9]....)[A-Za-z0-9+/]{100,}+={0,2}"),
        ("stripe key", 0, r"whsec_(?<![A-Za-z0-9].{6})[A-Za-z0-9+/]{24,}+=*"),
    )
)
"""Kind, number of characters before the searched word, and pattern."""

_FILLING: Final = r"""(?:[ \t\r\n>|#*"'`,\\]|\\[rn])*+"""
_LINE: Final = lazy_pattern(
    _FILLING + r"(?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):[^\n\\]{0,200}|([A-Za-z0-9+/=]++))"
)
_PEM_BEGIN: Final = lazy_pattern(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = lazy_pattern(_FILLING + "-----END [A-Z0-9 ]{0,60}-----")
_KEY_LINE: Final = lazy_pattern(r"(?=.*[a-z][A-Z]|.*[0-9+/]).{8,}")
_MIN_LINE_LENGTH: Final = 16
"""Minimum length of a line in a block without an end; shorter lines count as text after it."""


def find_tokens(view: TextView) -> Iterator[Secret]:
    """Yield secrets recognised by their own form."""
    text = view.plain
    yield from _private_keys(text)
    for start, end in runs(view.words, b"w", _MIN_LENGTH):
        done = start
        for prefix in _PREFIX.finditer(text, start, end):
            at = prefix.start()
            pattern, forms = _SAME_FIRST[text[at]]
            match = pattern.match(text, at) if at >= done else None
            if not match:
                continue
            kind = forms[(match.lastindex or 1) - 1][0]
            is_web_token = kind == "json web token"
            is_real = _CHECKS.get(kind, _is_generated)(match[0] if is_web_token else match[0][:_JUDGED])
            if is_real:
                yield Secret(kind, at, match.end())
            if is_real or not is_web_token:
                done = match.end()
    for kind, before, pattern in _INNER:
        for inner in pattern.finditer(text):
            yield Secret(kind, inner.start() - before, inner.end())
    for kind, anchor, pattern in _AFTER:
        for at in find_all(text, anchor):
            if match := pattern.match(text, at + len(anchor)):
                yield Secret(kind, match.start(), match.end())


def _is_web_token(value: str) -> bool:
    """Return whether the first part is a JSON object with an algorithm."""
    try:
        header = json.loads(decoded(value.partition(".")[0]))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


def _is_mixed(value: str) -> bool:
    """Return whether a value may be a token, or mixes cases and has at least ten distinct characters."""
    return may_be_token(value) or (value.lower() != value != value.upper() and len(set(value)) > 9)


def _is_generated(value: str) -> bool:
    return bool(_DIGIT.search(value)) or _is_mixed(value)


_NO_WORD: Final = lazy_pattern("[B-DF-HJ-NP-TV-Z]{4}|[JQXZ]")
_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    **{f"{vendor.lower()} key": _is_mixed for vendor, *_ in VENDORS},
    # Without a digit it may be an upper-case word that begins like an id.
    "aws access key": lambda value: bool(_DIGIT.search(value) or value.startswith("AKIA") or _NO_WORD.search(value)),
    "openai key": may_be_token,
    "hugging face token": _is_mixed,
    "json web token": _is_web_token,
}


def _private_keys(text: str) -> Iterator[Secret]:
    """Yield key blocks with their marks; without an end mark, up to the last base64 line. A mark alone is no secret."""
    for offset in find_all(text, "-----BEGIN "):
        begin = _PEM_BEGIN.match(text, offset)
        if not begin:
            continue
        end = certain = begin.end()
        is_certain, holds_key = True, False
        while line := _LINE.match(text, end):
            end = line.end()
            is_certain = is_certain and (line[1] is None or len(line[1]) >= _MIN_LINE_LENGTH)
            if is_certain:
                certain = end
            holds_key = holds_key or bool(line[1] and _KEY_LINE.fullmatch(line[1]))
        close = _PEM_END.match(text, end)
        end = close.end() if close else certain
        if holds_key and end > begin.end():
            yield Secret("private key", offset, end)


_NUMBER: Final = lazy_pattern(
    r"[2-6](?<![A-Za-z0-9_./+-].)(?:"
    r"[0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|"
    r"[0-9]{3}([ -])[0-9]{6}\2[0-9]{4,5}|"
    r"[0-9]{12,18}"
    r")(?![A-Za-z0-9_*]|[./+-][0-9A-Za-z])"
)
_ISSUERS: Final = (
    (lazy_pattern("4"), (13, 16, 19)),  # Visa
    (lazy_pattern("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),  # Mastercard
    (lazy_pattern("3[47]"), (15,)),  # American Express
    (lazy_pattern("6011|64[4-9]|65"), (16, 19)),  # Discover
    (lazy_pattern("30[0-5]|36|38|39"), (14, 16)),  # Diners Club
    (lazy_pattern("352[89]|35[3-8]"), (16,)),  # JCB
    (lazy_pattern("62"), (16, 19)),  # UnionPay
    (lazy_pattern("5018|5020|5038|5893|6304|6759|676[1-3]"), (16,)),  # Maestro
)
_OTHER_NUMBER: Final = lazy_pattern(
    r"(?:\b(?:order|invoice|tracking|reference|ref|serial|imei|phone|isbn|ean|gtin|upc|ticket|request|account|case|"
    r"trace|build|version|timestamp|time|ts|seed|size|bytes|offset)|id|number of|#)[\"']?[ \t]{0,2}"
    r"(?:(?:number|no|nr|id)\.?)?[\"']?[ \t]{0,2}[:=#]{0,2}[ \t\"']{0,3}$|"
    r"\w\([ ]?$"
)
_CARD: Final = lazy_pattern(r"card|visa|credit|debit|pay|\b(?:pan|cc)\b")
_BEFORE: Final = lazy_pattern(r"[0-9][ -]$")
_AFTER_CARD: Final = lazy_pattern(r"[ -][0-9]{4}(?![0-9])|-[0-9]")
_GROUPED: Final = (b"0000-0000-0000-0000", b"0000-000000-0000")
_NEAR: Final = 40
_COMMON_LENGTHS: Final = (13, 19)
"""Lengths shared with millisecond times, article and 64-bit numbers: a word such as "card" must then be near."""


def find_cards(view: TextView) -> Iterator[Secret]:
    """Yield numbers of 13 to 19 digits, in one piece or in the groups printed on cards."""
    starts = [start for start, end in runs(view.digits, b"0", 13) if end - start <= 19]
    for drawing in _GROUPED:
        offset = view.digits.find(drawing)
        while offset >= 0:
            starts.append(offset)
            offset = view.digits.find(drawing, offset + 1)
    for first in starts:
        match = _NUMBER.match(view.plain, first)
        if not match or not _is_card(re.sub("[ -]", "", match[0])):
            continue
        start, end = match.span()
        if match[1] or match[2]:
            # A longer grouped number, such as an IBAN, continues on one side.
            before = view.plain[max(0, start - 2) : start]
            is_other = bool(_BEFORE.search(before) or _AFTER_CARD.match(view.plain, end))
        else:
            before = view.lowered[max(0, start - _NEAR) : start]
            is_common = end - start in _COMMON_LENGTHS and not _CARD.search(before)
            is_other = is_common or bool(_OTHER_NUMBER.search(before))
        if not is_other:
            yield Secret("payment card", start, end)


def _is_card(digits: str) -> bool:
    """Return whether digits have the prefix, length and check digit (ISO/IEC 7812-1) of a payment card."""
    if len(set(digits)) < 2 or not any(p.match(digits) and len(digits) in sizes for p, sizes in _ISSUERS):
        return False
    odd, even = sum(map(int, digits[-1::-2])), digits[-2::-2]
    if (sum(sum(divmod(2 * int(digit), 10)) for digit in even) + odd) % 10:
        return False
    # A trade item number (GTIN-13 or 14, ISBN) has its own check digit, which a card matches only by chance.
    return len(digits) >= 15 or (3 * sum(map(int, even)) + odd) % 10 != 0


_URL_PASSWORD: Final = lazy_pattern(
    r"://(?<=[A-Za-z0-9]://)[^\s/?#@:\"'`<>]{0,256}+:([^\s/@\"'`<>]{1,256}+)@[A-Za-z0-9_\[$({%]"
)
_URL_TEMPLATE: Final = lazy_pattern(r"[$%{<\[(].*|[A-Z_]{3,}|\*+|x{3,}|\.{3,}|.*[{}].*")

_QUOTE: Final = r"""\\{0,7}["'`]"""
"""A quotation mark, escaped or not, since strings may be nested."""
_HEADER: Final = lazy_pattern(
    rf"(?i:authorization)(?:{_QUOTE}|\]){{0,2}}[ \t]{{0,4}}[:=,][ \t]{{0,4}}(?:{_QUOTE})?"
    r"(?:(?i:(bearer|basic|token|apikey))[ \t]{1,4})?([A-Za-z0-9._~+/=:-]{6,}+)"
)
_BEARER: Final = lazy_pattern(r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=:-]{16,}+)")
_ENCODED: Final = lazy_pattern(rf"auth{_QUOTE}[ ]?:[ ]?{_QUOTE}([A-Za-z0-9+/]{{8,}}+={{0,2}}){_QUOTE}")
"""The base64 name and password of a registry in Docker's configuration."""

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
"""The separator between a name and its value; after `--password` and `ENV PASSWORD` a space is enough."""
_NAMES: Final = "(?:passwor[dt]|passwd|passphrase|pwd|secret|token|key)"
_VALUE: Final = (
    r"""(?:[rbu]{0,2}(?P<quote>\\{0,7}(?:"{1,3}|'{1,3}|`))(?P<quoted>[^\s"'`\\]{6,}+)(?P=quote)|"""
    rf"""(?P<bare>(?:[^\s"'`,;<>()\[\]{{}}&?kpst]++|&(?!\w{{1,30}}=)|(?!{_NAMES}[*_]{{0,2}}[:=])[kpst])++)"""
    r"""(?![(\[{]|'[a-z]|(?<=[=:])["'`]\w))"""
)
"""A value in quotes (escaped or doubled in a nested string), or bare, as where the quotes include the name.

Another name with a separator ends a bare value, so that no character is read for two names.
"""
_OF: Final = r"[ ](?:for|of|on|at|in|to)(?:[ ][\w'./@-]{1,30}+){1,6}?"
_SAID: Final = (
    rf"(?:{_OF}:|(?:{_OF})?(?:(?:[ ](?:is|was|has[ ]been|got))?[ ](?:changed|set|updated|reset|rotated)[ ]to|"
    r"(?:[ ](?:is|was)|['?]s)(?:[ ]now)?|(?P<to>[ ]to)))[ ]"
)
"""A separator in words: `the password for the guest network is now …`, `was changed to …`, `set the password to …`."""
_PASSWORD: Final = lazy_pattern(
    r"""(?:pass(?:wor[dt]|wd|phrase|(?<=[_"'`-]pass)|(?=:[ ]?["'`]))|pwd|(?<![a-z0-9])pw)(?![a-z0-9])"""
    rf"(?:{_SAID}|{_SEPARATOR}){_VALUE}"
)
_SETS: Final = lazy_pattern(r"\b(?:set|chang|updat|reset|rotat)[a-z]{0,3}[ ][\w' ]{0,30}\Z")
_PIN: Final = lazy_pattern(
    rf"(?<![\w-])pin(?: code(?= is [0-9]{{4}}(?![0-9])))?(?:{_SAID}|:[ ])(?P<given>[0-9]{{4}}|[0-9]{{6}})(?![\w-])"
)
"""A PIN; after `PIN code` only four digits count, since six may be an Indian postal code."""
_TOKEN: Final = lazy_pattern("(?:secret|token|key)(?![a-z0-9])" + _SEPARATOR + _VALUE)
_PASSWORDS, _TOKENS = ("pass", "pw"), ("secret", "token", "key")
"""Anchors: substrings of the names of passwords and of tokens."""
_KIND_OF_KEY: Final = lazy_pattern(
    r"(?:api|access|secret|private|account|storage|master|encryption|signing|auth)[ _-]?\Z"
)
_FLAG: Final = lazy_pattern(r"(?:--[\w-]{0,40}|\benv[ ]\w{0,40})\Z")
_PASSWD: Final = lazy_pattern(r"(?<![\w/.-])passwd[ ](?=\S{0,32}[a-z]\S{0,32}[0-9][a-z!#$%^&*])")
"""`passwd` before a value; the command of this name takes a user name such as `deploy2`."""
_NO_SECRET: Final = lazy_pattern(
    r"(?:next|starting|page|paging|pagination|continuation|forward|backward|output|cursor|lock|change|update|action|sync|"
    r"idempotency|client|request|identity|public[_-]?key)[_-]?(?:tok|key)\Z|::\w{0,40}\Z"
)
"""Contexts in which `token` or `key` names no secret: a page cursor, a lock, a type name."""
_NAME_LENGTH: Final = 48
_JUDGED_OF_VALUE: Final = 128
"""Number of leading characters of a value that decide whether it is a secret."""
_PUNCTUATION: Final = ".:*|\\"
_CODE: Final = lazy_pattern(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]\w+(?:Key|Token|Secret|Type)s?"
)
"""An unquoted attribute, or the name of a constant or type."""


_GIVEN: Final = r"""(?P<given>[^\s"'`\\]{4,256}+)"""
_COMMANDS: Final = tuple(
    (
        name,
        lazy_pattern(r"(?<=[\s\"'`])" + flag.replace("<quote>", _QUOTE).replace("<given>", _GIVEN)),
        is_plausible if judge == "given" else may_be_password,
    )
    for name, judge, flag in read_table("commands.txt")
)
"""Command, pattern of its password flag, and the test of the value."""
_COMMAND: Final = lazy_pattern(r"(?:[^\n\\]++|\\[\s\S])*+")
_MAX_COMMAND_LENGTH: Final = 1_000
_NETRC: Final = lazy_pattern(
    r"(?:default|machine\s{1,40}+(?:localhost|[\w-]{1,63}+[.:][\w.:-]{1,192}+))\s{1,40}+"
    r"(?:(?:login|account)\s{1,40}+\S{1,256}+\s{1,40}+){1,2}password\s{1,40}+" + _GIVEN
)


def find_in_context(view: TextView) -> Iterator[Secret]:
    """Yield passwords in addresses, credentials in headers, AWS secret keys and literal values of assignments."""
    for offset in find_all(view.plain, "://"):
        match = _URL_PASSWORD.match(view.plain, offset)
        if match and not _URL_TEMPLATE.fullmatch(match[1]):
            yield Secret("password in a url", match.start(1), match.end(1))
    yield from _headers(view)
    yield from _aws_secrets(view)
    yield from _commands(view)
    for anchor in (*_PASSWORDS, *_TOKENS):
        yield from _assigned(view, anchor)
    for offset in find_all(view.lowered, "pin"):
        if match := _PIN.match(view.lowered, offset):
            yield Secret("password", *match.span("given"))


def _commands(view: TextView) -> Iterator[Secret]:
    """Yield passwords in the flags of commands, and those of a `.netrc`."""
    candidates: list[tuple[re.Match[str], Callable[[str], bool]]] = []
    for name, flag, may_be_secret in _COMMANDS:
        done = 0
        for at in find_all(view.lowered, name):
            command = _COMMAND.match(view.lowered, at, at + _MAX_COMMAND_LENGTH) if at >= done else None
            if command:
                done = command.end()
                candidates.extend((match, may_be_secret) for match in flag.finditer(view.lowered, at, done))
    for anchor in ("machine", "default"):
        entries = (_NETRC.match(view.lowered, at) for at in find_all(view.lowered, anchor))
        candidates.extend((entry, is_plausible) for entry in entries if entry)
    for match, may_be in candidates:
        start, end = match.span("given")
        if may_be(view.plain[start:end]):
            yield Secret("password", start, end)


def _headers(view: TextView) -> Iterator[Secret]:
    header_end = 0
    for offset in find_all(view.lowered, "authorization"):
        match = _HEADER.match(view.plain, offset) if offset >= header_end else None
        if not match:
            continue
        header_end = match.end()
        scheme, value = (match[1] or "").lower(), match[2]
        is_basic = scheme == "basic"
        start = value[:_JUDGED_OF_VALUE]
        if b":" in decoded(value) if is_basic else may_be_token(start) or (scheme and may_be_password(start)):
            yield Secret("authorization header", match.start(2), match.end(2))
    for offset in find_all(view.lowered, "auth"):
        match = _ENCODED.match(view.plain, offset)
        if match and b":" in decoded(match[1]):
            yield Secret("authorization header", match.start(1), match.end(1))
    for offset in find_all(view.lowered, "bearer"):
        match = _BEARER.match(view.plain, offset)
        if match and may_be_token(match[1]):
            yield Secret("authorization header", match.start(1), match.end(1))


def _aws_secrets(view: TextView) -> Iterator[Secret]:
    """Yield 40 characters of base64 soon after a key's id or a name such as AWS secret or SecretAccessKey."""
    named = sorted(
        at for word, pattern in _AWS_CONTEXT for at in find_all(view.lowered, word) if pattern.match(view.lowered, at)
    )
    reach_end = 0
    for at in named:
        start, reach_end = max(at, reach_end), at + _AWS_REACH
        for match in _AWS_SECRET.finditer(view.plain, start, reach_end):
            value = match[1]
            if value.lower() != value != value.upper() and is_disordered(value):
                yield Secret("aws secret key", match.start(1), match.end(1))


def _assigned(view: TextView, anchor: str) -> Iterator[Secret]:
    """Yield literal values after a name; a value after several names is judged once."""
    is_password = anchor in _PASSWORDS
    kind, pattern, may_be_secret, shortest = (
        ("password", _PASSWORD, may_be_password, MIN_PASSWORD_LENGTH)
        if is_password
        else ("secret value", _TOKEN, may_be_token, MIN_SHORT_TOKEN_LENGTH)
    )
    judged: dict[str, bool] = {}
    text = view.lowered
    for offset in find_all(text, anchor):
        match = pattern.match(text, offset)
        start, end = match.span("quoted" if match["quoted"] else "bare") if match else (0, 0)
        if not match or end - start < shortest:
            continue
        # Does the name that ends in the anchor name a secret?
        first = max(0, offset - _NAME_LENGTH)
        if match["space"] is not None and not (_FLAG.search(text, first, offset) or _PASSWD.match(text, offset)):
            continue
        if is_password:
            is_named = match["to"] is None or bool(_SETS.search(text, first, offset))
        else:
            is_key = anchor != "key" or _KIND_OF_KEY.search(text, first, offset)
            is_named = bool(is_key) and not _NO_SECRET.search(text, first, offset + len("key"))
        if not is_named:
            continue
        value = view.plain[start:end] if match["quoted"] else view.plain[start:end].rstrip(_PUNCTUATION)
        key = value[:_JUDGED_OF_VALUE]
        if key not in judged:
            is_code = not match["quoted"] and _CODE.fullmatch(key)
            judged[key] = not is_code and may_be_secret(key)
        if judged[key]:
            yield Secret(kind, start, start + len(value))
