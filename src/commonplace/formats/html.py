"""Render self-contained HTML pages, and the health report as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

HEADINGS: Final = {
    "duplicate": "Said more than once",
    "contradiction": "Cannot all be true",
    "stale": "Of files that have changed",
    "orphan": "Left alone",
    "junk": "Perhaps worth nothing",
}
"""What a kind of finding is called, for people, in the order in which they are told."""
_MAX_LENGTH: Final = 300
_MAX_LISTED: Final = 500


def page(title: str, body: str) -> str:
    """Return a page that loads nothing and runs no script, whatever is in it; both texts are HTML already."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def health_page(health: Mapping[str, Any], texts: Mapping[str, str], at: str) -> str:
    """Return the health report as a page.

    Args:
        health: what `Health.to_dict` returns.
        texts: what memories say, by id, as far as it is known.
        at: when they were examined, for people.
    """
    title = f"Memories of {_text(health['namespace'])}"
    count, archived = health["memories"], health["statuses"].get("archived", 0)
    apart = f", and {archived:,} archived (not counted)" if archived else ""
    parts = [
        f"<h1>{title}</h1>\n<p>{count:,} {'memory' if count == 1 else 'memories'}{apart}, examined {_text(at)}</p>\n",
        _bars("Tiers", health["tiers"]),
        _bars("Status", health["statuses"]),
        _bars("Retention, up to", health["retention"]),
        _bars("Issues that wait", health["pending"]) if health["pending"] else "",
        _golden(health["golden"]),
        *(_findings(heading, health["findings"], kind, texts) for kind, heading in HEADINGS.items()),
    ]
    return page(title, "".join(parts))


def _bars(heading: str, counts: Mapping[str, int]) -> str:
    most = max([*counts.values(), 1])
    rows = "".join(
        f'<tr><td>{_text(name)}</td><td class="count">{count:,}</td>'
        f'<td><span class="bar" style="width:{100 * count / most:.1f}%"></span></td></tr>\n'
        for name, count in counts.items()
    )
    return f"<h2>{_text(heading)}</h2>\n<table>\n{rows}</table>\n"


def _golden(answers: Iterable[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{_text(each['query'])}</td>"
        f'<td class="count{" bad" if len(each["found"]) < len(each["relevant"]) else ""}">'
        f"{len(each['found'])} of {len(each['relevant'])}</td></tr>\n"
        for each in answers
    )
    return f"<h2>Golden queries</h2>\n<table>\n{rows}</table>\n" if rows else ""


def _findings(heading: str, findings: Iterable[Mapping[str, Any]], kind: str, texts: Mapping[str, str]) -> str:
    found = [each for each in findings if each["kind"] == kind]
    if not found:
        return ""
    rows = "".join(_finding(each, texts) for each in found[:_MAX_LISTED])
    more = f"<p>… {len(found) - _MAX_LISTED:,} more</p>\n" if len(found) > _MAX_LISTED else ""
    return f"<h2>{_text(heading)} ({len(found):,})</h2>\n<table>\n{rows}</table>\n{more}"


def _finding(finding: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    said = "".join(
        f'<blockquote dir="auto">{_text(_short(texts[id_]))}</blockquote>' for id_ in finding["ids"] if id_ in texts
    )
    names = ", ".join(_text(id_) for id_ in finding["ids"])
    return f"<tr><td>{names}</td><td>{_text(finding['why'])}{said}</td></tr>\n"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def _text(words: str) -> str:
    return escape(words.encode("utf-8", "replace").decode("utf-8"))
