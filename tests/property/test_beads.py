"""Issues go to beads and come back as they were, and what is no issue is refused with the number of its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import UsageError
from commonplace.formats import beads
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, Issue

texts = st.text(st.characters(exclude_categories=()), max_size=8)
ids = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
times = st.integers(-(10**9) * 64, 10**10 * 64).map(lambda sixtyfourths: sixtyfourths / 64)
some_time = st.none() | times
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
KNOWN = {*json.loads(beads.to_line(Issue("x", "t", closed_at=0.0, close_reason="x"))), beads.OWN_FIELD}
rests = st.dictionaries(texts.filter(lambda name: name not in KNOWN), plain, max_size=3)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=isinstance(value, dict))


@st.composite
def issues(draw: st.DrawFn) -> Issue:
    """Draw an issue, ours or another tracker's."""
    agent = draw(st.sampled_from(["", *AGENTS]))
    memory_ids = draw(st.lists(ids, max_size=3, unique=True).map(sorted).map(tuple))
    notes = json.dumps({"memory_ids": list(memory_ids), **draw(rests)}) if memory_ids else draw(st.just("by hand"))
    others = draw(st.lists(texts.filter(lambda label: not label.startswith(beads.AGENT_LABEL)), max_size=2))
    return Issue(
        id=draw(ids),
        title=draw(texts),
        agent=agent,
        memory_ids=memory_ids,
        description=draw(texts),
        notes=notes + draw(st.sampled_from(["", "\nblocked: no"])),
        status=draw(st.sampled_from([*ISSUE_STATUSES, "deferred"])),
        priority=draw(st.integers(0, 4)),
        issue_type=draw(st.sampled_from(["task", "bug"])),
        labels=tuple(sorted({*others, *([f"{beads.AGENT_LABEL}{agent}"] if agent else [])})),
        dependencies=as_json(draw(st.lists(plain, max_size=2))),
        comments=as_json(draw(st.lists(plain, max_size=2))),
        rest=as_json(draw(rests)),
        created_at=draw(times),
        updated_at=draw(times),
        closed_at=draw(some_time),
        close_reason=draw(texts),
        retries=draw(st.integers(0, 3)),
        retry_at=draw(some_time),
        claimed_by=draw(texts),
        claimed_at=draw(some_time),
        escalated_at=draw(some_time),
    )


@given(st.lists(issues(), max_size=3, unique_by=lambda issue: issue.id))
def test_issues_come_back_as_they_were(written: list[Issue]) -> None:
    """Every field, those that beads does not know, and those of beads that we do not know."""
    lines = [beads.to_line(issue) for issue in written]
    assert all("\n" not in line for line in lines)
    assert beads.read([*lines, "", "  "]) == written
    assert [beads.to_line(issue) for issue in beads.read(lines)] == lines


@given(texts, plain)
def test_whatever_a_line_holds_it_is_read_or_refused(text: str, value: Any) -> None:
    """Nothing but an error of ours comes of a file of somebody else's."""
    for line in (text, json.dumps(value), json.dumps({"id": "x", "created_at": "2026-01-01", "labels": value})):
        try:
            found = beads.read([line])
        except UsageError as error:
            assert "line 1" in str(error)
        else:
            assert found == [] or found[0].id


def test_a_line_of_beads_is_read_with_all_that_it_says() -> None:
    """Times have an offset and nine digits there, and fields that we know nothing of."""
    line = json.dumps(
        {
            "id": "bd-a1b2",
            "title": "Set up",
            "status": "deferred",
            "priority": 0,
            "issue_type": "epic",
            "assignee": "me",
            "labels": ["b", "a", "b"],
            "created_at": "2026-02-06T12:00:00.123456789+02:00",
            "updated_at": "2026-02-06T10:30:00Z",
            "dependencies": [{"issue_id": "bd-a1b2", "depends_on_id": "bd-1", "type": "blocks"}],
        }
    )
    (issue,) = beads.read([line])
    assert (issue.id, issue.status, issue.priority, issue.issue_type) == ("bd-a1b2", "deferred", 0, "epic")
    assert (issue.labels, issue.agent, issue.memory_ids) == (("a", "b"), "", ())
    assert (issue.created_at, issue.updated_at) == (1770372000.123456, 1770373800.0)
    assert issue.rest == '{"assignee": "me"}'
    assert json.loads(issue.dependencies)[0]["type"] == "blocks"


def test_an_issue_of_ours_is_recognised_by_label_and_notes() -> None:
    """Beads has no field for agent and memories."""
    notes = '{"memory_ids": ["b", "a"]}\nblocked: no'
    given_object = {"id": "x", "notes": notes, "labels": ["consolidation:merge"], "created_at": "2026-02-06"}
    issue = beads.from_object(given_object)
    assert (issue.agent, issue.memory_ids, issue.notes) == ("merge", ("a", "b"), notes)
    two = beads.from_object({**given_object, "labels": ["consolidation:merge", "consolidation:decay"]})
    assert two.agent == ""


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('{"id": "x"', "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is not an object"),
        ('{"id": ""}', "id is missing"),
        ('{"id": 5}', "id is not text"),
        ('{"id": "x"}', "created_at is missing"),
        ('{"id": "x", "created_at": 5}', "created_at is 5, no time"),
        ('{"id": "x", "created_at": "yesterday"}', "created_at is 'yesterday', no time"),
        ('{"id": "x", "created_at": "2026-01-01", "priority": 5}', "priority is 5, not one of 0 to 4"),
        ('{"id": "x", "created_at": "2026-01-01", "priority": true}', "priority is not one of 0 to 4"),
        ('{"id": "x", "created_at": "2026-01-01", "priority": NaN}', "NaN is not a number"),
        ('{"id": "x", "created_at": "2026-01-01", "labels": "a"}', "labels is not a list"),
        ('{"id": "x", "created_at": "2026-01-01", "labels": [1]}', "labels holds what is not text"),
        ('{"id": "x", "created_at": "2026-01-01", "notes": {}}', "notes is not text"),
        ('{"id": "x", "created_at": "2026-01-01", "commonplace": 1}', "commonplace is not an object"),
        ('{"id": "x", "created_at": "2026-01-01", "commonplace": {"retries": -1}}', "retries is -1"),
        (
            '{"id": "x", "created_at": "2026-01-01", "commonplace": {"claimed_by": 1}}',
            "claimed_by is not text",
        ),
        ('{"id": "ok", "created_at": "2026-01-01"}', "issue 'ok' was on an earlier line"),
    ],
)
def test_a_line_that_is_no_issue_is_named(wrong: str, told: str) -> None:
    """Whoever has ten thousand lines wants to know which one."""
    with pytest.raises(UsageError, match=f"line 3.*: {told}"):
        beads.read(['{"id": "ok", "created_at": "2026-01-01"}', "", wrong])
