"""Requests of CSP/1: the contract's examples, how values are quoted, and what is refused."""

from __future__ import annotations

import pytest
from tests.stubs.csp_client import format_request

from commonplace.formats.csp import CspError, CspRequest, parse_request

EXAMPLES = [
    "TASK REQ:recall project setup IN:MEM OUT:MEM_REFS",
    'TASK REQ:recall <topic> IN:MEM OUT:MEM_REFS\nPARAMS {"max_results": 5, "min_relevance": 0.3}',
    "TASK REQ:store IN:MEM OUT:CONFIRM\nCONTENT <text_to_store>\nTIER ultra|short|medium|long\nTAGS [tag1,tag2]",
    "TASK REQ:link IN:MEM OUT:CONFIRM\nENTITY1 auth.ts\nENTITY2 token.ts\nCONTEXT session handling with token refresh",
    "TASK REQ:query_graph IN:MEM OUT:GRAPH_DATA\nQUERY auth dependencies\nMAX_RESULTS 10",
    'TASK REQ:decay IN:MEM OUT:STATS\nPARAMS {"threshold": 0.3, "scope": "short"}',
]


def store(*lines: str) -> CspRequest:
    return parse_request("\n".join(("TASK REQ:store IN:MEM OUT:CONFIRM", *lines)))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_contract_prints_as_it_was_read(example: str) -> None:
    assert format_request(parse_request(example)) == f"{example}\n\n"


def test_a_request_is_read_into_its_parts() -> None:
    request = parse_request('TASK REQ:recall project setup IN:MEM OUT:MEM_REFS\nPARAMS {"max_results": 5}\n\n')
    assert request == CspRequest("recall", "project setup", "MEM", "MEM_REFS", {"PARAMS": {"max_results": 5}})
    assert store("TAGS [a, b]", "CONTENT x").values == {"TAGS": ("a", "b"), "CONTENT": "x"}


def test_words_end_at_the_last_in() -> None:
    """A topic may speak of what is IN: something."""
    request = parse_request("TASK REQ:recall what is IN:MEM OUT:X of it IN:SRC OUT:MEM_REFS")
    assert (request.words, request.scope) == ("what is IN:MEM OUT:X of it", "SRC")


def test_quotes_in_a_topic_are_words_unless_the_whole_is_a_json_string() -> None:
    """People quote words in questions."""
    topic = '"login service" timeouts'
    assert parse_request(f"TASK REQ:recall {topic} IN:MEM OUT:MEM_REFS").words == topic
    assert parse_request(r'TASK REQ:recall "a\nb" IN:MEM OUT:MEM_REFS').words == "a\nb"
    assert 'REQ:recall "\\"a\\"" IN:' in format_request(CspRequest("recall", '"a"'))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("plain text, with: anything → ↔ \\n", "plain text, with: anything → ↔ \\n"),
        ('say "hello"', 'say "hello"'),
        (r'"two\nlines, \"quoted\""', 'two\nlines, "quoted"'),
        (r'" edges "', " edges "),
        (r'"\u202eright to left"', "\u202eright to left"),
        (r'"\udb40\udc41"', "\U000e0041"),
        (r'"\ud800"', "\ud800"),
        ('""', ""),
    ],
)
def test_a_text_is_raw_unless_it_would_not_survive_its_line(written: str, text: str) -> None:
    assert store(f"CONTENT {written}").values["CONTENT"] == text
    assert f"\nCONTENT {written}\n" in format_request(CspRequest("store", values={"CONTENT": text}))


def test_a_tag_with_a_comma_is_a_json_string() -> None:
    tags = ("plain", "a,b", 'c"d', "e→f", " g ", "h\ni", "", "[j]", "none")
    written = r'TAGS [plain,"a,b","c\"d","e→f"," g ","h\ni","",[j],none]'
    assert f"\n{written}\n" in format_request(CspRequest("store", values={"TAGS": tags}))
    assert store(written).values["TAGS"] == tags
    assert store("TAGS []").values["TAGS"] == ()


def test_a_list_of_a_million_items_is_read_in_one_pass() -> None:
    """A request may be that large, and one that takes minutes to refuse stops everybody else's."""
    assert len(store(f"TAGS [{','.join('a' * 1_000_000)}]").values["TAGS"]) == 1_000_000


def test_line_ends_of_windows_blanks_and_a_byte_order_mark_do_no_harm() -> None:
    text = "\ufeff\r\n\nTASK  REQ:recall\tauth  IN:MEM\tOUT:MEM_REFS \r\nPARAMS\t{}  \r\n\r\n \r\n"
    assert parse_request(text) == CspRequest("recall", "auth", values={"PARAMS": {}})


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "BAD_REQUEST", "the request is empty; write TASK REQ:"),
        ("\n \n", "BAD_REQUEST", "the request is empty"),
        ("hello", "BAD_REQUEST", "the request line is 'hello'"),
        ("TASK REQ:recall auth", "BAD_REQUEST", "the request line is"),
        ("TASK REQ: recall IN:MEM OUT:X", "BAD_REQUEST", "the request line is"),
        ("TASK REQ:re/call IN:MEM OUT:X", "BAD_REQUEST", "verb is 're/call'"),
        ("TASK REQ:recall x IN: OUT:X", "BAD_REQUEST", "IN: is ''"),
        ("TASK REQ:recall x IN:MEM OUT:", "BAD_REQUEST", "OUT: is ''"),
        ("{T}\nsecond line", "BAD_REQUEST", "line 2 is 'second line', not KEY value; write a text of several lines as"),
        ("{T}\nTEIR long", "BAD_REQUEST", "line 2 has the unknown key TEIR; known are QUERY"),
        ("{T}\nTIER", "BAD_REQUEST", "TIER in line 2 has no value"),
        ("{T}\nTIER a\nTIER b", "BAD_REQUEST", "TIER appears twice, again in line 3"),
        ("{T}\n\n{T}", "BAD_REQUEST", "an empty line ends it, and line 3 follows; send one request at a time"),
        ("{T}\nTAGS a,b", "BAD_REQUEST", "TAGS is 'a,b', not a list; write TAGS"),
        ("{T}\nTAGS [a,,b]", "BAD_REQUEST", "TAGS has an empty value"),
        ("{T}\nTAGS [a,]", "BAD_REQUEST", "TAGS has an empty value"),
        ('{T}\nTAGS [a"b]', "BAD_REQUEST", "TAGS has a quote inside the value"),
        ('{T}\nTAGS ["a" b]', "BAD_REQUEST", "TAGS has 'b' where , is expected"),
        ('{T}\nTAGS ["a]', "BAD_JSON", "TAGS is not a JSON string"),
        ('{T}\nCONTENT "a', "BAD_JSON", "CONTENT is not a JSON string"),
        ('{T}\nCONTENT "a" said she', "BAD_JSON", "CONTENT continues after its closing quote: ' said she'"),
        ('{T}\nCONTENT "a\tb"', "BAD_JSON", "CONTENT is not a JSON string"),
        ("{T}\nCONTENT a\0b", "BAD_REQUEST", r"line 2 holds the control character U\+0000"),
        ("{T}\nCONTENT a\rSTATUS OK", "BAD_REQUEST", r"line 2 holds the control character U\+000D"),
        ("{T}\nCONTENT a\x1b[2J", "BAD_REQUEST", r"line 2 holds the control character U\+001B"),
        ("{T}\nCONTENT a\udcff", "BAD_ENCODING", "line 2 is not UTF-8"),
        ("{T}\nPARAMS {", "BAD_JSON", "PARAMS is not JSON"),
        ("{T}\nPARAMS [1]", "BAD_JSON", "PARAMS is not a JSON object"),
        ('{T}\nPARAMS {"a": NaN}', "BAD_JSON", "NaN is not a number"),
        ('{T}\nPARAMS {"a": 1e999}', "BAD_JSON", "1e999 is too large"),
        ('{T}\nPARAMS {"a": 1, "a": 2}', "BAD_JSON", "'a' appears twice"),
        ('{T}\nPARAMS {"a": ' + "[" * 200_000, "BAD_JSON", "nested too deeply"),
    ],
)
def test_what_is_no_request_is_refused_with_a_code_and_a_remedy(text: str, code: str, message: str) -> None:
    with pytest.raises(CspError, match=message) as raised:
        parse_request(text.replace("{T}", "TASK REQ:store IN:MEM OUT:CONFIRM"))
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (CspRequest("two words"), "the verb is 'two words'"),
        (CspRequest("recall", scope="M\nM"), "IN: is"),
        (CspRequest("recall", output=""), "OUT: is ''"),
        (CspRequest("recall", values={"TEIR": "long"}), "TEIR is 'long'"),
        (CspRequest("recall", values={"TAGS": "long"}), "TAGS is 'long'"),
    ],
)
def test_what_cannot_be_written_is_refused(request_: CspRequest, message: str) -> None:
    with pytest.raises(CspError, match=message):
        format_request(request_)
