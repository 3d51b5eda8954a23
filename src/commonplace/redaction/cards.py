"""Numbers of payment cards among all other numbers: issuer, length, grouping and check digit must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.redaction.view import Secret, View, runs

_NUMBER: Final = re.compile(
    r"[2-6](?<![A-Za-z0-9_./+-].)(?:"
    r"[0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|"
    r"[0-9]{3}([ -])[0-9]{6}\2[0-9]{4,5}|"
    r"[0-9]{12,18}"
    r")(?![A-Za-z0-9_*]|[./+-][0-9A-Za-z])"
)
_ISSUERS: Final = (
    (re.compile("4"), (13, 16, 19)),  # Visa
    (re.compile("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),  # Mastercard
    (re.compile("3[47]"), (15,)),  # American Express
    (re.compile("6011|64[4-9]|65"), (16, 19)),  # Discover
    (re.compile("30[0-5]|36|38|39"), (14, 16)),  # Diners Club
    (re.compile("352[89]|35[3-8]"), (16,)),  # JCB
    (re.compile("62"), (16, 19)),  # UnionPay
    (re.compile("5018|5020|5038|5893|6304|6759|676[1-3]"), (16,)),  # Maestro
)
_OTHER_NUMBER: Final = re.compile(
    r"(?:\b(?:order|invoice|tracking|reference|ref|serial|imei|phone|isbn|ean|gtin|upc|ticket|request|account|case|"
    r"trace|build|version|timestamp|time|ts|seed|size|bytes|offset)|id|number of|#)[\"']?[ \t]{0,2}"
    r"(?:(?:number|no|nr|id)\.?)?[\"']?[ \t]{0,2}[:=#]{0,2}[ \t\"']{0,3}$|"
    r"\w\([ ]?$"
)
_CARD: Final = re.compile(r"card|visa|credit|debit|pay|\b(?:pan|cc)\b")
_BEFORE: Final = re.compile(r"[0-9][ -]$")
_AFTER: Final = re.compile(r"[ -][0-9]{4}(?![0-9])|-[0-9]")
_GROUPED: Final = (b"0000-0000-0000-0000", b"0000-000000-0000")
_NEAR: Final = 40
_COMMON_LENGTHS: Final = (13, 19)
"""Times in milliseconds, article numbers and 64-bit numbers are as long: then a word such as card must be near."""


def find_cards(view: View) -> Iterator[Secret]:
    """Yield numbers of 13 to 19 digits, in one piece or in the groups printed on cards."""
    starts = [start for start, end in runs(view.digits, b"0", 13) if end - start <= 19]
    for drawing in _GROUPED:
        starts.extend(_each(view.digits, drawing))
    for start in starts:
        match = _NUMBER.match(view.plain, start)
        if not match or _is_piece(view, match):
            continue
        if _is_card(re.sub("[ -]", "", match[0])) and not _is_other(view, match):
            yield Secret("payment card", match.start(), match.end())


def _each(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_card(digits: str) -> bool:
    if len(set(digits)) < 2 or not any(p.match(digits) and len(digits) in sizes for p, sizes in _ISSUERS):
        return False
    return _luhn(digits) and not (len(digits) < 15 and _is_article(digits))


def _luhn(digits: str) -> bool:
    """Check the last digit as ISO/IEC 7812-1 does."""
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0


def _is_article(digits: str) -> bool:
    """Tell a trade item number (GTIN-13 or 14, ISBN) by its check digit, which a card has by chance only."""
    return (3 * sum(map(int, digits[-2::-2])) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _is_piece(view: View, match: re.Match[str]) -> bool:
    """Tell a piece of a longer grouped number, such as an IBAN."""
    if not (match[1] or match[2]):
        return False
    start, end = match.span()
    return bool(_BEFORE.search(view.plain[max(0, start - 2) : start]) or _AFTER.match(view.plain, end))


def _is_other(view: View, match: re.Match[str]) -> bool:
    """Tell an ungrouped number that the words before it call something else."""
    if match[1] or match[2]:
        return False
    start, end = match.span()
    before = view.lowered[max(0, start - _NEAR) : start]
    if end - start in _COMMON_LENGTHS and not _CARD.search(before):
        return True
    return bool(_OTHER_NUMBER.search(before))
