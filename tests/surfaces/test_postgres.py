"""What a user sees of a store in PostgreSQL: the same answers as of one in a file, and no password anywhere."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from tests import postgres
from tests.surfaces.conftest import make
from tests.surfaces.test_golden import GOLDEN, SESSIONS, near, session_of

import commonplace
from commonplace.cli.app import cli
from commonplace.erasure.receipt import COPIES_ON_SERVER
from commonplace.errors import AdmissionError, StoreError, StoreMissingError, UsageError
from commonplace.settings import load
from commonplace.settings.paths import StoreAddress
from commonplace.store.owners import SQL
from commonplace.store.postgres import Session as StoreSession
from commonplace.store.store import Store
from commonplace.types import Document, Filter

OTHERWISE = {"stages", "store", "outside", "blocks", "files", "store_bytes", "index_bytes"}
"""Keys whose values tell where a store is, which files it has, and which part of it an index holds."""
OF_FILES = ("sync --json", "settings show", "book.retrievals()", "doctor --secrets", "recall anything")
"""Requests that are about files: pages, settings, logs, or a store that is not there."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty store, which the environment names."""
    dsn = postgres.new_database()
    monkeypatch.setenv("COMMONPLACE_STORE", postgres.url_of(dsn))
    yield postgres.url_of(dsn)
    postgres.drop(dsn)


def common(answer: Any) -> Any:
    """Return what an answer has whatever keeps the store."""
    if isinstance(answer, dict):
        return {name: common(each) for name, each in answer.items() if name not in OTHERWISE}
    if isinstance(answer, list):
        return [common(each) for each in answer if COPIES_ON_SERVER not in str(each) or isinstance(each, dict | list)]
    return answer


@pytest.mark.parametrize("name", SESSIONS)
def test_requests_are_answered_as_by_a_store_in_a_file(
    name: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same memory, wherever it is kept: hits, scores, order and words."""
    requests = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    with session_of(make(tmp_path / "file", monkeypatch)) as session:
        expected = [session.ask(each) for each in requests]
    program, opened = make(tmp_path / "server", monkeypatch), commonplace.open
    monkeypatch.setenv("COMMONPLACE_STORE", address)
    monkeypatch.setattr(commonplace, "open", lambda *_args, **_kwargs: opened(address))
    with session_of(program) as session:
        for request, one in zip(requests, expected, strict=True):
            answer = session.ask(request)
            if not any(each in (request.get("cli") or request.get("python") or "") for each in OF_FILES):
                assert common(near(answer, one, 1.5e-4)) == common(one), request  # 1e-4, and four digits are told


def test_a_memory_stored_by_one_process_is_found_by_another_at_once(address: str) -> None:
    with commonplace.open(address) as one, commonplace.open(address) as other:
        assert other.recall("where are invoices kept").hits == ()
        kept = one.remember("Billing keeps its invoices in Postgres.")
        assert [hit.owner_id for hit in other.recall("where are invoices kept").hits] == [kept.id]
        other.forget(kept.id)
        assert one.recall("where are invoices kept").hits == ()


def test_a_store_moves_to_a_file_and_back_without_loss(address: str, tmp_path: Path) -> None:
    """Whoever begins small moves on, and whoever leaves takes everything along."""
    with commonplace.open(address) as book:
        book.remember("Billing keeps its invoices in Postgres.", tags=["decision"], id="m")
        book.update("m", content="Billing keeps its invoices in SQLite.")
        book.graph.add_episode("auth.ts depends on token.ts")
        book.export(tmp_path / "first.jsonl")
        book.backup(tmp_path / "copy.tar")
    with commonplace.open(tmp_path / "store") as book:
        book.import_(tmp_path / "first.jsonl")
        book.export(tmp_path / "second.jsonl")
    commonplace.restore(tmp_path / "copy.tar", tmp_path / "restored")
    with commonplace.open(tmp_path / "restored") as book:
        book.export(tmp_path / "third.jsonl")
    lines = [(tmp_path / f"{name}.jsonl").read_text().splitlines()[1:] for name in ("first", "second", "third")]
    assert sorted(lines[0]) == sorted(lines[1]) == sorted(lines[2])


def test_a_password_is_in_no_text(address: str) -> None:
    """What is shown, logged or sent to a worker may be read by anybody."""
    secret = address.replace("@", ":hunter2@")
    settings = load({"store.path": secret})
    assert isinstance(settings.store.path, StoreAddress)
    assert (settings.store.path, settings.store.path.password) == (address, "hunter2")
    assert "hunter2" not in f"{settings!r} {settings.store.path}"
    assert pickle.loads(pickle.dumps(settings.store.path)).password == "hunter2"
    with commonplace.open(secret) as book:
        assert "hunter2" not in f"{book!r} {book.index_status()!r} {book.settings!r}"
    with pytest.raises(StoreError) as raised:
        commonplace.open(secret.replace("/commonplace_test", "/no_such_database"))
    assert "hunter2" not in f"{raised.value} {raised.value.__cause__!r}"
    shown = CliRunner().invoke(cli, ["settings", "show", "--store", secret])
    assert f"postgresql://{postgres.AGENTS}@" in shown.output
    assert "hunter2" not in shown.output


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("postgresql://u:p%40w@h:5433/d", "postgresql://u@h:5433/d"),
        ("postgres://h/d?password=p%40w&sslmode=require", "postgres://h/d?sslmode=require"),
        ("postgresql://u:p%40w@h1:1,h2:2/d", "postgresql://u@h1:1,h2:2/d"),
        ("postgresql:///d?password=p%40w&host=/tmp", "postgresql:///d?host=%2Ftmp"),
        ("postgresql://h/d?options=-c%20a%3Db+c&password=p%40w", "postgresql://h/d?options=-c%20a%3Db%2Bc"),
    ],
)
def test_a_password_is_taken_out_of_an_address(given: str, named: str) -> None:
    address = StoreAddress(given)
    assert (address, address.password) == (named, "p@w")


def test_what_needs_a_directory_says_so(address: str, tmp_path: Path) -> None:
    with commonplace.open(address) as book:
        with pytest.raises(StoreError, match="no directory for Markdown pages"):
            book.sync()
        book.backup(tmp_path / "copy.tar")
    with pytest.raises(StoreError, match="cannot be restored to postgresql://"):
        commonplace.restore(tmp_path / "copy.tar", address)


def test_a_database_without_a_store_is_missing_until_one_is_made() -> None:
    """A question to the wrong database must not make tables there."""
    dsn = postgres.new_database(is_empty=True)
    url = postgres.url_of(dsn)
    with pytest.raises(StoreMissingError, match="no store at postgresql://"):
        commonplace.open(url, create=False)
    missing = CliRunner().invoke(cli, ["remember", "a text", "--store", url])
    assert (missing.exit_code, "there is no store at postgresql://" in missing.output) == (1, True)
    made = CliRunner().invoke(cli, ["init", "--store", url])
    assert (made.exit_code, made.output.splitlines()[0]) == (0, f"Created {url}")
    again = CliRunner().invoke(cli, ["init", "--store", url])
    assert (again.exit_code, "There is already a store" in again.output) == (0, True)
    assert CliRunner().invoke(cli, ["remember", "a text", "--store", url]).exit_code == 0
    postgres.drop(dsn)


def test_the_owner_makes_a_store_and_a_role_without_rights_on_tables_uses_it() -> None:
    """What agents can do to a database is to read and write memories."""
    dsn, role = postgres.new_database(is_empty=True), f"{postgres.AGENTS}_few"
    url = postgres.url_of(dsn)
    as_role = re.sub("//.*@", f"//{role}@", url)
    refused = CliRunner().invoke(cli, ["init", "--store", url, "--grant-to", role])
    assert (refused.exit_code, f'role "{role}" does not exist; make the role' in refused.output) == (1, True)
    postgres.run(dsn, f"CREATE ROLE {role} LOGIN")
    try:
        missing = CliRunner().invoke(cli, ["remember", "a text", "--store", as_role])
        assert (missing.exit_code, "there is no store at" in missing.output) == (1, True)
        mine = CliRunner().invoke(cli, ["init", "--store", as_role])
        assert (mine.exit_code, f"{role} may not make one; let the owner" in mine.output) == (1, True)
        made = CliRunner().invoke(cli, ["init", "--store", url, "--grant-to", role])
        assert (made.exit_code, made.output.splitlines()[0]) == (0, f"Created {url}")
        with commonplace.open(as_role) as book, commonplace.open(as_role, namespace="other") as other:
            kept = book.remember("Billing keeps its invoices in Postgres.")
            other.remember("Auth uses tokens")
            assert [hit.owner_id for hit in book.recall("where are invoices kept").hits] == [kept.id]
            receipt = book.forget(kept.id)
            assert receipt.verified
            assert any("a `VACUUM` by the tables' owner" in each for each in receipt.outside)
            assert sorted(book.namespaces()) == ["default", "other"]
        for statement in ("DROP TABLE postings", "TRUNCATE owners", "UPDATE schema_versions SET version = 1"):
            with psycopg.connect(dsn, user=role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    finally:
        postgres.drop(dsn)
        postgres.run(postgres.server(), f"DROP ROLE {role}")


def test_only_the_owner_takes_back_what_deleted_rows_held(address: str) -> None:
    """So a receipt must not say that it was done."""
    counted = "SELECT reltuples FROM pg_class WHERE oid = 'segments'::regclass"  # -1 until the first `VACUUM`
    owner = address.replace(postgres.AGENTS, "postgres")
    for role, is_done in ((address, False), (owner, True)):
        store = Store.open_postgres(role, create=False)
        assert store.compact(thorough=True)
        store.close()
        assert (postgres.run(address, counted) != [(-1,)]) is is_done


@pytest.mark.parametrize("option", [("--grant-to", "agents"), ("--partitions", "4")])
def test_init_refuses_what_is_for_a_server_where_a_store_is_in_a_file(tmp_path: Path, option: tuple[str, str]) -> None:
    refused = CliRunner().invoke(cli, ["init", "--store", str(tmp_path / "store"), *option])
    assert (refused.exit_code, f"{option[0]} is for a store in PostgreSQL" in refused.output) == (2, True)
    assert not (tmp_path / "store").exists()


def test_init_cuts_tables_into_partitions_by_namespace() -> None:
    """And says so where a store is there that has others: they cannot be cut anew."""
    dsn = postgres.new_database(is_empty=True)
    url = postgres.url_of(dsn)
    assert CliRunner().invoke(cli, ["init", "--store", url, "--partitions", "5"]).exit_code == 0
    counted = "SELECT count(*) FROM pg_inherits WHERE inhparent = '{}'::regclass"
    for table in ("passages", "relations", "postings"):
        assert postgres.run(dsn, counted.format(table)) == [(5,)]
    assert postgres.run(dsn, counted.format("meta")) == [(0,)]
    assert CliRunner().invoke(cli, ["init", "--store", url]).exit_code == 0
    refused = CliRunner().invoke(cli, ["init", "--store", url, "--partitions", "4"])
    assert (refused.exit_code, "have 5 partitions, not 4" in refused.output) == (2, True)
    with commonplace.open(url, embedder="hashing") as book:
        kept = book.remember("Billing keeps its invoices in Postgres.")
        assert [hit.owner_id for hit in book.recall("where are invoices kept").hits] == [kept.id]
    postgres.drop(dsn)


def test_a_session_that_names_all_namespaces_reads_them(address: str) -> None:
    """As the manual has it for `pg_dump` by an owner who is no superuser."""
    with commonplace.open(address) as book:
        for name in ("one", "two"):
            book.in_namespace(name).remember("Zebras graze in Vienna.")
    count = "SELECT count(DISTINCT namespace) FROM memories"
    for options, found in (("", 0), ("-c commonplace.scope=* -c commonplace.spaces=*", 2)):
        with psycopg.connect(address, options=options) as connection:
            assert connection.execute(count).fetchall() == [(found,)]


def test_doctor_makes_anew_what_searches_lack(address: str) -> None:
    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, [*words, "--store", address])
        return result.exit_code, result.output

    assert run("remember", "Billing keeps its invoices in Postgres.")[0] == 0
    postgres.run(address, "DELETE FROM passage_terms")
    assert "passages that recall lacks: 2. (not repaired: run `commonplace doctor`" in run("doctor", "--no-mend")[1]
    code, output = run("doctor")
    assert (code, "passages that recall lacks: 2. (repaired)" in output) == (0, True)
    assert "store: ok" in run("doctor")[1]
    assert "invoices" in run("recall", "invoices")[1]


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        commonplace.open("postgresql://h:99999999999/d?nonsense=1")


def test_forget_reads_the_words_of_no_other_namespace(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, execute = set(), StoreSession.execute

    def noted(session: Any, sql: str, values: Any = None, /) -> Any:
        if "passage_terms" in sql and "namespace" in (values or {}):
            read.add(values["namespace"])
        return execute(session, sql, values)

    with commonplace.open(address) as book:
        for name in ("tenant1", "tenant2"):
            book.in_namespace(name).remember("Zebras graze in Vienna.")
        gone = book.remember("Zebras graze quixotically in Vienna.")
        monkeypatch.setattr(StoreSession, "execute", noted)
        assert book.forget(gone.id).verified
    assert "default" in read
    assert not [name for name in read if "tenant" in name]


def test_a_search_asks_for_the_state_once_and_counts_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, execute = [], StoreSession.execute

    def noted(session: Any, sql: str, values: Any = None, /) -> Any:
        said.append(sql)
        return execute(session, sql, values)

    with commonplace.open(address) as book:
        book.remember("Zebras graze in Vienna.")
        monkeypatch.setattr(StoreSession, "execute", noted)
        assert book.search("zebras").hits
    assert said.count(SQL["state_upto_date"]) == 1
    assert not [sql for sql in said if "count(*)" in sql]


@pytest.mark.parametrize("is_on_server", [False, True])
def test_a_copy_of_an_artifact_is_known_without_a_look_at_all_of_them(
    is_on_server: bool, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be very many, and each `remember` asks; a search of kinds alone asks nobody which owners pass."""
    text = "The quick brown zebra jumps over nine lazy dogs in old Vienna."
    with commonplace.open(address if is_on_server else tmp_path / "store", embedder="static") as book:
        book.index_documents([Document(f"d{number}", f"Note {number} on herons.") for number in range(30)])
        book.index_documents([Document("copied", text)])
        book.remember("Herons nest beside the river Vltava.")
        asked: list[Filter] = []
        matching = Store.matching_owners

        def of_memories(store: Store, namespace: str, wanted: Filter) -> list[int]:
            asked.append(wanted)
            return matching(store, namespace, wanted)

        monkeypatch.setattr(Store, "matching_owners", of_memories)
        with pytest.raises(AdmissionError, match="copied"):
            book.remember(text)
        assert book.remember("Nine lazy zebras sleep, each dog of Vienna jumps over one of them.")
        # What a memory overtakes is looked for among the memories alone.
        assert {wanted.kinds for wanted in asked} <= {("memory",)}
        if is_on_server:
            monkeypatch.setattr(Store, "matching_owners", None)
            for kind in ("artifact", "memory"):
                assert {hit.kind for hit in book.search("herons", kinds=[kind], min_score=0).hits} == {kind}
