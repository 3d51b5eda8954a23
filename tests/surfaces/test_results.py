"""How results are shown to a person: where a hit stands, its lines, the short forms, and the reasons in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.surfaces.test_terminal import STYLE, in_pipe, on_terminal

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

LONG = "a/directory with blanks/whose name is rather long/and/goes/on/and/on/until/it/is/longer/than/the/terminal.md"
RETRIES = (
    "# Networking\n\n## Retries\n\nA request is retried:\n\n* at once, when the connection was refused, since a server "
    "that restarts is back in a moment\n* after a minute\n\n| status | retried |\n|---|---|\n| 503 | yes |\n\n-----\n"
)
CODE = (
    '"""Deliver parcels."""\n\nLIMIT = 3\n\n\n@cached\ndef parcel_weight(parcel):\n    """Weigh a parcel."""\n\n'
    "    total = sum(item.weight for item in parcel.items)\n    return total + parcel.box.weight\n\n\n"
    'def ship(parcel):\n    """Ship a parcel to where it goes, and tell the customer about it by letter or mail."""\n'
    "    return PlanExecutor(parcel).collect(on=next_working_day())\n"
)


@pytest.fixture
def parcels(bare: Program) -> Program:
    """A project of prose and code whose lines are worth keeping."""
    for name, text in (("docs/net.md", RETRIES), ("src/parcels.py", CODE), (LONG, "# Sesame\n\nThe sesame opens.\n")):
        (bare.project / name).parent.mkdir(parents=True, exist_ok=True)
        (bare.project / name).write_text(text)
    bare.run("init")
    bare.run("index", "build")
    return bare


def results(printed: str) -> list[str]:
    """Return what is printed between the heading of the results and the latency."""
    return printed.partition("Results:\n")[2].partition("\nTotal latency")[0].splitlines()


def test_a_hit_in_code_is_named_by_its_symbol_and_the_line_that_declares_it(parcels: Program) -> None:
    """An editor opens `path:line`, and it is the function that is looked for, not its decorator."""
    lines = results(parcels.run("search", "parcel weight").stdout)
    assert re.fullmatch(r"1\. src/parcels\.py:7 \([01]\.\d\d, \w+\) parcel_weight", lines[0])
    first = lines.index("   @cached")
    assert lines[first + 1 : first + 3] == ["   def parcel_weight(parcel):", '       """Weigh a parcel."""']


def test_a_hit_in_a_document_is_named_by_its_line_and_keeps_its_lines(parcels: Program) -> None:
    """A list or a table that runs on as one line is neither a list nor a table; what draws a rule says nothing."""
    lines = results(parcels.run("search", "when is a request retried").stdout)
    assert re.fullmatch(r"1\. docs/net\.md:[135] \([01]\.\d\d, \w+\) (Retries|Networking)", lines[0])
    assert "   A request is retried:" in lines
    first = lines.index(
        "   * at once, when the connection was refused, since a server that restarts is back in a moment"
    )
    assert lines[first + 1 : first + 4] == ["   * after a minute", "   | status | retried |", "   |---|---|"]
    assert "   -----" not in lines


@pytest.mark.parametrize("columns", [50, 100])
@pytest.mark.parametrize("form", ["--brief", "-l", "--why", "--verbose"])
def test_a_path_is_never_broken(parcels: Program, form: str, columns: int) -> None:
    """A path that is broken cannot be copied."""
    shown = STYLE.sub("", on_terminal("search", "sesame opens", form, COLUMNS=str(columns)))
    assert [line for line in shown.splitlines() if LONG in line]
    assert shown.count(LONG) == shown.replace("\n", "").count(LONG)


def test_the_whole_width_of_a_wide_terminal_is_used(bare: Program) -> None:
    bare.run("remember", "The sesame opens at noon. " * 11)
    [head, *text] = STYLE.sub("", on_terminal("recall", "when does the sesame open", COLUMNS="240")).splitlines()
    assert head.startswith("1. ")
    assert 220 < max(map(len, text)) <= 240


def test_a_pipe_gets_lines_as_they_are(parcels: Program) -> None:
    """A program that reads them has no width; what was cut or wrapped could not be searched in them."""
    shown = in_pipe("search", "ship parcel to customer", COLUMNS="")[0].decode()
    assert '       """Ship a parcel to where it goes, and tell the customer about it by letter or mail."""' in shown
    assert "\x1b" not in shown


def test_stages_are_printed_with_verbose_alone(parcels: Program) -> None:
    """How long each stage took is for those who tune it."""
    for command in ("search", "recall"):
        parcels.run("remember", "The sesame opens.")
        assert "Stage 1" not in parcels.run(command, "sesame").stdout
        assert "Stage 1 (BM25 " in parcels.run(command, "sesame", "-v").stdout


def test_brief_prints_one_line_a_hit(parcels: Program) -> None:
    found = parcels.json("search", "parcel", "--min-score", "0")["hits"]
    lines = parcels.run("search", "parcel", "--min-score", "0", "--brief").stdout.splitlines()
    assert len(lines) == len(found) > 1
    assert re.match(r"1\. src/parcels\.py:\d+ \(.*?\) \w+: .*parcel", lines[0])
    assert max(map(len, lines)) <= 100 or LONG in max(lines, key=len)
    parcels.run("remember", "The sesame opens.\nAt noon.", "--id", "noon")
    [line] = parcels.run("recall", "sesame", "--brief").stdout.splitlines()
    assert re.fullmatch(r"1\. noon \([01]\.\d\d, \w+\): The sesame opens\. At noon\.", line)


def test_paths_alone_are_printed_for_other_programs(parcels: Program) -> None:
    """Like `grep -l`: each file once, and nothing else; a memory has an id."""
    found = parcels.json("search", "parcel request", "--min-score", "0")["hits"]
    paths = list(dict.fromkeys(hit["path"] for hit in found))
    assert parcels.run("search", "parcel request", "--min-score", "0", "-l").stdout.splitlines() == paths
    parcels.run("remember", "The sesame opens.", "--id", "noon")
    assert parcels.run("recall", "sesame", "-l").stdout == "noon\n"


@pytest.mark.parametrize("form", ["--brief", "-l"])
def test_a_short_form_of_nothing_is_empty_and_says_so_on_standard_error(parcels: Program, form: str) -> None:
    """A program reads no sentence as a path, and a person is not left without a word."""
    done = parcels.run("search", "zebra crossing quagga", form)
    assert (done.stdout, done.stderr.splitlines()[-1][:28]) == ("", "note: nothing relevant found")
    assert "--json prints whole hits" in parcels.error("search", "parcel", form, code=2)["message"]


def test_n_is_the_limit(parcels: Program) -> None:
    assert len(parcels.json("search", "parcel", "--min-score", "0", "-n", "1")["hits"]) == 1
    parcels.run("remember", "The sesame opens at noon.")
    parcels.run("remember", "The sesame shuts at night.")
    assert len(parcels.json("recall", "sesame", "-n", "1")["hits"]) == 1


def test_why_of_a_search_explains_each_hit_beneath_it(parcels: Program) -> None:
    lines = results(parcels.run("search", "parcel weight", "--min-score", "0", "-n", "2", "--why").stdout)
    second = next(number for number, line in enumerate(lines) if line.startswith("2. "))
    for rank, part in ((1, lines[:second]), (2, lines[second:])):
        told = " ".join(line.strip() for line in part)
        assert re.search(rf" It is hit {rank} of 2 because .*\. added: lexical [+-]\d\.\d\d, dense ", told)
    told = parcels.json("search", "parcel weight", "-n", "1", "--why")
    assert [each["hit_id"] for each in told["why"]] == [hit["id"] for hit in told["hits"]]
    assert "why" not in parcels.json("search", "parcel weight")


def test_why_takes_the_printed_rank_and_begins_with_a_sentence(parcels: Program) -> None:
    """A rank is at hand where the hits were just printed; an id is not."""
    asked = ("parcel weight", "--min-score", "0")
    hits = parcels.json("search", *asked)["hits"]
    for rank, hit in enumerate(hits, 1):
        assert parcels.json("why", *asked, str(rank))["hit_id"] == hit["id"]
    narrowed = (*asked, "--type", "documentation", "--path", "docs/**")
    first = parcels.json("search", *narrowed)["hits"][0]
    assert first["id"] != hits[0]["id"]
    assert parcels.json("why", *narrowed, "1")["hit_id"] == first["id"]
    shown = " ".join(parcels.run("why", *asked, "1").stdout.split("\n   score")[0].split())
    assert shown.startswith(f"src/parcels.py:7 is hit 1 of {len(hits)} because it")
    assert "it holds both words of the query (parcel, weight)" in shown
    assert "is not among the" in parcels.error("why", *asked, str(len(hits) + 1), code=1)["message"]


def test_an_id_that_looks_like_a_rank_is_an_id(bare: Program) -> None:
    """Who gave a memory the id 2 means that memory."""
    bare.run("remember", "Invoices are kept in Postgres.", "--id", "2")
    bare.run("remember", "The kitchen is cleaned on Fridays.", "--id", "7")
    asked = ("where are invoices kept", "--min-score", "0")
    assert bare.json("why", *asked, "2")["rank"] == 1


def test_a_memory_before_an_older_one_is_explained_by_that(bare: Program) -> None:
    """It may fit the query less; the hits are named by their ranks, which are what a person sees."""
    bare.run("remember", "Our office is in Oslo, in the old harbour.", "--at", "2024-01-01", "--id", "oslo")
    bare.run("remember", "Our office moved to Bergen, it is no longer in Oslo.", "--at", "2025-01-01", "--id", "bergen")
    told = " ".join(bare.run("recall", "where is our office in Oslo", "--why").stdout.split())
    assert "It is hit 1 of 2 because it replaced hit 2; it" in told
    assert "; hit 1 replaced it: they are alike (0.71), and the newer one has words of change" in told


def test_why_takes_an_abbreviated_id(bare: Program) -> None:
    """An id has 36 characters; others take the first of them too."""
    id_ = bare.json("remember", "Invoices are kept in Postgres.")["id"]
    assert bare.json("why", "where are invoices kept", id_[:8])["rank"] == 1


def test_a_hit_without_a_word_of_the_query_is_explained_by_its_meaning(bare: Program) -> None:
    """That no word matched is told, since it is what a person wonders about."""
    bare.run("remember", "My manager is Colette Barnes.")
    bare.run("remember", "The kitchen is cleaned on Fridays.")
    told = " ".join(bare.run("why", "who is the boss", "1", "--min-score", "0").stdout.split())
    assert "because its meaning is near to the query's" in told
    assert ", though it" in told.partition(". ")[0]
