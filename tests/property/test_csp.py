"""Whatever is asked and answered in CSP/1 is read as it was meant, on as many lines as it was written."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from tests.stubs.csp_client import format_request, parse_response

from commonplace.formats.csp import (
    LISTS,
    OBJECTS,
    STATUSES,
    TEXTS,
    CspError,
    CspLink,
    CspRequest,
    Reference,
    Response,
    Snippet,
    format_response,
    parse_request,
)

MARKS = [
    *'",:[]{}\\ \t\r\n\0\x1b\x7f\x85',
    "↔",
    "→",
    "\u2028",
    "\u202e",
    "\ud800",
    "\ufeff",
    "\U000e0041",
    " IN:",
    " OUT:MEM",
    "none",
    "STATUS OK",
    "TASK REQ:store",
    '\\"',
    "\n\n",
    "mem:",
    ':"',
    "0.50",
]
WORDS = st.lists(st.sampled_from(MARKS) | st.text(max_size=4), max_size=8).map("".join)
NAMES = st.text(st.sampled_from("abcXYZ_019"), min_size=1, max_size=8)
NUMBERS = st.integers(0, 100).map(lambda number: number / 100)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(TEXTS, WORDS),
        **dict.fromkeys(LISTS, st.lists(WORDS, max_size=4).map(tuple)),
        **dict.fromkeys(OBJECTS, st.dictionaries(WORDS, JSON, max_size=4)),
    },
)
REQUESTS = st.builds(CspRequest, NAMES, WORDS, NAMES, NAMES, VALUES)


def some(items: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | st.lists(items, max_size=3).map(tuple)


RELATIONS = st.builds(CspLink, WORDS, WORDS, st.booleans(), st.none() | NUMBERS)
KEYS = NAMES.map(lambda name: f"X_{name.upper()}")


@st.composite
def responses(draw: st.DrawFn) -> Response:
    """Return any response, of which only one line of relevance is asked for."""
    links = draw(some(RELATIONS))
    rates_links = links is not None and draw(st.booleans())
    relevance = draw(some(NUMBERS))
    return Response(
        status=draw(st.sampled_from(STATUSES)),
        error=draw(WORDS),
        rationale=draw(WORDS),
        scope=draw(some(WORDS)),  # type: ignore[arg-type]
        data=draw(some(st.builds(Reference, NAMES, WORDS))),  # type: ignore[arg-type]
        relevance=None if rates_links else relevance,  # type: ignore[arg-type]
        links=links,  # type: ignore[arg-type]
        link_relevance=relevance if rates_links else None,  # type: ignore[arg-type]
        snippets=tuple(draw(st.lists(st.builds(Snippet, WORDS, WORDS), max_size=3))),
        facts=tuple(draw(st.dictionaries(KEYS, WORDS, max_size=3)).items()),
        content=draw(WORDS),
    )


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: CspRequest) -> None:
    text = format_request(request)
    assert parse_request(text) == request
    assert len(text.splitlines()) == 2 + len(request.values)
    assert list(parse_request(text).values) == list(request.values)


@given(responses())
def test_a_response_is_read_as_it_was_written(response: Response) -> None:
    text = format_response(response)
    assert parse_response(text) == response
    assert text.endswith("\n\n")
    assert "\n\n" not in text[:-2]
    text.encode()


@given(st.lists(st.sampled_from([*MARKS, "TASK REQ:recall x IN:MEM OUT:Y\n", "TAGS [", "PARAMS {", "CONTENT "])))
def test_any_text_is_a_request_or_refused(pieces: list[str]) -> None:
    with suppress(CspError):
        request = parse_request("".join(pieces))
        assert parse_request(format_request(request)) == request


@given(st.lists(st.sampled_from([*MARKS, "STATUS OK\n", "DATA ", "LINKS ", "SNIPPET ", "SCOPE [", "RELEVANCE "])))
def test_any_text_is_a_response_or_refused(pieces: list[str]) -> None:
    with suppress(CspError):
        response = parse_response("".join(pieces))
        assert parse_response(format_response(response)) == response
