"""A store on PostgreSQL: its words, its connections, and what it says where something is wrong."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest
from tests import postgres
from tests.contract.stores import file, memory, read_around_a_fork

from commonplace.errors import (
    StoreBusyError,
    StoreError,
    StoreMissingError,
    StoreUnreachableError,
    StoreVersionError,
    UsageError,
)
from commonplace.ranking.bm25 import TermRows
from commonplace.store import postgres as module
from commonplace.store import postings
from commonplace.store.postgres import Address, Session, native
from commonplace.store.schema import TABLES, VERSION, texts_of
from commonplace.store.store import Store
from commonplace.types import Embedding, Note


@pytest.fixture
def dsn() -> Iterator[str]:
    made = postgres.new_database()
    yield made
    postgres.drop(made)


def opened(dsn: str, timeout_s: float = 10.0) -> Store:
    return Store.open_postgres(dsn, create=False, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([0, -1, 2**63 - 1, -(2**63)], "bigint"),
        (["", "Größe 🦓", "a\nb", "NULL", '"{},\\'], "text"),
        ([b"", b"\0\xff", b"x" * 70_000], "bytea"),
        ([1.5, None, -0.25], "double precision"),
        (["one", None], "text"),
    ],
)
@pytest.mark.parametrize("times", [1, 40])
def test_a_list_is_stored_as_it_is_however_long(dsn: str, values: list[Any], type_: str, times: int) -> None:
    """Long ones are written by a way of their own."""
    with Address(dsn, "", 5.0).connect() as connection:
        found = Session(connection).execute(f"SELECT :given::{type_}[]", {"given": values * times})
        assert found.fetchall() == [(values * times,)]


@pytest.mark.parametrize(
    ("sql", "words", "names"),
    [
        ("FROM t INDEXED BY i WHERE b = :b OR c = :c OR d = :b", "FROM t WHERE b = $1 OR c = $2 OR d = $1", ("b", "c")),
        ("SELECT :b::text, ':' WHERE :none IS NULL", "SELECT $1::text, ':' WHERE NULL IS NULL", ("b",)),
        ("a IN (SELECT value FROM json_each(:b))", "a IN (SELECT jsonb_array_elements_text($1::jsonb))", ("b",)),
        ("ifnull(r.valid_to, '') > :b", "coalesce(r.valid_to, 'NaN') > $1", ("b",)),
        ("sum(length(CAST(p.text AS BLOB)))", "sum(octet_length(p.text))", ()),
    ],
)  # fmt: skip
def test_statements_are_turned_into_its_words(sql: str, words: str, names: tuple[str, ...]) -> None:
    assert native(sql, frozenset({"none"})) == (words, names)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://u:hunter2@h:5433/d", "postgresql://u@h:5433/d"),
        ("host=/var/run/pg port=5433 dbname=d password=hunter2", "postgresql:///d?host=/var/run/pg&port=5433"),
        ("postgresql://u@h1:1,h2:2/d?sslpassword=hunter2", "postgresql://u@/d?host=h1,h2&port=1,2"),
        ("postgresql://u%40v@[::1]:1/a%2Fb", "postgresql://u%40v@/a%2Fb?host=%3A%3A1&port=1"),
        (
            "postgresql://h?options=-c%20a%3Db+c&sslmode=require",
            "postgresql://h/?options=-c%20a%3Db%2Bc&sslmode=require",
        ),
    ],
)
def test_an_address_is_shown_as_one_that_leads_there(given: str, shown: str) -> None:
    """What a message names is pasted into a command."""
    address = module.Address(given, "hunter3", 1.0)
    assert str(address) == shown
    parts = psycopg.conninfo.conninfo_to_dict
    assert parts(shown) == {name: value for name, value in parts(given).items() if "password" not in name}
    assert shlex.split(f"init {address.option}") == ["init", "--store", shown]


class TestRefusing:
    def test_an_address_that_leads_nowhere(self) -> None:
        with pytest.raises(StoreUnreachableError, match=r"cannot be reached.*see that the server is running"):
            Store.open_postgres("postgresql://u@127.0.0.1:1/d", "hunter2", create=True, timeout_s=2)

    def test_an_address_that_is_none(self) -> None:
        with pytest.raises(UsageError, match="cannot be read; write postgresql://"):
            Store.open_postgres("postgresql://u@h/d?nonsense=hunter2", create=True)

    def test_a_database_that_is_not_there(self) -> None:
        with pytest.raises(StoreError, match=r"does not exist.*createdb"):
            opened(postgres.of_database("no_such_database"))

    def test_a_database_with_tables_of_another_program(self) -> None:
        dsn = postgres.new_database(is_empty=True)
        postgres.run(dsn, "CREATE TABLE owners (number int)")
        with pytest.raises(StoreError, match=r'relation "owners" already exists.*name an empty database'):
            Store.open_postgres(dsn, create=True)
        with pytest.raises(StoreMissingError):  # and nothing of ours was left there
            opened(dsn)
        postgres.drop(dsn)

    def test_a_schema_that_is_newer(self, dsn: str) -> None:
        store = opened(dsn)
        postgres.run(dsn, f"UPDATE schema_versions SET version = {VERSION + 1}")
        with pytest.raises(StoreVersionError, match=rf"version {VERSION + 1}.*upgrade Commonplace"):
            store.put_owners("n", [memory("a", "x")])
        store.close()
        with pytest.raises(StoreVersionError, match="upgrade Commonplace"):
            opened(dsn)

    @pytest.mark.parametrize(
        "earlier",
        [
            "UPDATE meta SET value = '1' WHERE key = 'recall'",
            "DROP TABLE passage_terms, passage_signs, segments, postings; DELETE FROM meta WHERE key = 'recall'",
        ],
    )
    def test_what_an_earlier_build_wrote_for_searches_is_made_anew(
        self, dsn: str, earlier: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("TAIL", "LARGE"):
            monkeypatch.setattr(postings, name, 3)
        store = opened(dsn)
        for number in range(9):
            store.put_owners("n", [memory(f"{number}", f"kite {number}", "harbour", "tide")])
        store.put_owners("m", [memory("0", "other")])
        read = "SELECT number, terms FROM passage_terms ORDER BY number", "SELECT number, signs FROM passage_signs"
        before = [sorted(postgres.run(dsn, sql)) for sql in read]
        assert len(before[0]) == len(before[1]) == 28
        postgres.run(dsn, earlier)
        for refused in (lambda: opened(dsn), lambda: store.put_owners("n", [memory("late", "x")])):
            with pytest.raises(StoreVersionError, match=r"analyses texts for searches differently.*`commonplace init"):
                refused()
        owner = str(postgres.of_database(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]))
        assert not module.make(module.Address(owner, "", 10.0))
        again = opened(dsn)
        assert [sorted(postgres.run(dsn, sql)) for sql in read] == before
        assert postgres.run(dsn, "SELECT count(*) FROM segments")[0][0] >= 8
        assert again.check() == []
        assert again.put_owners("n", [memory("late", "x")]) == 10
        assert store.put_owners("n", [memory("later", "x")]) == 11
        assert again.check() == []
        for each in (store, again):
            each.close()

    def test_what_a_newer_build_wrote_for_searches_stays(self, dsn: str) -> None:
        postgres.run(dsn, "UPDATE meta SET value = '99000' WHERE key = 'recall'")
        owner = str(postgres.of_database(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]))
        for refused in (lambda: opened(dsn), lambda: module.make(module.Address(owner, "", 10.0))):
            with pytest.raises(StoreVersionError, match="upgrade Commonplace"):
                refused()
        assert postgres.run(dsn, "SELECT value FROM meta WHERE key = 'recall'") == [("99000",)]

    def test_a_server_that_is_too_old(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_OLDEST_SERVER", 990_000)
        with pytest.raises(StoreVersionError, match="upgrade the server"):
            opened(dsn)

    def test_a_user_without_rights(self, dsn: str) -> None:
        """One who may read is given a store that is read-only; one who may not is told what to ask for."""
        role = f"reader_{dsn.split('commonplace_test_')[1].split(maxsplit=1)[0].strip(chr(39))}"
        postgres.run(dsn, f"CREATE ROLE {role} LOGIN")
        try:
            as_role = psycopg.conninfo.make_conninfo(dsn, user=role)
            with pytest.raises(StoreError, match=r"does not let this user do so.*grant"):
                opened(as_role)
            postgres.run(dsn, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
            store = opened(as_role)
            assert (store.is_read_only, store.counts()["owners"]) == (True, 0)
            with pytest.raises(StoreError, match=r"is read-only.*primary"):
                store.put_owners("n", [memory("a", "x")])
            store.close()
            postgres.run(dsn, f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
            postgres.run(dsn, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
            store = opened(as_role)
            assert store.put_owners("n", [memory("a", "x")]) == 1
            store.close()
        finally:
            postgres.run(dsn, f"DROP OWNED BY {role}; DROP ROLE {role}")

    def test_a_transaction_that_may_only_read(self, dsn: str) -> None:
        """As on a replica."""
        store = opened(f"{dsn} options='-c default_transaction_read_only=on'")
        assert store.is_read_only
        store.close()


class TestConnections:
    def test_connections_that_were_cut_are_made_anew(self, dsn: str) -> None:
        """A server that was restarted, or a pooler that ended idle connections, is no error."""
        store = opened(dsn)
        store.put_owners("n", [memory("a", "x")])
        for _ in range(2):
            cut(dsn)
            assert store.counts("n")["owners"] == 1
            cut(dsn)
            with store.snapshot():
                assert store.counts("n")["owners"] == 1
            cut(dsn)
            assert store.put_owners("n", [memory("a", "x")])
        store.close()

    def test_a_change_whose_connection_is_cut_leaves_nothing(self, dsn: str) -> None:
        store = opened(dsn)
        with pytest.raises(StoreError, match="cannot be reached"), store.change_memories("n") as change:
            change.graph.counts()
            cut(dsn)
            change.graph.counts()
        assert store.namespaces() == []
        store.close()

    def test_a_connection_that_is_cut_at_the_commit_is_an_open_question(self, dsn: str) -> None:
        """Whether the change is there only a look can tell, and the error says so."""
        store = opened(dsn)
        with pytest.raises(StoreError, match="it may be there or not"), store.change_memories("n"):
            cut(dsn)
        store.close()

    def test_a_statement_that_fails_unseen_leaves_nothing(self, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
        """Nobody waits for the answer to one that writes, but for that to the commit."""
        store = opened(dsn)
        with pytest.raises(StoreError, match="duplicate key"), store._connections.writing("n") as db:
            for key in ("new", "store_id", "newer"):
                db.execute("INSERT INTO meta VALUES (:key, 'x')", {"key": key})
        with pytest.raises(StoreError), store._connections.writing("n") as db:
            db.execute("INSERT INTO meta VALUES ('new', 'x')")
            with suppress(psycopg.Error):
                db.execute("SELECT 1 / 0").fetchall()
        assert not {"new", "newer"} & {key for (key,) in postgres.run(dsn, "SELECT key FROM meta")}
        assert store.put_owners("n", [memory("a", "x")]) == 1
        assert not caplog.records
        store.close()

    def test_more_threads_than_connections_wait_in_turn(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_CONNECTIONS", 2)
        store = opened(dsn, 60.0)
        threads = [
            threading.Thread(target=lambda n: store.put_owners(f"n{n % 3}", [memory(f"m{n}", "x")]), args=(n,))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.counts()["owners"] == 8
        assert store.check() == []
        store.close()

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_process_forked_inside_a_snapshot_leaves_it_to_its_parent(self, dsn: str) -> None:
        """It must neither read by what its parent reads by, nor end its transaction."""
        store = opened(dsn)
        store.put_owners("n", [memory("a", "x")])
        assert read_around_a_fork(store) == [(["n"], 1)] * 3
        store.close()

    def test_an_exhausted_pool_is_a_busy_store(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_CONNECTIONS", 1)
        store = opened(dsn, 0.0)
        with store.change_memories("n"), pytest.raises(StoreBusyError, match="were in use for 0 s"):
            store.namespaces()
        store.close()

    def test_writers_of_one_namespace_take_turns_and_others_do_not_wait(self, dsn: str) -> None:
        one, other = opened(dsn), opened(dsn, 0.05)
        with one.change_memories("n"):
            other.put_owners("m", [memory("a", "x")])
            with pytest.raises(StoreBusyError, match="stayed locked"):
                other.put_owners("n", [memory("a", "x")])
            with pytest.raises(StoreBusyError, match="stayed locked"):
                other.erase_namespace("n")
            assert other.erase_namespace("m", [Note("receipt", "r", 1.0, "{}")]) == 1
        assert [note.id for note in one.notes("", "receipt")] == ["r"]
        assert other.put_owners("n", [memory("a", "x")]) == 1
        one.close()
        other.close()


def cut(dsn: str) -> None:
    """End every other connection to a database."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
    postgres.run(dsn, f"SELECT pg_terminate_backend(pid, 600000) {others}")


def test_a_change_that_goes_on_after_a_failed_statement_is_undone_and_says_so(dsn: str) -> None:
    """The server passes over all that comes after it; whoever caught the error is not told that the server is gone."""
    store = opened(dsn)
    undone = pytest.raises(StoreError, match="undid this change, of which a statement failed before")
    with undone as told, store._connections.writing("n") as db:
        db.execute("INSERT INTO namespaces (name) VALUES ('n')")
        with pytest.raises(psycopg.Error, match="division by zero"):
            db.execute("SELECT 1 / 0").fetchall()
        db.execute("SELECT 1").fetchall()
    assert not isinstance(told.value, StoreUnreachableError)
    assert store.namespaces() == []


class TestVectorIndex:
    """The vectors of a large namespace are found by an index, where the owner let one be made."""

    def test_it_finds_the_nearest_of_what_is_there(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postings, "LEAST_INDEXED", 100)
        store, address = (
            opened(dsn),
            module.Address(postgres.of_database(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]), "", 10.0),
        )
        rng = np.random.default_rng(3)
        vectors = rng.integers(-127, 127, (160, 8)).astype(np.int8)

        def put(space: str, begin: int, end: int) -> None:
            written = [memory(f"{n}", f"text {n}") for n in range(begin, end)]
            passages = [replace(each.passages[0], vector=vectors[n].tobytes()) for n, each in enumerate(written, begin)]
            store.put_owners(space, [replace(w, passages=(p,)) for w, p in zip(written, passages, strict=True)])

        def nearest(n: int) -> list[bytes] | None:
            assert store.postings is not None
            with store.snapshot("large"):
                found = store.postings.indexed("large", vectors[n].astype(np.float32), 10)
            return None if found is None else [bytes(vector) for *_, vector in found]

        put("large", 0, 120)
        put("small", 0, 20)
        module.make(address)
        assert nearest(5) is None
        assert indexes(dsn) == []  # without pgvector nothing is made
        postgres.run(dsn, "CREATE EXTENSION vector")
        for _ in range(2):
            module.make(address)
            assert [name.partition("_")[0] for name in indexes(dsn)] == ["vectors"]
        put("large", 120, 160)
        cosines = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for n in (5, 140):
            expected = np.argsort(-(cosines @ cosines[n]), kind="stable")[:10]
            assert nearest(n) == [vectors[place].tobytes() for place in expected]
        postgres.run(dsn, f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{indexes(dsn)[0]}'::regclass")
        assert nearest(5) is None
        module.make(address)
        assert nearest(5) is not None
        store.close()


def indexes(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'vectors%'").fetchall()
    return [name for (name,) in found]


class TestFollowing:
    """What recall reads follows each change."""

    def test_what_a_write_reads_does_not_grow_with_other_namespaces(self, dsn: str) -> None:
        store = opened(dsn)
        for each in range(2):
            store.put_owners("other", [memory(f"{each}-{n}", "x") for n in range(1_200)])
            store.put_owners("mine", [memory(f"{n}", "x") for n in range(1_200)])
        postgres.run(dsn, "ANALYZE")
        [(space, last)] = store._connections.rows(
            """
            SELECT n.number, max(t.number) FROM namespaces n JOIN passage_terms t ON t.namespace = n.number
            WHERE n.name = :namespace GROUP BY n.number
            """,
            {"namespace": "other"},
        )
        values = {"namespace": "other", "spaces": [space], "space": space, "last": last, "limit": 16}
        [(plan,)] = store._connections.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {postings.SQL['fresh']}", values)
        assert rows_read(plan[0]["Plan"]) < 50
        # Of term counts it reads those that no segment holds, and so does a search.
        upto = f"(SELECT max(upto) FROM segments WHERE namespace = {space})"
        held = f"SELECT count(*) FROM passage_terms WHERE namespace = {space} AND number > {upto}"
        [(unpacked,)] = postgres.run(dsn, held)
        for sql in (postings.SQL["tails"], postings.SQL["all_of_terms"].rpartition("UNION ALL")[0]):
            [(plan,)] = store._connections.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values)
            assert rows_read(plan[0]["Plan"]) < 4 * unpacked + 100
        # A filter by few owners reads their passages alone.
        [(owner,)] = store._connections.rows("SELECT max(owner) FROM passage_signs WHERE namespace = :space", values)
        values = {"namespace": "other", "owners": [owner]}
        [(plan,)] = store._connections.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {postings.SQL['of_owners']}", values)
        assert rows_read(plan[0]["Plan"]) < 50
        store.close()

    def test_a_batch_of_any_size_is_packed_in_parts(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (("_FEW", 4), ("_AT_ONCE", 13), ("TAIL", 4), ("LARGE", 8)):
            monkeypatch.setattr(postings, name, value)
        store = opened(dsn)
        store.put_owners("n", [memory(f"{n}", "some words") for n in range(30)])
        packed, mine = "SELECT passages FROM segments ORDER BY start", {"namespace": "n"}
        assert store._connections.rows(packed, mine) == [(8,), (8,), (8,)]
        store.put_owners("n", [memory("last", "some words")])
        assert store._connections.rows(packed, mine) == [(8,), (8,), (8,), (7,)]
        assert store._connections.rows("SELECT max(length(units)) FROM postings", mine) == [(8 * 7,)]
        assert store.check() == []
        store.close()

    def test_writers_take_turns_whatever_isolation_the_server_gives(self, dsn: str) -> None:
        stores = [opened(f"{dsn} options='-c default_transaction_isolation=serializable'") for _ in range(3)]
        failed: list[StoreError] = []

        def write(number: int) -> None:
            for each in range(12):
                try:
                    stores[number].put_owners("n", [memory(f"{number}-{each}", "x")])
                except StoreError as error:
                    failed.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert stores[0].check() == []
        for store in stores:
            store.close()

    def test_many_rows_are_written_in_a_statement_for_each_table(self, dsn: str) -> None:
        store = opened(dsn)
        with store._connections.reading() as db:
            kind = type(db)
        ran: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            run = kind.execute
            patch.setattr(kind, "execute", lambda self, sql, values=None: ran.append(sql) or run(self, sql, values))
            store.put_owners("n", [file(f"{n}", f"{n}.py", "one", "two") for n in range(300)])
        assert len([sql for sql in ran if "INSERT INTO" in sql]) < 15
        assert len(ran) < 40
        assert store.counts("n")["passages"] == 600
        assert store.check() == []
        store.close()

    def test_postings_go_with_their_namespace(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postings, "TAIL", 3)
        store = opened(dsn)
        for name in ("n", "m"):
            for number in range(5):
                store.put_owners(name, [memory(f"{number}", "some words")])
        [(each,)] = postgres.run(dsn, "SELECT min(c) FROM (SELECT count(*) c FROM postings GROUP BY namespace) c")
        postgres.run(dsn, "TRUNCATE owners, counts CASCADE; DELETE FROM namespaces WHERE name = 'n'")
        assert each
        assert postgres.run(dsn, "SELECT count(*) FROM postings") == [(each,)]
        store.close()

    def test_signs_of_another_vector_are_told(self, dsn: str) -> None:
        store = opened(dsn)
        store.put_owners("n", [memory("a", "x")])
        assert store.check() == []
        postgres.run(dsn, "UPDATE passage_signs SET signs = ~signs")
        assert [problem for problem in store.check() if "signs of another vector" in problem]
        assert store.postings is not None
        store.postings.rebuild()
        assert store.check() == []
        store.close()

    def test_signs_of_an_embedder_that_was_given_up_go(self, dsn: str) -> None:
        store = opened(dsn)
        store.set_embedding(Embedding("old", "1", 4))
        store.put_owners("n", [memory("a", "x"), memory("b", "y")])
        new = Embedding("new", "1", 8)
        store.begin_reembedding(new)
        store.put_reembedded(new, [(1, b"\1\xff" * 4), (2, b"\1" * 8)])
        of_next = "SELECT next_signs::text FROM passage_signs ORDER BY number"
        assert postgres.run(dsn, of_next) == [("10101010",), ("11111111",)]
        store.drop_reembedding()
        assert postgres.run(dsn, of_next) == [(None,), (None,)]
        store.close()

    def test_postings_are_the_term_counts_whoever_writes_at_once(
        self, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (("TAIL", 3), ("MERGED", 3), ("LARGE", 12)):
            monkeypatch.setattr(postings, name, value)
        stores = [opened(dsn, 60.0) for _ in range(3)]
        failed: list[StoreError] = []

        def write(writer: int) -> None:
            try:
                for number in range(25):
                    stores[writer].put_owners("n", [memory(f"{writer}-{number}", f"kite harbour {number % 4}")])
                    if number % 4 == 3:
                        gone = stores[writer].owner_numbers("n", "memory", [f"{writer}-{number - 2}"])
                        stores[writer].delete_owners("n", list(gone.values()))
            except StoreError as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(each,)) for each in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        packed = postgres.run(
            dsn, "SELECT t.number, t.terms FROM passage_terms t JOIN segments s ON t.number BETWEEN s.start AND upto"
        )
        counted = [
            (number, code, mark)
            for number, terms in packed
            for code, mark in zip(*(each.tolist() for each in TermRows([terms]).units()[1:]), strict=True)
        ]
        posted = [
            (number, term & 0xFFFFFFFF, mark)
            for term, units in postgres.run(dsn, "SELECT term, units FROM postings")
            for number, _, mark in np.frombuffer(units, postings.POSTING).tolist()
        ]
        assert len(packed) > 30
        assert sorted(posted) == sorted(counted)
        assert stores[0].check() == []
        for store in stores:
            store.close()


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many rows the steps of a plan gave or left out."""
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return own + sum(map(rows_read, plan.get("Plans", ())))


class TestNamespaces:
    """The database itself holds a transaction to the namespace that it names."""

    @pytest.fixture
    def shared(self, dsn: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection of the application's role to a store with two namespaces."""
        store = opened(dsn)
        for name in ("a", "b"):
            fill(store, name)
        store.close()
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection

    def test_without_a_name_nothing_is_there(self, shared: psycopg.Connection[Any]) -> None:
        tables = guarded(shared)
        assert len(tables) > 25
        assert {name: count(shared, name) for name in tables} == dict.fromkeys(tables, 0)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            shared.execute("INSERT INTO namespaces (name) VALUES ('c')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            shared.execute("INSERT INTO counts VALUES (1, 'memory', 1, 1, 1)")
        assert shared.execute("UPDATE owners SET title = 'x'").rowcount == 0
        assert shared.execute("DELETE FROM memories").rowcount == 0

    def test_of_another_namespace_nothing_is_there(self, dsn: str, shared: psycopg.Connection[Any]) -> None:
        spaces = dict(postgres.run(dsn, "SELECT name, number FROM namespaces"))
        mine = {number for name, number in spaces.items() if name in ("a", texts_of("a", "entity"))}
        other = spaces["b"]
        with shared.transaction():
            shared.execute("SELECT commonplace_enter('=a')")
            seen = {name: spaces_in(shared, name) for name in guarded(shared)}
            assert spaces["a"] in set().union(*seen.values())
            assert set().union(*seen.values()) <= mine
            assert shared.execute("SELECT count(*) FROM namespaces WHERE name = 'b'").fetchall() == [(0,)]
            for name in guarded(shared):
                sql = f"UPDATE {name} SET namespace = namespace WHERE namespace = {other}"
                if name != "namespaces":
                    assert shared.execute(sql).rowcount == 0  # type: ignore[call-overload]
            for sql in (
                f"INSERT INTO counts VALUES ({other}, 'x', 1, 1, 1)",
                f"UPDATE owners SET namespace = {other}",
                "INSERT INTO namespaces (name) VALUES ('c')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), shared.transaction():
                    shared.execute(sql)  # type: ignore[call-overload]
        assert count(shared, "owners") == 0  # the name went with the transaction

    def test_the_owner_of_the_tables_is_held_to_it_too(self, dsn: str, shared: psycopg.Connection[Any]) -> None:
        assert count(shared, "owners") == 0
        role = f"{postgres.AGENTS}_owner"
        postgres.run(dsn, f"CREATE ROLE {role} LOGIN")
        try:
            for name in guarded(shared):
                postgres.run(dsn, f"ALTER TABLE {name} OWNER TO {role}")
            with psycopg.connect(psycopg.conninfo.make_conninfo(dsn, user=role), autocommit=True) as connection:
                assert {count(connection, name) for name in guarded(shared)} == {0}
        finally:
            postgres.run(dsn, f"REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}; DROP ROLE {role}")

    def test_every_table_with_a_namespace_is_guarded(self, dsn: str, shared: psycopg.Connection[Any]) -> None:
        """Also one that somebody adds."""
        named = {table.name for table in TABLES if table.has_namespace} | {*postings.TABLES, "namespaces"}
        assert named <= set(guarded(shared))

    @pytest.mark.usefixtures("dsn")
    def test_tables_of_other_programs_are_left_alone(self) -> None:
        """They may have a column of the same name, and the role that agents use is given nothing of theirs."""
        owner = postgres.new_database(is_empty=True)
        postgres.run(owner, "CREATE TABLE bills (namespace int); INSERT INTO bills VALUES (1)")
        module.make(module.Address(owner, "", 10.0), postgres.AGENTS)
        postgres.run(owner, "CREATE TABLE later (namespace int)")
        module.make(module.Address(owner, "", 10.0))
        with psycopg.connect(owner) as connection:
            assert count(connection, "bills") == 1
            assert not {"bills", "later"} & set(guarded(connection))
            may = "SELECT has_table_privilege(%s, %s, 'SELECT')"
            told = {
                name: connection.execute(may, [postgres.AGENTS, name]).fetchone()
                for name in ("bills", "later", "memories", "postings", "leases")
            }
        assert told == {name: (name not in ("bills", "later"),) for name in told}

    @pytest.mark.usefixtures("dsn")
    def test_what_a_later_version_adds_is_granted_to_who_had_the_rest(self) -> None:
        owner = postgres.new_database(is_empty=True)
        module.make(module.Address(owner, "", 10.0), postgres.AGENTS)
        postgres.run(owner, f"REVOKE ALL ON postings FROM {postgres.AGENTS}")
        module.make(module.Address(owner, "", 10.0))
        with psycopg.connect(owner) as connection:
            may = "SELECT has_table_privilege(%s, 'postings', 'INSERT')"
            assert connection.execute(may, [postgres.AGENTS]).fetchone() == (True,)

    @pytest.mark.usefixtures("dsn")
    def test_opening_an_empty_database_makes_its_tables_and_no_vector_index(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Many may open it at once, and two who make vector indexes at the same time collide."""
        made: list[object] = []
        monkeypatch.setattr(postings, "make_vector_indexes", made.append)
        owner = postgres.new_database(is_empty=True)
        Store.open_postgres(owner, create=True, timeout_s=10.0).close()
        assert made == []
        module.make(module.Address(owner, "", 10.0))
        assert len(made) == 1

    def test_names_with_quotes_are_names(self, dsn: str) -> None:
        store = opened(dsn)
        for name in ("it's", "a\\b", "=*", "*", "", "=", "ä\u2028"):
            store.put_owners(name, [memory("m", "x")])
            assert store.counts(name)["owners"] == 1
            with store.snapshot(name):
                assert store.owner_numbers(name, "memory", ["m"])
        assert store.counts()["owners"] == 7
        store.close()

    def test_a_snapshot_reads_one_namespace_after_the_other(self, dsn: str) -> None:
        store = opened(dsn)
        for name in ("a", "b"):
            fill(store, name)
        with store.snapshot():
            assert [store.counts(name)["owners"] for name in ("a", "b", "a")] == [1, 1, 1]
            assert store.graph("b").counts() == store.graph("a").counts()
            assert store.namespaces() == ["a", "b"]
            assert store.counts()["owners"] == 4
        with store.snapshot("a"):
            assert store.counts("b")["owners"] == 1
            assert store.counts("a")["owners"] == 1
            assert set(store.heads()) >= {"a", "b"}
        store.close()


def fill(store: Store, name: str) -> None:
    """Write to a namespace and to the texts of its graph."""
    store.put_owners(name, [memory("m", "x")])
    store.put_owners(texts_of(name, "entity"), [memory("e", "x")])


def guarded(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the tables whose rows are shown to their namespace alone."""
    found = connection.execute("SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
    return [name for (name,) in found]


def count(connection: psycopg.Connection[Any], table: str) -> int:
    [(found,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # type: ignore[call-overload]
    return int(found)


def spaces_in(connection: psycopg.Connection[Any], table: str) -> set[int]:
    """Return the numbers of the namespaces of which a table shows rows."""
    column = "number" if table == "namespaces" else "namespace"
    return {each for (each,) in connection.execute(f"SELECT DISTINCT {column} FROM {table}")}  # type: ignore[call-overload]
