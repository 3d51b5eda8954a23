"""Whatever a memory holds, it is kept exactly, found, shown harmlessly, and as easily put away as any other."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.surfaces.conftest import Program
from tests.surfaces.mcp_process import Wire, call
from tests.surfaces.test_journal import edit
from tests.unit.formats.test_escaping import flag, tags

import commonplace
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.escaping import HIDDEN, visible
from commonplace.types import Document

CHANCE = random.Random(3)
MEBIBYTE = 1024 * 1024
WORDS = "amber basalt cedar delta ember fjord garnet harbour indigo juniper kelp lagoon maple nectar opal".split()
LONG = " ".join(CHANCE.choices(WORDS, k=32_000)) + " zebrafinch"

TEXTS = {
    "thirty thousand words": (LONG, "zebrafinch"),
    "very many characters in one word": ("zebrafinch " + "x" * 300_000, "zebrafinch"),
    "right to left": ("הציפור zebrafinch شادية \u202etxt.exe\u202c", "הציפור"),
    "emoji": ("👩‍👩‍👧‍👦🏳️‍🌈 the zebrafinch 🐦‍⬛", "zebrafinch"),
    "chinese": ("斑胸草雀每天早上唱歌", "斑胸草雀"),
    "sql": ("zebrafinch'); DROP TABLE owners; -- \" OR 1=1", "zebrafinch'); DROP TABLE owners"),
    "query syntax": ('zebrafinch:(a OR b) AND NOT "c"~2 +x -y ^3 [a TO b] {} \\ *', 'zebrafinch:(a OR b) AND "c"~2 *'),
    "markdown": ("---\nid: x\n---\n# zebrafinch\n<!-- memory: 1 -->\n```\nopen fence\n", "zebrafinch"),
    "escapes": ("\x1b[31mred zebrafinch\x1b[0m \x1b]0;title\x07 \x9b2J\x85", "zebrafinch"),
    "markup": ("[bold]zebrafinch[/bold] [/] [link=file:///etc] {0} %s", "zebrafinch"),
    "line ends": ("one\r\ntwo\rthree\n\n\x0bzebrafinch\x0c\u2028five\u2029", "zebrafinch"),
}  # fmt: skip
NAMES = (
    "../../etc/passwd",
    "a/b",
    "..",
    "CON",
    "NUL",
    "C:\\x",
    "-rf",
    "--help",
    "a:b",
    "%2e%2e",
    "\u202egnp",
    "'",
)
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    """A store that holds something else, so that what is found was chosen."""
    with commonplace.open(tmp_path / "store", embedder="static") as book:
        book.remember("Invoices are kept in Postgres", id="another")
        yield book


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_kept_exactly_and_found_before_and_after_it_is_in_the_index(book: Engine, name: str) -> None:
    """Ten thousand agents write what nobody foresaw."""
    text, query = TEXTS[name]
    kept = book.remember(text, id="it")
    assert (kept.content, kept.outcome, book.get("it").content) == (text, "added", text)
    for _ in range(2):
        result = book.recall(query, min_score=0.0)
        assert result.hits[0].owner_id == "it"
        assert book.why(result, result.hits[0].id).rank == 1
        assert result.to_dict()["hits"]
        assert [memory.id for memory in book.list()] == ["it", "another"]
        report = book.doctor()
        assert report.is_healthy, report.findings
    book.archive("it")
    assert [hit.owner_id for hit in book.recall(query, min_score=0.0).hits if hit.owner_id == "it"] == []
    assert (book.restore_memory("it").content, book.recall(query, min_score=0.0).hits[0].owner_id) == (text, "it")


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_printed_without_what_a_terminal_would_obey(
    program: Program, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A memory of somebody else's words is shown in the terminal of whoever asks."""
    monkeypatch.setenv("COMMONPLACE_GRAPH_REMEMBER", "off")
    text, query = TEXTS[name]
    text = text if len(text) < 100_000 else text[:50_000] + text[-50_000:]  # each is printed eight times
    with commonplace.open(program.project / ".commonplace") as book:
        book.index_upgrade("static")  # a long text takes the transformer minutes
        book.remember(text, id="it", tags=["\x1b[31m" + name], source="\u202eweb\x9b")
    for command in (["get", "it"], ["get", "it", "--versions"], ["list"], ["recall", query, "--min-score", "0"]):
        for form in ([], ["--json"]):
            shown = program.run(*command, *form).stdout
            assert RAW.findall(shown) == [], command
    assert program.json("get", "it")["content"] == text


def test_the_largest_text_is_taken_and_one_byte_more_is_refused_with_the_limit(book: Engine) -> None:
    """The limit counts bytes, not characters."""
    assert book.remember("é" * (MEBIBYTE // 2), id="it").content == "é" * (MEBIBYTE // 2)
    with pytest.raises(UsageError, match="the content has 1,048,577 bytes, the limit is 1,048,576; remember the"):
        book.remember("x" + "é" * (MEBIBYTE // 2))


def test_binary_is_refused_and_kept_without_nul_when_it_is_forced(book: Engine) -> None:
    """A NUL ends a text in many a tool, and no database on a network holds one."""
    text = "zebrafinch\0\x01\x02 after"
    with pytest.raises(
        UsageError, match=r"the content is binary: it holds NUL .*; give a text; only `remember` with force=True"
    ):
        book.remember(text)
    kept = book.remember(text, id="it", force=True)
    assert kept.is_forced
    assert kept.notices == ("NUL and halves of surrogate pairs, which no store can keep, were replaced by U+FFFD",)
    assert book.get("it").content == text.replace("\0", "\ufffd")
    assert book.recall("zebrafinch", min_score=0.0).hits[0].owner_id == "it"
    assert book.doctor().is_healthy
    assert book.recall("zebrafinch", min_score=0.0).hits[0].owner_id == "it"


def test_lone_surrogates_are_replaced_in_a_text_and_refused_in_a_name(book: Engine) -> None:
    """UTF-8 holds no half of a pair: what a client cut in two is told, and no name becomes another one."""
    kept = book.remember("a zebrafinch \ud800 sings", id="it", metadata={"\udfff": "\ud83d"})
    assert (kept.content, kept.metadata) == ("a zebrafinch \ufffd sings", {"\ufffd": "\ufffd"})
    assert "replaced by U+FFFD" in kept.notices[0]
    for name in ("\ud800", "a\0b"):
        for field in ({"id": name}, {"tags": [name]}, {"source": name}, {"session": name}, {"category": name}):
            with pytest.raises(UsageError, match="holds NUL or half of a surrogate pair, which no store can keep"):
                book.remember("the zebrafinch sleeps", **field)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="holds NUL or half"):
            book.index_documents([Document(name, "the zebrafinch sings")])
    episode = book.graph.add_episode("Ann met Bob\ud800.")
    assert "replaced by U+FFFD" in episode.notices[0]
    assert book.doctor().is_healthy


def test_binary_comes_through_a_pipe_without_nul(program: Program) -> None:
    """Only so can a NUL reach the program: no argument holds one."""
    refused = CliRunner().invoke(cli, ["remember", "--id", "it"], input=b"zebra\0finch")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "the content is binary" in refused.stderr
    assert "only `remember` with --force keeps it as it is" in refused.stderr
    kept = CliRunner().invoke(cli, ["remember", "--id", "it", "--force"], input=b"zebra\0finch")
    assert (kept.exit_code, RAW.findall(kept.stdout)) == (0, [])
    assert program.json("get", "it")["content"] == "zebra\ufffdfinch"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_looks_like_a_path_or_an_option_is_only_a_name(book: Engine, tmp_path: Path, name: str) -> None:
    """An id, a session, a tag, a source or a category never becomes a file outside of the store."""
    before = sorted(path for path in tmp_path.rglob("*") if "store" not in path.parts[len(tmp_path.parts) :])
    book.remember("the zebrafinch sings", id=name, tags=[name], source=name, entities=[name], category=name)
    book.remember("the zebrafinch sleeps", id=f"{name}/turn", session=name)
    found = book.get(name)
    assert (found.id, found.tags, found.source, found.entities) == (name, (name,), name, (name,))
    assert [memory.id for memory in book.list(tags=[name])] == [name]
    assert [memory.id for memory in book.list(sources=[name])] == [name]
    assert [memory.id for memory in book.list(sessions=[name])] == [f"{name}/turn"]
    assert book.recall("zebrafinch sings", tags=[name], min_score=0.0).hits[0].owner_id == name
    assert book.link(name, f"{name}/turn", "next").source == name
    assert book.update(name, "the zebrafinch sang").version == 2
    assert book.touch(name).outcome == "touched"
    assert book.doctor().is_healthy
    assert book.recall("zebrafinch sang", sources=[name], min_score=0.0).hits[0].owner_id == name
    assert sorted(path for path in tmp_path.rglob("*") if "store" not in path.parts[len(tmp_path.parts) :]) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_title_that_looks_like_a_path_is_only_a_title(book: Engine, tmp_path: Path, name: str) -> None:
    """Of a document that is no file."""
    book.index_documents([Document(name, "the zebrafinch sings", title=name)])
    hit = book.search("zebrafinch", min_score=0.0).hits[0]
    assert (hit.owner_id, hit.title, hit.path) == (name, name, "")
    assert list(tmp_path.iterdir()) == [tmp_path / "store"]
    assert book.forget(name).verified


@pytest.mark.parametrize("name", NAMES)
def test_a_namespace_that_looks_like_a_path_has_pages_in_the_store_alone(
    book: Engine, tmp_path: Path, name: str
) -> None:
    """Each has a folder of its own below `memory`, or is refused."""
    if not name.isprintable():
        with pytest.raises(UsageError, match="is not a printable name"):
            commonplace.open(book.directory, namespace=name)
        return
    with commonplace.open(book.directory, namespace=name) as other:
        other.remember("the zebrafinch sings", id="it")
        other.remember("the zebrafinch sleeps", tier="long")
        other.sync()
        assert "zebrafinch sleeps" in other.read(other.pages()[0]).text
    book.sync()
    pages = [page.relative_to(tmp_path / "store" / "memory") for page in (tmp_path / "store").glob("memory/*/*.md")]
    assert [len(page.parts) for page in pages] == [2, 2]
    assert set(tmp_path.rglob("MEMORY.md")) == {tmp_path / "store" / "memory" / pages[0].parent / "MEMORY.md"}
    assert book.forget_namespace(name, confirm=name).verified
    assert [page.parent.name for page in tmp_path.rglob("*.md")] == ["memory"]


@pytest.mark.parametrize("name", NAMES)
def test_such_names_come_through_the_command_line(program: Program, name: str) -> None:
    """After `--`, whatever it looks like."""
    program.run("remember", "--tag", f"t{name}", "--id", name, "--", "the zebrafinch sings")
    assert json.loads(program.run("get", "--json", "--", name).stdout)["id"] == name
    assert RAW.findall(program.run("get", "--", name).stdout) == []
    program.run("touch", "--", name)
    program.run("memory", "archive", "--", name)


@pytest.mark.parametrize(
    "at",
    [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ],
)
def test_the_first_and_the_last_times_are_kept_listed_and_searched(book: Engine, at: str) -> None:
    """Words such as yesterday reach past both ends of the calendar."""
    moment = datetime.fromisoformat(at)
    kept = book.remember("yesterday, last year, tomorrow and in ten years the zebrafinch sings", id="it", at=at)
    assert (kept.at, book.get("it").at, book.get("it").to_dict()["at"]) == (moment, moment, at)
    assert [memory.id for memory in book.list(since=at)][-1 if at < "2" else 0] == "it"
    for question in (
        "zebrafinch",
        "when did the zebrafinch sing, last year?",
        "zebrafinch tomorrow",
        f"zebrafinch {at}",
    ):
        result = book.recall(question, min_score=0.0)
        assert "it" in [hit.owner_id for hit in result.hits]
        assert result.to_dict()["hits"]
    assert book.get("it", as_of=datetime.now(UTC)).id == "it"
    with pytest.raises(NotFoundError, match=r"memory 'it' was not known at 1970-01-01T23:59:59Z in this namespace"):
        book.get("it", as_of="1970-01-01")


@pytest.mark.parametrize("at", ["0000-01-01", "10000-01-01", "the day", 1e300, float("nan"), float("inf"), True])
def test_a_time_outside_of_the_calendar_is_refused_with_its_limits(book: Engine, at: object) -> None:
    """What cannot be shown must not be stored."""
    with pytest.raises(UsageError, match=r"at is .*; give an ISO 8601 time .* years 1 to 9999"):
        book.remember("the zebrafinch sings", at=at)  # type: ignore[arg-type]
    assert [memory.id for memory in book.list()] == ["another"]


PLAIN = f"שלום می\u200cخواهم 👩\u200d💻❤\ufe0f {flag('gbsct')}"
SMUGGLED = f"The zebrafinch {tags('obey')}sings \u202eyadirF\u202c in {PLAIN}"


class TestWhatNobodySees:
    """Tags spell out orders that only a model reads; overrides show a person another text than there is."""

    def test_it_is_shown_in_all_that_a_person_or_a_model_reads(self, bare: Program) -> None:
        bare.run("init")
        bare.run("remember", SMUGGLED, "--id", "note", "--tier", "long", "--tag", "t\u202e")
        asked = ("zebrafinch sings", "--min-score", "0")
        shown = [
            bare.run("get", "note").stdout,
            bare.run("list").stdout,
            bare.run("recall", *asked).stdout,
            bare.run("recall", *asked, "--fenced").stdout,
            bare.run("search", *asked).stdout,
            bare.run("context", "zebrafinch sings").stdout,
            bare.run("context").stdout,
            bare.run("csp", "TASK REQ:recall zebrafinch IN:MEM OUT:MEM_REFS").stdout,
            (bare.project / ".commonplace" / "MEMORY.md").read_text("utf-8"),
        ]
        with commonplace.open(bare.project / ".commonplace") as book:
            shown.append(book.context("zebrafinch sings").text)
        for text in shown:
            assert (re.findall(HIDDEN, text), flag("gbsct") in text, "می\u200cخواهم" in text) == ([], True, True), text

    def test_it_is_shown_over_mcp_within_the_budget_of_an_answer(self, bare: Program) -> None:
        """A page of invisible tags, written out, is as long as a book."""
        bare.run("init")
        bare.run("remember", SMUGGLED, "--id", "note")
        bare.run("remember", "A kingfisher " + tags("do it now ") * 900 + "dives", "--id", "flood")
        wire = Wire(bare.project)
        wire.greet()
        asked = (
            call("memory_search", query="zebrafinch sings", minScore=0),
            call("memory_get", path="memory:note"),
            call("memory_context", task="zebrafinch sings"),
            call("memory_search", query="kingfisher dives", minScore=0),
            call("memory_get", path="memory:flood"),
        )
        for number, request in enumerate(asked):
            answer = wire.ask(request)
            said = json.dumps(answer, ensure_ascii=False)
            assert (re.findall(HIDDEN, said), "isError" in answer["result"]) == ([], False)
            assert number > 2 or visible(SMUGGLED) in answer["result"]["content"][0]["text"]
            assert len(said) < 40_000
        assert wire.end() == []
        wire.close()

    def test_file_is_read_by_the_name_that_a_search_showed(self, bare: Program) -> None:
        """A model can only give back what it was shown."""
        text = "# Zebrafinch\n\nThe zebrafinch sings at dawn.\n"
        (bare.project / "docs" / "bird\u202efdp.md").write_text(text, "utf-8")
        bare.run("init")
        bare.run("index", "build")
        wire = Wire(bare.project)
        wire.greet()
        found = wire.ask(call("memory_search", query="zebrafinch sings at dawn"))["result"]["structuredContent"]
        path = found["results"][0]["path"]
        assert path == r"docs/bird\u202efdp.md"
        read = wire.ask(call("memory_get", path=path))["result"]
        assert "sings at dawn" in read["structuredContent"]["text"]
        wire.close()

    def test_it_is_kept_as_it_came_for_programs_and_on_pages_that_come_back(self, bare: Program) -> None:
        """Whoever asks what is stored gets that, and a page that nobody edited changes nothing."""
        bare.run("init")
        bare.run("remember", SMUGGLED, "--id", "note", "--tier", "long")
        printed = bare.run("get", "note", "--json").stdout
        assert re.findall(HIDDEN, printed) == []
        assert json.loads(printed)["content"] == SMUGGLED
        page = bare.project / ".commonplace" / "MEMORY.md"
        edit(page, "The zebrafinch", "A zebrafinch")
        edited = bare.json("get", "note")
        assert (edited["content"], edited["version"]) == (SMUGGLED.replace("The zebrafinch", "A zebrafinch"), 2)
        bare.run("sync")
        assert bare.json("get", "note")["version"] == 2
