"""The specialist as a whole: the contract's requests, codes of failures, and that nothing is kept between requests."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from tests.stubs.csp_client import parse_response

import commonplace
from commonplace import errors
from commonplace.specialist import Specialist
from commonplace.specialist.specialist import CODES, VERBS

if TYPE_CHECKING:
    from tests.unit.clock import Clock
    from tests.unit.specialist.conftest import Ask

    from commonplace.engine import Engine

CONTRACT = [
    ("recall project setup IN:MEM OUT:MEM_REFS", "STATUS SCOPE DATA RELEVANCE LINKS SNIPPET"),
    (
        "store IN:MEM OUT:CONFIRM\nCONTENT The setup takes an hour.\nTIER short\nTAGS [a,b]",
        "STATUS DATA TIER_WRITTEN",
    ),
    (
        "link IN:MEM OUT:CONFIRM\nENTITY1 auth.ts\nENTITY2 token.ts\nCONTEXT session handling with token refresh",
        "STATUS DATA ENTITIES_EXTRACTED RELATIONS_EXTRACTED",
    ),
    ("query_graph IN:MEM OUT:GRAPH_DATA\nQUERY auth dependencies\nMAX_RESULTS 10", "STATUS SCOPE DATA LINKS RELEVANCE"),
    ('decay IN:MEM OUT:STATS\nPARAMS {"threshold": 0.3, "scope": "short"}', "STATUS ENTRIES_DECAYED ENTRIES_DELETED"),
]


@pytest.mark.parametrize(("request_", "keys"), CONTRACT)
def test_a_request_of_the_contract_gets_the_lines_of_the_contract(book: Engine, request_: str, keys: str) -> None:
    book.remember("The project setup is one command, make.", entities=["project", "make"])
    book.remember("auth depends on token.", entities=["auth", "token"])
    text = book.specialist.handle(f"TASK REQ:{request_}")
    assert [line.split(" ")[0] for line in text.removesuffix("\n\n").split("\n")] == keys.split()
    assert text.startswith("STATUS OK\n")


@pytest.mark.parametrize("scope", ["SRC", "WEB", "mem", "MEMORY"])
def test_another_scope_is_refused(ask: Ask, scope: str) -> None:
    answer = ask("recall billing", scope=scope)
    assert (answer.status, answer.error) == ("FAIL", "WRONG_SCOPE")
    assert answer.rationale == f"IN:{scope} is no scope of the memory specialist; ask IN:MEM"


def test_an_unknown_verb_is_told_the_known_ones(ask: Ask) -> None:
    answer = ask("delete everything")
    assert (answer.status, answer.error) == ("FAIL", "UNKNOWN_VERB")
    assert answer.rationale == f"there is no verb delete; known are {', '.join(VERBS)}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "BAD_REQUEST"),
        ("hello", "BAD_REQUEST"),
        ("TASK REQ:recall a IN:MEM OUT:X\nPARAMS {", "BAD_JSON"),
        ("TASK REQ:recall \udcff IN:MEM OUT:X", "BAD_ENCODING"),
        ("TASK REQ:stats IN:MEM OUT:X\n\nTASK REQ:stats IN:MEM OUT:X", "BAD_REQUEST"),
        ("x" * 1_000_000, "BAD_REQUEST"),
    ],
)
def test_what_is_no_request_is_answered_too(book: Engine, text: str, code: str) -> None:
    answer = parse_response(book.specialist.handle(text))
    assert (answer.status, answer.error) == ("FAIL", code)
    assert 0 < len(answer.rationale) <= 400


class Failing:
    """An engine of which every call raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def graph(self) -> NoReturn:
        raise self._error

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> NoReturn:
            raise self._error

        return call


ERRORS = [
    (errors.UsageError("a"), "BAD_VALUE"),
    (errors.AdmissionError("a"), "NOT_ADMITTED"),
    (errors.NotFoundError("a"), "NOT_FOUND"),
    (errors.StoreBusyError("a"), "STORE_BUSY"),
    (errors.StoreDamagedError("a"), "STORE_FAILED"),
    (errors.ModelError("a"), "FAILED"),
]


@pytest.mark.parametrize(("error", "code"), ERRORS)
@pytest.mark.parametrize("lines", ["recall x", "store|CONTENT x", "query_graph x", "stats", "decay", "get x"])
def test_every_error_has_a_code(error: Exception, code: str, lines: str) -> None:
    first, *rest = lines.split("|")
    text = "\n".join((f"TASK REQ:{first} IN:MEM OUT:X", *rest))
    answer = parse_response(Specialist(Failing(error)).handle(text))  # type: ignore[arg-type]
    assert (answer.status, answer.error, answer.rationale) == ("FAIL", code, "a")


def test_all_codes_are_tried_here() -> None:
    assert {code for _, code in CODES} == {code for _, code in ERRORS}


def test_a_defect_is_an_answer_and_its_traceback_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A protocol that stops answering hangs whoever waits for the answer."""
    with caplog.at_level(logging.ERROR):
        text = Specialist(Failing(ZeroDivisionError("secret words"))).handle("TASK REQ:stats IN:MEM OUT:X")  # type: ignore[arg-type]
    answer = parse_response(text)
    assert (answer.error, answer.rationale) == (
        "INTERNAL",
        "unexpected ZeroDivisionError; the store's log has the traceback",
    )
    assert "ZeroDivisionError" in caplog.text


def test_a_part_of_the_search_that_is_down_makes_the_answer_partial(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.remember("Billing uses Postgres.", entities=["billing", "Postgres"])
    book.graph.add_triplet("billing", "USES", "Postgres")

    class Degraded:
        def __getattr__(self, name: str) -> Any:
            return getattr(book, name)

        def recall(self, *arguments: Any, **options: Any) -> Any:
            return replace(book.recall(*arguments, **options), degraded=True, notices=("the index is locked",))

    specialist = Specialist(Degraded())  # type: ignore[arg-type]
    recalled = parse_response(specialist.handle("TASK REQ:recall what does billing use IN:MEM OUT:X"))
    assert (recalled.status, recalled.rationale) == ("PARTIAL", "the index is locked")
    assert len(recalled.data or ()) == 1
    found = book.graph.search_entities("billing")
    monkeypatch.setattr(book.graph, "search_entities", lambda *_: replace(found, degraded=True))
    graph = parse_response(specialist.handle("TASK REQ:query_graph billing IN:MEM OUT:X"))
    assert (graph.status, graph.rationale) == ("PARTIAL", "a part of the search could not be used")
    assert graph.links


def test_nothing_is_kept_between_requests(book: Engine, tmp_path: Path, clock: Clock) -> None:
    """An answer depends on what is stored, not on what was asked before."""
    book.remember_many([{"content": f"Billing uses Postgres cluster number {n}."} for n in range(8)])
    asked = "TASK REQ:recall which database does billing use IN:MEM OUT:MEM_REFS"
    first = book.specialist.handle(asked)
    for topic in ("billing", "clusters", "zebras", "number 3"):
        book.specialist.handle(f"TASK REQ:recall {topic} IN:MEM OUT:MEM_REFS")
        book.specialist.handle(f"TASK REQ:recall {topic} IN:SRC OUT:MEM_REFS")
    assert book.specialist.handle(asked) == first
    with commonplace.open(tmp_path / "store", clock=clock) as other:
        assert other.specialist.handle(asked) == first
    assert Specialist.__slots__ == ("_engine",)


def test_the_verbs_are_those_of_the_manual() -> None:
    page = (Path(__file__).parents[3] / "docs" / "specialist.md").read_text("utf-8")
    assert re.findall(r"^### `(\w+)`", page, re.MULTILINE) == list(VERBS)
    codes = {code for _, code in CODES}
    assert codes <= set(re.findall(r"^\* `([A-Z_]+)`:", page, re.MULTILINE))
