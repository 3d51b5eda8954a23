"""Whether a literal value can be a secret. It knows the value alone, not where it was found.

Names, types, paths, templates (`${VAR}`, `<your password>`, `%s`) and stand-ins (`changeme`, `password123`, `****`)
are no secrets, and neither is what has too little entropy to be one.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from typing import Final

PASSWORD_BITS: Final = 15.0
"""The least entropy of a password: seven characters, of which six differ, have 18."""
TOKEN_BITS: Final = 44.0
"""The least entropy of a token: sixteen hexadecimal digits have 48 on average, less what repeats."""
SHORTEST_PASSWORD, SHORTEST_TOKEN = 6, 16

_TEMPLATE: Final = re.compile(
    r"\$[{(]|^\$\w|\{\{|\{[\w.!: ]*\}|<[^<>]*>|%\(|%[a-z]\b|%\w+%|\*{3}|\.{3}|\?{3}|x{4}|\\[dswnrtbx]|\(\?|://|"
    r"change.?me|change.?it|your|example|sample|dummy|fake|mock|placeholder|redacted|replace|insert|todo|fixme|here$|"
    r"not.?set|\A(?:arn|data):|undefined|foobar|abcdef|12345678",
    re.IGNORECASE,
)
_STAND_IN: Final = re.compile(
    r"(?:my|the|new|old|db|some|super|top|test|root|admin|user|db|bad|wrong|good|no|this.?is.?a)?[_-]?"
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd|pw|secret|token|key|test|testing|admin|user|username|root|guest|"
    r"foo|bar|baz|abc|value|string|none|null|true|false|default|empty|letmein|qwerty|hello|demo)"
    r"[_-]?(?:key|token|secret|password)?[_-]?[0-9]{0,4}!?",
    re.IGNORECASE,
)
_TECHNICAL: Final = re.compile(
    r"(?:u?int|float|str|bytes?|char|vec|sha|md|base|utf|iso|hmac|argon|oauth|pbkdf|scrypt|bcrypt|aes|rsa|ed|rs|hs|es|ps|http|"
    r"ipv|tls|ssl|x|v)[_-]?[0-9]{1,5}[a-z]{0,2}(?:[-_].*)?",
    re.IGNORECASE,
)
_DIGIT: Final = re.compile("[0-9]")
_LETTER: Final = re.compile("[A-Za-z]")
_MARK: Final = re.compile(r"[!@#$%^&*?~]")
_PARTS: Final = re.compile(r"[-_./:@,|+=&]+")
_WORDY_PART: Final = re.compile(r"[A-Za-z]*[0-9]{0,4}|[0-9]{1,4}[A-Za-z]{0,2}")
_UNITS: Final = re.compile(r"[0-9.]+[a-z]{1,3}", re.IGNORECASE)


def is_stand_in(value: str) -> bool:
    """Tell whether a value is a template, or a word that stands where a secret would."""
    return bool(_TEMPLATE.search(value) or _STAND_IN.fullmatch(value) or len(set(value)) < 4)


def entropy_bits(value: str) -> float:
    """Return the Shannon entropy of a value's characters times their number."""
    size = len(value)
    return -sum(count * math.log2(count / size) for count in Counter(value).values())


def may_be_password(value: str) -> bool:
    """Tell whether a value has letters with digits, or small and capital letters with marks, and is no name."""
    if len(value) < SHORTEST_PASSWORD:
        return False
    if _DIGIT.search(value):
        is_mixed = bool(_LETTER.search(value))
    else:
        is_mixed = value.lower() != value != value.upper() and bool(_MARK.search(value))
    return is_mixed and entropy_bits(value) >= PASSWORD_BITS and not (_is_name(value) or is_stand_in(value))


def is_given(value: str) -> bool:
    """Tell whether a value that certainly stands where a password does is one, and no name or stand-in."""
    return not (_is_name(value) or is_stand_in(value))


def may_be_token(value: str) -> bool:
    """Tell whether a value is disordered and no stand-in."""
    return is_disordered(value) and not is_stand_in(value)


def is_disordered(value: str) -> bool:
    """Tell whether a value has letters and digits in the disorder of a generated one."""
    if len(value) < SHORTEST_TOKEN or not (_DIGIT.search(value) and _LETTER.search(value)):
        return False
    return entropy_bits(value) >= TOKEN_BITS and not all(_WORDY_PART.fullmatch(part) for part in _PARTS.split(value))


def _is_name(value: str) -> bool:
    """Tell an identifier, path, address or quantity from a password; `hunter2` alone is none of them."""
    if _TECHNICAL.fullmatch(value) or _UNITS.fullmatch(value) or value[0] in "/.-" or value[1:3] == ":\\":
        return True
    parts = _PARTS.split(value)
    return len(parts) > 1 and all(_WORDY_PART.fullmatch(part) for part in parts)


def decoded(part: str) -> bytes:
    """Return what a base64 or base64url text holds, padded or not; nothing where it is neither."""
    plain = part.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
