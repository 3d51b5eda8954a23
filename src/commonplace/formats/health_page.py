"""Render the health report as a self-contained HTML page.

The page loads nothing, and its content security policy forbids scripts, whatever a memory contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1b1f;--soft:#63636e;--rule:#dcdce2;--bar:#4c6fae;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ground:#17171b;--ink:#f1f1f5;--soft:#adadb8;--rule:#3a3a43;--bar:#8fb0ee;
--bad:#f2b8b5}}
body{margin:0 auto;padding:1.5rem;max-width:60rem;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}
p{margin:.2rem 0;color:var(--soft)}
table{border-collapse:collapse;width:100%}
th,td{text-align:start;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--rule);
overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}
td.count{text-align:end;width:5rem;font-variant-numeric:tabular-nums}
.bar{display:block;height:.8rem;min-width:1px;background:var(--bar)}
.bad{color:var(--bad)}
blockquote{margin:.2rem 0 0;color:var(--soft);white-space:pre-wrap}
"""

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


def page_of(health: Mapping[str, Any], texts: Mapping[str, str], at: str) -> str:
    """Return the page.

    Args:
        health: what `Health.to_dict` returns.
        texts: what memories say, by id, as far as it is known.
        at: when they were examined, for people.
    """
    title = f"Memories of {_text(health['namespace'])}"
    count, archived = health["memories"], health["statuses"].get("archived", 0)
    apart = f", and {archived:,} archived, counted apart" if archived else ""
    parts = [
        f"<h1>{title}</h1>\n<p>{count:,} {'memory' if count == 1 else 'memories'}{apart}, examined {_text(at)}</p>\n",
        _bars("Tiers", health["tiers"]),
        _bars("Status", health["statuses"]),
        _bars("Retention, up to", health["retention"]),
        _bars("Issues that wait", health["pending"]) if health["pending"] else "",
        _golden(health["golden"]),
        *(_findings(heading, health["findings"], kind, texts) for kind, heading in HEADINGS.items()),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{''.join(parts)}</body>\n</html>\n"
    )


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
