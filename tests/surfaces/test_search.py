"""What a person expects to find in a project, through the engine, with the default embedder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import EmbedderMismatchError, NotFoundError, StoreError, UsageError
from commonplace.search.result import label
from commonplace.types import Document

LICENCE = "# Licence\n\nWho has a copy of this software may deal in the software without restriction.\n"
FILES = {
    "src/auth/login-service.ts": """export class loginService {
  constructor(private readonly users: UserStore, private readonly hasher: PasswordHasher) {}

  async authenticate(name: string, password: string): Promise<User> {
    const user = await this.users.byName(name);
    if (!user || !(await this.hasher.matches(password, user.hash))) throw new Error("wrong name or password");
    return user;
  }
}
""",
    "src/net/retry.py": '''"""Repeat a request."""


def fetch(url, attempts):
    """Fetch a page; a peer that hangs up raises ConnectionResetError and is asked again."""
    for attempt in range(attempts):
        try:
            return download(url)
        except ConnectionResetError:
            wait(2**attempt)
    raise TimeoutError(url)
''',
    "docs/billing.md": """---
type: requirement
phase: elaboration
tags: [billing, money]
---
# Billing

Invoices are written on the first day of a month and sent by mail.

## Refunds

A customer who cancels within fourteen days gets the whole price back.
""",
    "docs/travel.md": "# 旅行\n\n京都の紅葉は十一月が一番きれいです。\n\n新幹線の切符は駅で買えます。\n",
    "tests/test_billing.py": "def test_refund_is_whole_within_fourteen_days():\n    assert refund(day=13) == price()\n",
    "docs/日志.md": "# 日志\n\n每天晚上把日志存到磁盘，三次失败以后通知值班的人。\n",
    "docs/garden.md": "# Garden\n\nTomatoes want sun, water in the morning and a stake to climb.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def book(project: Path) -> Iterator[Engine]:
    with commonplace.open(project / ".commonplace") as engine:
        engine.index(project)
        yield engine


def test_a_reference_names_a_section_as_github_links_to_it(book: Engine, project: Path) -> None:
    """It is pasted where references are separated by commas, and followed; `#fixed` of a changelog leads elsewhere."""
    long = " ".join(f"The kiln number {number} is fired at night." for number in range(120))
    pages = {
        "docs/kiln.md": f"# Kilns\n\n## Firing, cooling & glaze\n\n{long}\n",
        "docs/log.md": "".join(
            f"## {version}\n\n### Fixed\n\nThe turnstile {part} jammed whenever somebody pushed it backwards; it "
            "turns freely again now, however hard it is pushed, and whoever had to climb over it need not any more.\n\n"
            for version, part in (("2.0", "spindle"), ("1.0", "bolt"))
        ),
    }
    for name, text in pages.items():
        (project / name).write_text(text, encoding="utf-8")
    book.index(project)
    told = book.search("kiln number 7 fired at night", 3, per_owner=3).to_dict()
    assert set(told["references"]) == {"@docs/kiln.md#firing-cooling--glaze"}
    told = book.search("turnstile spindle jammed", 1).to_dict()
    assert told["references"] == ["@docs/log.md:1-5"]


def test_copies_of_one_text_take_one_place_and_are_named(book: Engine, project: Path) -> None:
    """Four of ten results that say the same are three that were not wanted; who edits one must know of the others."""
    text = "# Lighthouse\n\nThe lamp of the lighthouse turns once in ten seconds and is wound up by hand.\n"
    for place in ("docs", "docs/v1", "docs/v2", "site/docs"):
        (project / place).mkdir(parents=True, exist_ok=True)
        (project / place / "lamp.md").write_text(text, encoding="utf-8")
    for number in range(3):
        other = f"# Lighthouse {number}\n\nKeeper {number} winds up the lamp of the lighthouse by hand.\n"
        (project / "docs" / f"keeper{number}.md").write_text(other, encoding="utf-8")
    book.index(project)
    for limit in (1, 4):
        hits = book.search("who winds up the lamp of the lighthouse", limit, min_score=0.0).hits
        assert len({hit.text for hit in hits}) == len(hits) == limit
    (copied,) = [hit for hit in hits if hit.copies]
    names = {"docs/lamp.md", "docs/v1/lamp.md", "docs/v2/lamp.md", "site/docs/lamp.md"}
    assert {copied.path, *(name.partition("#")[0] for name in copied.copies)} == names
    result = book.search("who winds up the lamp of the lighthouse", 10, min_score=0.0)
    rejected = {each.rejected for each in result.trace.candidates}
    assert "same text as a better hit" in rejected
    assert [hit["copies"] for hit in result.to_dict()["hits"]] == [hit.copies for hit in result.hits]
    assert result.held_back == 0


def test_of_many_copies_the_first_are_named_where_room_is_short(book: Engine, project: Path) -> None:
    """A licence lies in every package: their paths would fill a context that is to hold what the task needs."""
    for number in range(60):
        (project / f"packages/part{number}").mkdir(parents=True)
        (project / f"packages/part{number}/LICENCE.md").write_text(LICENCE, encoding="utf-8")
    book.index(project)
    (hit,) = book.search("who may deal in the software without restriction", min_score=0.0, paths=["packages/**"]).hits
    assert len(hit.copies) == 59
    told = f"the same in {', '.join(hit.copies[:5])}, 54 more"
    assert label(hit).endswith(told)
    made = book.context("who may deal in the software without restriction", kinds=["artifact"]).text
    assert told in made


def test_documents_of_ones_own_and_memories_are_no_copies_of_each_other(book: Engine) -> None:
    """Each was given under an id that its owner counts on."""
    book.index_documents([Document(id=id_, text="The ferry leaves at noon.") for id_ in ("a", "b")])
    book.remember_many([{"content": "The ferry leaves at noon.", "id": id_} for id_ in ("c", "d")], force=True)
    assert {hit.owner_id for hit in book.search("when does the ferry leave").hits} == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("login service", "src/auth/login-service.ts"),
        ("connection reset", "src/net/retry.py"),
        ("紅葉", "docs/travel.md"),
        ("新幹線", "docs/travel.md"),
        ("money back after cancelling", "docs/billing.md"),
        ("how is a password checked", "src/auth/login-service.ts"),
    ],
)
def test_the_right_passage_comes_first(book: Engine, query: str, path: str) -> None:
    """Split identifiers, scripts without spaces and paraphrases are how people ask."""
    result = book.search(query)
    assert [hit.path for hit in result.hits][:1] == [path]
    assert result.degraded is False
    assert result.notices == ()


@pytest.mark.parametrize(
    "query",
    [
        "thermodynamic entropy of black holes",
        "chocolate cake recipe with hazelnuts",
        "zxqv wplk jjrt",
        "量子力学の講義",
        "!!! ??? ...",
        "今天天气怎么样",
        "우주 비행사의 점심",
    ],
)
def test_a_query_about_nothing_in_the_index_finds_nothing_or_what_is_weak_alone(book: Engine, query: str) -> None:
    """An agent must be told that it has no memory of something, instead of the least bad passage."""
    assert all(hit.confidence == "weak" for hit in book.search(query).hits)
    assert book.context(query, weak=0).text == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们把数据库的索引重建了一遍，模型也重新训练了。", ["数据库", "索引", "重建", "模型"]),
        ("오늘 회의에서 예산을 두 배로 늘리기로 했다.", ["회의에서", "예산을"]),
        ("公園を散歩していると、古い時計台が見えた。", ["散歩", "時計台"]),
        (
            "缓存过期时间是三十分钟。管理员可以在备份之后回滚数据库。",
            ["缓存过期时间", "管理员", "备份", "回滚", "数据库"],
        ),
        ("暗証番号を三回間違えると口座は凍結されます。", ["暗証番号", "凍結"]),
        ("Мы перенесли базу данных на новый сервер.", ["базу данных", "сервер"]),
    ],
)
def test_a_word_of_any_script_finds_the_sentence_it_stands_in(book: Engine, text: str, words: list[str]) -> None:
    """The token model was taught English; words it does not know count as words all the same."""
    book.index_documents([Document("wanted", text, kind="knowledge")])
    for word in words:
        assert [hit.owner_id for hit in book.search(word).hits][:1] == ["wanted"], word


def test_the_cut_can_be_moved_and_zero_keeps_all_that_was_ranked(book: Engine) -> None:
    """Whoever judges rankings needs the whole of them."""
    everything = book.search("chocolate cake recipe", min_score=0.0).hits
    assert everything
    assert all(0.0 <= hit.score <= 1.0 for hit in everything)
    assert book.search("chocolate cake recipe", min_score=1.0).hits == ()


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_every_method_ranks_by_score_and_keeps_one_passage_of_each_owner(book: Engine, method: str) -> None:
    """Results have a total order, and ten hits are ten artifacts."""
    hits = book.search("refund within fourteen days", method=method, min_score=0.0).hits  # type: ignore[arg-type]
    assert hits[0].path in ("docs/billing.md", "tests/test_billing.py")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.owner_id for hit in hits}) == len(hits)


def test_a_filter_lets_only_what_it_names_pass(book: Engine) -> None:
    """Types, tags, paths and kinds, each for itself."""

    def paths(**filters: list[str]) -> list[str]:
        found = book.search("refund within fourteen days", limit=1, min_score=0.0, **filters)  # type: ignore[arg-type]
        return [hit.path for hit in found.hits]

    assert paths(types=["test"]) == ["tests/test_billing.py"]
    assert paths(types=["requirement"]) == ["docs/billing.md"]
    assert paths(tags=["money"]) == ["docs/billing.md"]
    assert paths(paths=["src/**/*.py"]) == ["src/net/retry.py"]
    assert paths(kinds=["memory"]) == []


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_filters_apply_before_the_limit(tmp_path: Path, method: str) -> None:
    """What a filter asks for is found even when more passages than the first stage takes rank above it."""
    with commonplace.open(tmp_path / "store") as book:
        loud = [Document(f"loud{n}", f"Refund, refund, refund! Case {n}.", tags=("complaint",)) for n in range(250)]
        quiet = Document("quiet", "Rules of the house, of which one is about a refund in rare cases.", tags=("rule",))
        book.index_documents([*loud, quiet])
        everything = book.search("refund", limit=100, method=method, min_score=0.0)  # type: ignore[arg-type]
        assert "quiet" not in {hit.owner_id for hit in everything.hits}
        filtered = book.search("refund", limit=1, method=method, tags=["rule"], min_score=0.0)  # type: ignore[arg-type]
        assert [hit.owner_id for hit in filtered.hits] == ["quiet"]


def test_a_phase_filter_keeps_what_has_no_phase(book: Engine) -> None:
    """Most files name no phase; a filter that hid them would hide the project."""
    found = {hit.path for hit in book.search("refund", phases=["construction"], min_score=0.0).hits}
    assert "docs/billing.md" not in found
    assert "tests/test_billing.py" in found


def test_changed_new_and_removed_files_are_followed(book: Engine, project: Path) -> None:
    """The index speaks of the files as they are."""
    (project / "docs/garden.md").unlink()
    (project / "docs/bees.md").write_text("# Bees\n\nThe hive stands behind the quince tree.\n")
    (project / "docs/billing.md").write_text("# Billing\n\nSubscriptions renew every spring equinox.\n")
    report = book.index(project)
    assert (report.added, report.changed, report.removed) == (1, 1, 1)
    assert book.search("where does the hive stand").hits[0].path == "docs/bees.md"
    assert "docs/garden.md" not in {hit.path for hit in book.search("tomatoes", min_score=0.0).hits}
    assert book.search("when do subscriptions renew").hits[0].path == "docs/billing.md"
    assert book.index(project).unchanged == len(FILES)


def test_a_run_that_chooses_nothing_says_what_it_removed(book: Engine, project: Path) -> None:
    """A slip in a glob empties the index, which must not go unnoticed."""
    report = book.index(project, include=["nothing/**"])
    assert report.removed == len(FILES)
    assert report.notices == (f"no file of {project} was chosen, and the {len(FILES)} that were indexed are gone",)


def test_namespaces_do_not_see_each_other(book: Engine, project: Path) -> None:
    """Whoever shares a store shares nothing else."""
    with commonplace.open(project / ".commonplace", namespace="other") as other:
        assert other.search("login service", min_score=0.0).hits == ()
        other.index_documents([Document("note", "The login service of the other tenant.")])
        assert {hit.owner_id for hit in other.search("login service", min_score=0.0).hits} == {"note"}
    assert "note" not in {hit.owner_id for hit in book.search("login service", min_score=0.0).hits}


def test_turns_of_a_conversation_lend_each_other_score(tmp_path: Path) -> None:
    """The answer to a question often shares no word with what is asked for later."""
    turns = ["Anna: Where did you put the ladder?", "Ben: Behind the shed, under the tarp.", "Anna: Thank you!"]
    noise = [f"Ben: The weather on day {day} was grey and wet." for day in range(30)]
    with commonplace.open(tmp_path / "talk") as book:
        said = [
            *({"id": f"n{i}", "content": text, "session": "b"} for i, text in enumerate(noise)),
            *({"id": f"t{i}", "content": text, "session": "a"} for i, text in enumerate(turns)),
        ]
        book.remember_many(said)
        found = [hit.owner_id for hit in book.search("ladder", min_score=0.0).hits]
        assert found[:2] == ["t0", "t1"]
        assert "neighbours" in book.search("ladder", min_score=0.0).hits[1].signals


def test_a_hit_can_be_explained(book: Engine) -> None:
    """Results that nobody can explain are not trusted."""
    result = book.search("refund within fourteen days", min_score=0.0)
    receipt = book.why(result, result.hits[0].id)
    assert receipt.rank == 1
    assert receipt.score == result.hits[0].score
    assert {"lexical", "dense", "late"} <= {share.name for share in receipt.signals}
    assert "fourteen" in receipt.matched_terms
    with pytest.raises(NotFoundError, match="no hit 'nothing'"):
        book.why(result, "nothing")


def test_a_receipt_tells_words_as_they_were_asked_and_not_as_the_index_has_them(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store") as book:
        book.remember("The databases of the café in 東京 are used by login services")
        result = book.search(
            "Which Databases does loginService use at the Café in 東京駅, or two-stage?", min_score=0.0
        )
        receipt = book.why(result, result.hits[0].id)
    assert receipt.matched_terms == ("Databases", "login", "Service", "use", "Café", "東京")
    assert receipt.missing_terms == ("loginService", "two-stage", "two", "stage", "京駅")


def test_a_receipt_names_what_was_rejected_and_why(tmp_path: Path) -> None:
    """The second best is often what one was looking for."""
    manual = "\n\n".join(f"# Part {n}\n\n" + f"The valve of pump {n} opens to the left. " * 12 for n in range(2))
    with commonplace.open(tmp_path / "store") as book:
        book.index_documents(
            [
                Document("manual", manual),
                Document("memo", "A valve opens slowly when it is cold."),
                Document("menu", "Soup, bread and cheese."),
            ]
        )
        result = book.search("how does the valve of a pump open", limit=1, min_score=0.3)
        receipt = book.why(result, result.hits[0].id)
        assert [hit.owner_id for hit in result.hits] == ["manual"]
        assert [(item.reference, item.reason) for item in receipt.rejected] == [
            ("manual", "same owner as a better hit"),
            ("memo", "beyond the limit"),
            ("menu", "below the minimum score"),
        ]


def test_the_same_store_gives_the_same_answer_every_time(book: Engine, project: Path) -> None:
    """The order of results is total, and ids do not depend on when a file was indexed."""
    first = book.search("price", min_score=0.0).to_dict()
    with commonplace.open(project / ".commonplace") as again:
        second = again.search("price", min_score=0.0).to_dict()
    for answer in (first, second):
        del answer["latency_ms"], answer["stages"]
    assert first == second


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("  ", {}, "the query is empty"),
        ("x", {"limit": 0}, "limit is 0; give it a whole number from 1 to 1000"),
        ("x", {"limit": 1001}, "limit is 1001; give it a whole number from 1 to 1000"),
        ("x", {"min_score": 1.5}, "min_score is 1.5; give it a number from 0 to 1"),
        ("x", {"method": "magic"}, "method 'magic' is unknown; use one of bm25, semantic, two-stage"),
        ("x", {"types": ["poem"]}, "type 'poem' is unknown"),
        ("x", {"stage1_limit": 0}, "stage1_limit is 0"),
        ("x" * 100_001, {}, "the query has 100001 characters, the limit is 100000"),
    ],
)
def test_a_wrong_request_names_the_value_and_the_limit(
    book: Engine, query: str, options: dict[str, object], message: str
) -> None:
    """An error must say what to change."""
    with pytest.raises(UsageError, match=message):
        book.search(query, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["\ud800", "a\x00b", "(x OR", 'foo: "bar', "🦊" * 50, "אבג دهو", "word " * 15_000])
def test_no_text_is_a_bad_query(book: Engine, query: str) -> None:
    """Queries come from people and models; none of them knows a query language."""
    assert len(book.search(query, min_score=0.0).hits) <= 10


def test_a_store_built_with_another_embedder_is_not_mixed_up(project: Path, book: Engine) -> None:
    """Vectors of two embedders must never be compared."""
    assert book.index_status().embedder.startswith("minilm@")
    with pytest.raises(EmbedderMismatchError, match="built with embedder minilm"):
        commonplace.open(project / ".commonplace", embedder="hashing")
    with commonplace.open(project / "hashed", embedder="hashing") as hashed:
        hashed.index(project)
        assert hashed.search("login service", min_score=0.0).hits
    with commonplace.open(project / "hashed") as reopened:
        assert reopened.search("login service", min_score=0.0).hits


def test_a_store_of_any_name_never_indexes_itself_and_leads_to_files_from_anywhere(project: Path) -> None:
    """Its own logs and journal are no text of the project, and outside a project nothing is there to be relative to."""
    with commonplace.open(project / "notebook") as book:
        (book.directory / "memory").mkdir()
        (book.directory / "memory" / "today.md").write_text("# Today\n\nInvoices are written on the first day.\n")
        assert book.index(project, ["**"]).added == len(FILES)
        (hit, *_) = book.search("invoices written", min_score=0).hits
    assert hit.path == (project / "docs/billing.md").resolve().as_posix()


def test_a_store_cannot_be_a_file_and_a_root_must_exist(project: Path, book: Engine) -> None:
    """Both are slips of the hand, and both must leave everything as it was."""
    with pytest.raises(StoreError, match="is a file"):
        commonplace.open(project / "docs/garden.md")
    with pytest.raises(NotFoundError):
        book.index(project / "nowhere")


def test_an_index_that_was_lost_is_rebuilt_and_said_so_in_one_line(project: Path, book: Engine) -> None:
    """Everything in the index can be made again; a person only needs to know that it was."""
    book.close()
    for damage in (
        shutil.rmtree,
        lambda index: [path.write_bytes(b"\x00\xff" * 400) for path in index.rglob("*") if path.is_file()],
        lambda index: [
            path.write_bytes(path.read_bytes()[:10])
            for path in index.rglob("*")
            if path.name != "lock" and path.is_file()
        ],
        lambda index: (index / "current.json").write_text('{"schema": 999}'),
    ):
        damage(project / ".commonplace" / "index")
        with commonplace.open(project / ".commonplace") as again:
            result = again.search("login service")
            assert result.hits[0].path == "src/auth/login-service.ts"
            assert len(result.notices) == 1
            assert "it was rebuilt from the store" in result.notices[0]
            assert again.search("connection reset").notices == ()
            assert again.doctor(mend=False).is_healthy
