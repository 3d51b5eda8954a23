"""What the lines of a log of retrievals say together."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from commonplace.dates.time import moment_of
from commonplace.logs import RetrievalLog, query_hash
from commonplace.search.retrieval_log import FoundOften, RetrievalHistory, RetrievalSummary, percentile


class _Log(RetrievalLog):
    """A log that holds given lines."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self._given = lines

    def lines(self) -> Iterator[dict[str, Any]]:
        yield from self._given


def summarise(lines: list[dict[str, Any]], since: float = -inf) -> RetrievalSummary:
    return RetrievalHistory(_Log(lines), "mine").summary(since)


def line(at: int, found: list[str], **fields: Any) -> dict[str, Any]:
    told = {"namespace": "mine", "method": "two-stage", "latency_ms": 10, "hits": len(found), "found": found}
    return {"at": f"1970-01-01T00:00:{at:02}+00:00", **told, **fields}


def use(at: int, used: str) -> dict[str, Any]:
    return {"at": f"1970-01-01T00:00:{at:02}+00:00", "namespace": "mine", "used": used}


def test_without_lines_nothing_was_searched() -> None:
    assert summarise([]) == RetrievalSummary(0, None, None, 0.0, 0.0, {}, {}, (), 0, 0.0)


def test_searches_are_counted_by_method_agent_and_outcome() -> None:
    lines = [
        *(line(second, ["a.md"], latency_ms=second, stages={"lexical": second / 2}) for second in range(1, 21)),
        line(30, [], method="bm25", latency_ms=7, degraded=True, agent="poet"),
        line(31, [], method="bm25", latency_ms=9, agent="poet"),
        line(32, ["b.md"], namespace="theirs"),
    ]
    told = summarise(lines)
    assert (told.searches, told.first, told.last) == (22, moment_of(1.0), moment_of(31.0))
    assert (told.nothing, told.degraded) == (0.0909, 0.0455)
    assert told.agents == {"poet": 2}
    two, bm25 = told.methods["two-stage"], told.methods["bm25"]
    assert (two.searches, two.p50_ms, two.p95_ms, two.stages) == (20, 10, 19, {"lexical": 5.0})
    assert (bm25.searches, bm25.p50_ms, bm25.p95_ms, bm25.stages) == (2, 7, 9, {})
    assert told.most_found == (FoundOften("a.md", 20),)


def test_artifacts_found_most_come_first_and_memories_are_not_named() -> None:
    lines = [line(1, ["b.md", "memory:5eed"]), line(2, ["a.md", "b.md"]), line(3, ["c.md"])]
    assert summarise(lines).most_found == (FoundOften("b.md", 2), FoundOften("a.md", 1), FoundOften("c.md", 1))
    many = [line(1, [f"{number:02}.md" for number in range(10)]), line(2, ["10.md"])]
    assert len(summarise(many).most_found) == 10


def test_a_use_counts_for_the_searches_before_it_that_found_it() -> None:
    lines = [use(0, "a.md"), line(1, ["a.md"]), line(2, ["b.md", "a.md"]), use(3, "a.md"), use(4, "z.md")]
    lines += [line(5, ["a.md"]), line(6, [])]
    told = summarise(lines)
    assert (told.uses, told.followed) == (1, 0.6667)


def test_the_uses_of_one_memory_are_the_searches_that_found_it_and_what_used_it() -> None:
    a, b = (f"memory:{query_hash(id_)}" for id_ in "ab")
    lines = [
        line(1, [a, b], call="recall", query="boats", agent="clerk"),
        line(2, [a]),
        line(3, [b], namespace="theirs"),
        use(4, b),
        {"at": "never", "namespace": "mine", "used": b},
    ]
    found = [
        (each.at.second, each.call, each.place, each.query, each.agent)
        for each in RetrievalHistory(_Log(lines), "mine").uses("b", ())
    ]
    assert found == [(4, "used", None, "", ""), (1, "recall", 2, "boats", "clerk")]


def test_only_what_is_not_earlier_counts() -> None:
    lines = [line(1, ["a.md"]), line(5, ["b.md"])]
    assert summarise(lines, since=5.0).most_found == (FoundOften("b.md", 1),)
    assert summarise(lines, since=6.0).searches == 0


def test_lines_that_are_none_of_ours_do_no_harm() -> None:
    """A log is a file that people can write to."""
    lines: list[dict[str, Any]] = [
        {},
        {"at": "yesterday", "namespace": "mine"},
        {"at": 7, "namespace": "mine", "method": None},
        {**line(1, ["a.md"]), "latency_ms": "long"},
        {**line(2, ["a.md"]), "stages": [1]},
        {**line(3, ["a.md"]), "stages": {"lexical": "long"}},
        {**line(4, ["a.md"]), "found": 3},
        line(5, ["b.md"]),
    ]
    told = summarise(lines)
    assert (told.searches, told.nothing, told.most_found) == (1, 0.0, (FoundOften("b.md", 1),))
    assert told.methods["two-stage"].p95_ms == 10


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    assert percentile([4, 2, 1, 3], share) == value
    assert percentile([], share) == 0.0
