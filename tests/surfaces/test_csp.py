"""CSP/1 on the command line: the same as through Python, request after request, whatever comes in."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.stubs.csp_client import format_request, parse_response

import commonplace
from commonplace.cli.app import cli
from commonplace.cli.csp import MAX_REQUEST_BYTES
from commonplace.formats.csp import CspRequest, Response
from commonplace.mcp.protocol import CallContext, Terms
from commonplace.mcp.tools import tools_of

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

    from commonplace.engine import Engine

NOTES = [
    "Billing keeps its invoices in Postgres since the move in March.",
    "The user wants short answers with the command to run first.",
    "The staging cluster is rebuilt every Sunday night.",
    "Ada decided that refunds above a hundred euros need a second pair of eyes.",
    "Invoices are printed on Mondays.",
]
STATS = "TASK REQ:stats IN:MEM OUT:STATS\n\n"


def served(data: bytes | str) -> list[Response]:
    """Return the answers to what comes on standard input."""
    done = CliRunner().invoke(cli, ["csp"], input=data)
    assert done.exit_code == 0, (done.output, done.exception)
    assert done.stdout == "" or done.stdout.endswith("\n\n")
    return [parse_response(answer) for answer in done.stdout.split("\n\n")[:-1]]


@pytest.fixture
def notes(bare: Program) -> Program:
    bare.run("init")
    for note in NOTES:
        bare.run("remember", note)
    return bare


QUESTIONS = ["where are invoices kept", "who decides about refunds", "staging cluster", "invoices", "the weather"]


PHRASINGS = [(question, None) for question in QUESTIONS]
PHRASINGS += [("who checks repayments", ["who decides about refunds", "second pair of eyes"]), ("cluster", ["weekly"])]


@pytest.mark.parametrize(("question", "also"), PHRASINGS)
def test_the_same_question_gets_the_same_hits_through_every_door(
    notes: Program, question: str, also: list[str] | None
) -> None:
    """Python, the commands, the specialist, a request, standard input and the tool: hits, scores, order."""
    options = ("--limit", "4", "--min-score", "0.2", *(part for each in also or () for part in ("--also", each)))
    params = {"max_results": 4, "min_relevance": 0.2} | ({"also": also} if also else {})
    request = CspRequest("recall", question, values={"PARAMS": params})
    lines = format_request(request).strip().split("\n")

    def of_result(result: dict[str, Any]) -> list[tuple[str, str]]:
        return [(hit["owner_id"], f"{hit['score']:.2f}") for hit in result["hits"]]

    def of_tool(book: Engine, given: dict[str, Any]) -> list[tuple[str, str]]:
        tool = next(each for each in tools_of(lambda _: book) if each.name == "memory_search")
        found = tool.handler({name: value for name, value in given.items() if value}, CallContext(Terms("")))
        return [(hit["id"], f"{hit['score']:.2f}") for hit in found.structured["results"]]

    def of_response(text: str) -> list[tuple[str, str]]:
        answer = parse_response(text)
        ids = [each.id for each in answer.data or ()]
        assert [each.id for each in answer.snippets] == ids
        return list(zip(ids, [f"{each:.2f}" for each in answer.relevance or ()], strict=True))

    with commonplace.open(notes.project / ".commonplace") as book:
        expected = of_result(book.recall(question, 4, min_score=0.2, also=also).to_dict())
        assert of_result(book.search(question, 4, min_score=0.2, also=also).to_dict()) == expected
        assert of_tool(book, {"query": question, "maxResults": 4, "minScore": 0.2, "also": also}) == expected
        assert of_response(book.specialist.handle(format_request(request))) == expected
    assert of_result(notes.json("recall", question, *options)) == expected
    assert of_result(notes.json("search", question, *options)) == expected
    assert of_response(notes.run("csp", *lines).stdout) == expected
    assert of_response(notes.run("csp", "\n".join(lines)).stdout) == expected
    assert of_response(CliRunner().invoke(cli, ["csp"], input=format_request(request)).stdout) == expected
    assert expected or question == "the weather"


def test_a_first_memory_needs_no_store_before_it(bare: Program) -> None:
    stored = bare.run("csp", "TASK REQ:store IN:MEM OUT:CONFIRM", "CONTENT We chose Postgres.", "TIER long")
    answer = parse_response(stored.stdout)
    assert (answer.status, answer.facts) == ("OK", (("TIER_WRITTEN", "long"),))
    assert bare.json("list")[0]["content"] == "We chose Postgres."


def test_a_request_that_fails_is_an_answer_and_an_exit_code(bare: Program) -> None:
    done = bare.run("csp", "TASK REQ:recall billing IN:SRC OUT:X", code=1)
    assert done.stdout.startswith("STATUS FAIL\nERROR WRONG_SCOPE\nRATIONALE IN:SRC is no scope")
    assert done.stderr == ""
    bare.run("csp", "TASK REQ:recall billing IN:MEM OUT:X")


def test_a_memory_of_one_process_is_refused_where_the_process_ends_with_it(bare: Program) -> None:
    store = ("csp", "TASK REQ:store IN:MEM OUT:CONFIRM", "CONTENT We chose Postgres.", "TIER ultra")
    refused = parse_response(bare.run(*store, code=1).stdout)
    assert (refused.status, refused.error, refused.data) == ("FAIL", "BAD_VALUE", None)


def test_json_is_one_object_a_response(notes: Program) -> None:
    told = notes.json("csp", "TASK REQ:recall staging cluster IN:MEM OUT:X")
    assert (told["status"], len(told["data"]), told["snippets"][0]["text"]) == ("OK", 1, NOTES[2])
    done = CliRunner().invoke(cli, ["csp", "--json"], input=STATS * 3)
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["OK"] * 3


def test_requests_are_answered_one_after_another(bare: Program) -> None:
    answers = served(
        "\n\r\nTASK REQ:store IN:MEM OUT:CONFIRM\nCONTENT We chose Postgres for billing.\nTIER ultra\n\n"
        "TASK REQ:recall what did we choose IN:MEM OUT:MEM_REFS\r\n\r\n\n\n \t\n"
        "TASK REQ:nonsense IN:MEM OUT:X\n\n"
        "TASK REQ:stats IN:MEM OUT:STATS"
    )
    assert [answer.status for answer in answers] == ["OK", "OK", "FAIL", "OK"]
    assert answers[1].data == answers[0].data
    assert dict(answers[3].facts)["ULTRA"] == "1"
    assert served("") == served("\n\n\n") == []
    assert dict(served(STATS)[0].facts)["ENTRIES"] == "0"  # ultra ends with its process


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (b"\xff\xfe\n\n" + STATS.encode(), ["BAD_ENCODING", ""]),
        (b"TASK REQ:store IN:MEM OUT:X\nCONTENT caf\xe9\n\n" + STATS.encode(), ["BAD_ENCODING", ""]),
        (b"\0\0\0\n\n" + STATS.encode(), ["BAD_REQUEST", ""]),
        (b"TASK REQ:store IN:MEM OUT:X\nCONTENT a\0b\n\n" + STATS.encode(), ["BAD_REQUEST", ""]),
        (b"TASK REQ:store IN:MEM OUT:X\nCONTENT first\n\nsecond\n\n" + STATS.encode(), ["", "BAD_REQUEST", ""]),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ["BAD_REQUEST"]),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}\n', ["BAD_REQUEST"]),
        (b"TASK REQ:store IN:MEM OUT:X\nCONTENT half a requ", [""]),
        (b"TASK REQ:recall half a requ", ["BAD_REQUEST"]),
        (b"\xef\xbb\xbf" + STATS.encode(), [""]),
        ("TASK REQ:store IN:MEM OUT:X\nCONTENT 東京→京都 ↔ “quoted”\n\n".encode(), [""]),
    ],
)
def test_whatever_comes_in_is_answered_and_the_next_request_too(bare: Program, data: bytes, codes: list[str]) -> None:
    assert [answer.error for answer in served(data)] == codes


@pytest.mark.parametrize("line_bytes", [MAX_REQUEST_BYTES, 10_000_000])
def test_what_is_too_large_is_refused_without_being_held(bare: Program, line_bytes: int) -> None:
    start = b"TASK REQ:store IN:MEM OUT:X\nCONTENT "
    answers = served(start + b"x" * line_bytes + b"\nTAGS [a]\n\n" + STATS.encode())
    assert [answer.error for answer in answers] == ["TOO_LARGE", ""]
    assert answers[0].rationale.startswith("the request has more than 4,194,304 bytes")
    assert dict(answers[1].facts)["ENTRIES"] == "0"
    many = b"".join(b"CONTENT %d\n" % number for number in range(500_000))
    assert [answer.error for answer in served(start + many)] == ["TOO_LARGE"]


def test_the_longest_memory_has_room_in_a_request(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is all line ends is twice as long as a JSON string."""
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "static")  # a mebibyte takes the transformer minutes
    monkeypatch.setenv("COMMONPLACE_GRAPH_REMEMBER", "off")
    content = json.dumps("line of words\n" * (1024 * 1024 // 14))
    [answer] = served(f"TASK REQ:store IN:MEM OUT:X\nCONTENT {content}\n")
    assert answer.status == "OK"
    [answer] = served(f"TASK REQ:store IN:MEM OUT:X\nCONTENT {'x' * (1024 * 1024 + 1)}\n")
    assert answer.rationale.startswith("the content has 1,048,577 bytes, the limit is 1,048,576")


COMMAND = [sys.executable, "-c", "from commonplace.cli.main import main; main()", "csp"]


def test_each_request_is_answered_at_its_empty_line(bare: Program) -> None:
    """Whoever asks waits for the answer before asking on; also where the terminal is said to be ASCII."""
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "HOME": str(bare.project)}
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=bare.project
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for lines in ("store IN:MEM OUT:X\nCONTENT 東京 is a city", "recall 東京 city IN:MEM OUT:X"):
            process.stdin.write(f"TASK REQ:{lines}\n\n".encode())
            process.stdin.flush()
            answer = b"".join(iter(process.stdout.readline, b"\n")).decode()
            assert parse_response(answer).status == "OK"
        assert parse_response(answer).snippets[0].text == "東京 is a city"
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait() == 0


def test_a_reader_that_goes_away_ends_the_program_quietly(bare: Program) -> None:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=bare.project
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"TASK REQ:store IN:MEM OUT:X\nCONTENT kept all the same\n\n" + STATS.encode() * 50)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    assert bare.json("list")[0]["content"] == "kept all the same"


def test_an_interruption_ends_the_program_with_one_line(bare: Program) -> None:
    # Whoever runs the tests may ignore the signal, and a child then does so too.
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [*COMMAND[:2], heeded + COMMAND[2], *COMMAND[3:]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=bare.project
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(STATS.encode() + b"TASK REQ:store IN:MEM OUT:X\nCONTENT half\n")
        process.stdin.flush()
        assert b"".join(iter(process.stdout.readline, b"\n")).startswith(b"STATUS OK")
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"interrupted\n"
        assert process.wait() == 130
    assert bare.json("list") == []
