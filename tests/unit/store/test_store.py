"""What only the SQLite store can get wrong: files, versions, processes, threads that end, forks, damage."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.memories import add, written
from tests.contract.stores import read_around_a_fork

from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError, StoreMissingError, StoreVersionError
from commonplace.store.database import connect, driver_errors, lock_path, prepare_writer
from commonplace.store.schema import VERSION
from commonplace.store.store import Store
from commonplace.types import Chunk, NewPassage, Owner, OwnerWrite

WRITER = """
import sys
from pathlib import Path
from commonplace.store.store import Store
from commonplace.types import Chunk, NewPassage, Owner, OwnerWrite
store = Store.create(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    passage = NewPassage("p", Chunk("text", 1, 1), b"", b"")
    change = store.put_owners("n", [OwnerWrite(Owner(f"{sys.argv[2]}-{number}", "memory"), (passage,))])
    print(change, flush=True)
store.close()
"""


def memory(id_: str, *texts: str) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "memory"), tuple(NewPassage("p", Chunk(text, 1, 1), b"", b"\x01") for text in texts))


def start_writer(path: Path, name: str, writes: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(path), name, str(writes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def make_store(path: Path) -> Path:
    store = Store.create(path)
    store.put_owners("n", [memory("a", "one", "two"), memory("b", "three")])
    store.close()
    return path


class TestFiles:
    def test_a_missing_store_is_not_made_by_opening_it(self, tmp_path: Path) -> None:
        """A mistyped path must not become an empty store."""
        with pytest.raises(StoreMissingError, match=r"there is no store at .*; create one with `commonplace init`"):
            Store.open(tmp_path / "store.db", create=False)
        assert list(tmp_path.iterdir()) == []

    def test_creating_makes_the_directories_and_keeps_a_store_that_is_there(self, tmp_path: Path) -> None:
        """`init` twice is harmless."""
        path = make_store(tmp_path / "deep" / "er" / "store.db")
        store = Store.create(path)
        assert store.counts()["passages"] == 3
        store.close()

    def test_names_that_mean_something_in_a_uri_are_ordinary(self, tmp_path: Path) -> None:
        """The driver is given a URI; a directory may be called anything."""
        path = make_store(tmp_path / "50%20 #1?mode=ro" / "store.db")
        assert path.exists()

    def test_a_closed_store_is_one_file_beside_its_lock(self, tmp_path: Path) -> None:
        """Then copying the file copies the store."""
        make_store(tmp_path / "store.db")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store.db", "store.db.lock"]

    def test_the_log_of_a_removed_store_does_not_enter_a_new_one(self, tmp_path: Path) -> None:
        """SQLite would replay it into the new database."""
        path = tmp_path / "store.db"
        store = Store.create(path)
        store.put_owners("n", [memory("a", "one")])
        shutil.copy(tmp_path / "store.db-wal", tmp_path / "kept")
        store.close()
        path.unlink()
        (tmp_path / "kept").rename(tmp_path / "store.db-wal")
        store = Store.create(path)
        assert (store.change(), store.check()) == (0, [])
        store.close()

    def test_a_directory_that_cannot_be_made_is_told_with_a_remedy(self, tmp_path: Path) -> None:
        """Permission and disk errors are for the user to act on."""
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"cannot write .*; make its directory writable"):
            Store.create(tmp_path / "file" / "store.db")

    def test_a_full_disk_is_told_and_changes_nothing(self, tmp_path: Path) -> None:
        """The limit on pages is SQLite's own stand-in for a full disk."""
        path = make_store(tmp_path / "store.db")
        store = Store.open(path, create=False)
        with store._connections.writing() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"the disk of .* is full .*; free some space"):
            store.put_owners("n", [memory("c", "x" * 100_000)])
        assert store.change() == 1
        assert store.check() == []
        store.close()

    def test_a_read_only_database_is_told_with_a_remedy(self, tmp_path: Path) -> None:
        """As on a mounted snapshot; the driver's own words are kept as the cause."""
        path = make_store(tmp_path / "store.db")
        with (
            closing(connect(path, 0)) as db,
            pytest.raises(StoreError, match=r"cannot be read or written: .*; make the file") as caught,
            driver_errors(path),
        ):
            db.execute("PRAGMA query_only = ON")
            db.execute("DELETE FROM passages")
        assert isinstance(caught.value.__cause__, sqlite3.Error)


class TestVersions:
    def test_a_newer_schema_is_refused_by_name_of_both_versions(self, tmp_path: Path) -> None:
        """An older program must not write what it does not understand."""
        path = make_store(tmp_path / "store.db")
        run_sql(path, f"INSERT INTO schema_versions VALUES ({VERSION + 1}, 'later')")
        message = f"has schema version {VERSION + 1}, this Commonplace knows versions up to {VERSION}; upgrade"
        with pytest.raises(StoreVersionError, match=message):
            Store.open(path, create=False)

    def test_a_store_migrated_while_it_is_open_is_not_written(self, tmp_path: Path) -> None:
        """The newer program may start while the older one still runs."""
        path = make_store(tmp_path / "store.db")
        store = Store.open(path, create=False)
        run_sql(path, f"INSERT INTO schema_versions VALUES ({VERSION + 1}, 'later')")
        with pytest.raises(StoreVersionError):
            store.put_owners("n", [memory("c", "x")])
        assert store.change() == 1
        store.close()

    def test_two_processes_that_create_one_store_both_succeed(self, tmp_path: Path) -> None:
        """An MCP server and a hook often start at the same moment."""
        path = tmp_path / "store.db"
        writers = [start_writer(path, name, 10) for name in "abcd"]
        changes = [int(change) for w in writers for change in w.communicate("\n")[0].split()]
        assert [writer.returncode for writer in writers] == [0] * 4
        assert sorted(changes) == list(range(1, 41))
        store = Store.open(path, create=False)
        assert store.counts()["passages"] == 40
        assert store.check() == []
        store.close()


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_a_file_that_is_no_store_is_refused_and_kept(self, tmp_path: Path, content: bytes) -> None:
        """It may be the user's; and an emptied store must not pass for a new one."""
        path = tmp_path / "store.db"
        path.write_bytes(content)
        with pytest.raises(StoreDamagedError, match=f"restore a backup .* --anew --store {tmp_path}`"):
            Store.create(path)
        assert path.read_bytes() == content

    def test_a_database_of_another_program_is_refused(self, tmp_path: Path) -> None:
        """Its tables are none of our business."""
        run_sql(tmp_path / "store.db", "CREATE TABLE owners (number)")
        with pytest.raises(StoreDamagedError, match=f"run `commonplace init --anew --store {tmp_path}`"):
            Store.open(tmp_path / "store.db", create=True)

    def test_a_damaged_page_is_told_by_check_and_by_reading(self, tmp_path: Path) -> None:
        """Neither may pass wrong data on, nor show a driver's error."""
        path = make_store(tmp_path / "store.db")
        data = bytearray(path.read_bytes())
        data[8192:] = b"\xa5" * (len(data) - 8192)
        path.write_bytes(data)
        with pytest.raises(StoreDamagedError, match=r"is damaged: .*; restore a backup with `commonplace restore FILE"):
            Store.open(path, create=False).passages("n", [1])

    @pytest.mark.parametrize(
        ("statement", "problem"),
        [
            ("DELETE FROM passage_vectors WHERE number = 1", "There are passages without vectors: 1."),
            (
                "UPDATE passage_vectors SET owner = 2 WHERE number = 1",
                "There are passages that name another owner than",
            ),
            ("UPDATE passages SET namespace = 9 WHERE number = 1", "There are passages whose owner is gone: 1."),
            (
                "INSERT INTO meta VALUES ('embedder', 'e'), ('embedder_version', '1'), ('dimensions', '4')",
                "There are vectors of another length than the embedder's: 3",
            ),
            ("UPDATE passage_vectors SET token_ids = x'01'", "There are passages with half a token id: 3."),
            ("UPDATE owners SET change = 7", "There are owners stamped with a change that was never made: 2."),
            (
                "INSERT INTO deletions VALUES (1, 9, 9)",
                "There are deletions stamped with a change that was never made: 1.",
            ),
            ("INSERT INTO deletions VALUES (1, 1, 2)", "There are passages that are recorded as deleted: 1."),
            ("UPDATE changes SET next_passage = 3", "There are passage numbers above the last one given: 1."),
            ("UPDATE changes SET next_owner = 2", "There are owner numbers above the last one given: 1."),
            ("INSERT INTO changes VALUES (1, 3, 9, 9, 9, x'0011223344556677')", "There are changes out of order: 1."),
            ("UPDATE changes SET token = '00'", "There are changes without a token of sixteen digits: 1."),
            ("UPDATE counts SET text_bytes = 1", "There are counts that do not fit the rows: 1."),
            ("INSERT INTO owner_tags VALUES (1, 't', 1)", "There are tags that do not fit their owners: 1."),
            ("DELETE FROM owners WHERE number = 2", "There are passages whose owner is gone: 1."),
        ],
    )
    def test_check_tells_each_loose_end(self, tmp_path: Path, statement: str, problem: str) -> None:
        """`doctor` can mend only what it is told."""
        path = make_store(tmp_path / "store.db")
        run_sql(path, statement)
        store = Store.open(path, create=False)
        assert any(found.startswith(problem) for found in store.check())
        store.close()


class TestSnapshots:
    def test_the_state_is_that_of_the_beginning_of_the_block(self, tmp_path: Path) -> None:
        """A transaction in SQLite begins with its first read, which may come late."""
        store = Store.open(make_store(tmp_path / "store.db"), create=False)
        other = Store.open(tmp_path / "store.db", create=False)
        with store.snapshot():
            other.put_owners("n", [memory("c", "four")])
            assert store.change() == 1
            assert store.counts()["owners"] == 2
        assert store.change() == 2
        store.close()
        other.close()

    def test_other_threads_read_and_write_as_ever(self, tmp_path: Path) -> None:
        """A search holds up nobody."""
        store = Store.open(make_store(tmp_path / "store.db"), create=False)
        seen: list[int] = []

        def work() -> None:
            store.put_owners("n", [memory("c", "four")])
            seen.append(store.change())
            with store.snapshot():
                seen.append(store.change())

        with store.snapshot():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert (store.change(), seen) == (1, [2, 2])
        store.close()

    def test_a_block_gives_its_connection_back(self, tmp_path: Path) -> None:
        """Also when it ends by an error, and when the store was closed in it."""
        store = Store.create(tmp_path / "store.db")
        for _ in range(20):
            with pytest.raises(KeyError), store.snapshot():
                store.change()
                raise KeyError
        assert len(store._connections._open_pool()._idle) == 1
        with store.snapshot():
            store.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store.db", "store.db.lock"]

    def test_a_process_forked_inside_the_block_leaves_it_to_its_parent(self, tmp_path: Path) -> None:
        """It must not roll back, or close, what its parent reads by."""
        store = Store.create(tmp_path / "store.db")
        store.put_owners("n", [memory("a", "one")])
        assert read_around_a_fork(store) == [(["n"], 1)] * 3
        assert store.check() == []
        store.close()


class TestProcessesAndThreads:
    def test_what_a_killed_writer_was_told_is_stored(self, tmp_path: Path) -> None:
        """An acknowledged write is durable, and the store is whole, wherever the kill fell."""
        path = make_store(tmp_path / "store.db")
        writer = start_writer(path, "w", 10_000)
        assert writer.stdin and writer.stdout
        writer.stdin.write("\n")
        writer.stdin.flush()
        acknowledged = [int(writer.stdout.readline()) for _ in range(5)]
        writer.kill()
        acknowledged += [int(line) for line in writer.communicate()[0].split()]
        store = Store.open(path, create=False)
        assert store.change() >= acknowledged[-1]
        assert store.counts()["owners"] == store.change() + 1
        assert store.check() == []
        assert store.put_owners("n", [memory("z", "x")]) == store.change()
        store.close()

    def test_a_store_that_is_held_too_long_is_busy(self, tmp_path: Path) -> None:
        """Every wait has a timeout; first the file lock's, then SQLite's own."""
        path = make_store(tmp_path / "store.db")
        store = Store.open(path, create=False, timeout_s=0.01)
        other = Store.open(path, create=False)
        with (
            other._connections.writing(),
            pytest.raises(StoreBusyError, match=r"held by another process for longer than 0.01 s; try again"),
        ):
            store.put_owners("n", [memory("c", "x")])
        with closing(connect(path, 0)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError, match="stayed locked by another program; try again"):
                store.put_owners("n", [memory("c", "x")])
        assert store.put_owners("n", [memory("c", "x")]) == 2
        store.close()
        other.close()

    def test_readers_do_not_wait_for_a_writer(self, tmp_path: Path) -> None:
        """A search must not stand behind a bulk import."""
        path = make_store(tmp_path / "store.db")
        store = Store.open(path, create=False, timeout_s=0)
        with store._connections.writing() as db:
            db.execute("DELETE FROM deletions")
            assert store.change() == 1
        store.close()

    def test_threads_that_end_leave_no_connection_behind(self, tmp_path: Path) -> None:
        """Servers start and end threads for years."""
        store = Store.create(tmp_path / "store.db")
        for _ in range(50):
            thread = threading.Thread(target=store.change)
            thread.start()
            thread.join()
        assert len(store._connections._open_pool()._idle) == 1
        store.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store.db", "store.db.lock"]

    def test_all_who_open_a_store_share_its_connections(self, tmp_path: Path) -> None:
        """A process that serves a thousand namespaces must not run out of file descriptors."""
        path = make_store(tmp_path / "store.db")

        def held() -> int:
            """Return how many descriptors are of this store; what other tests left open may be collected meanwhile."""
            links = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
            return sum(link.is_relative_to(tmp_path) for link in links)

        before = held()
        stores = [Store.open(path, create=False) for _ in range(50)]
        for number, store in enumerate(stores):
            store.put_owners(f"n{number}", [memory("c", "x")])
        assert 0 < held() - before <= 6
        for store in stores[1:]:
            store.close()
        with pytest.raises(StoreError, match="is closed; open it again"):
            stores[1].change()
        assert stores[0].change() == 51
        stores[0].close()
        assert held() == before

    def test_whoever_opens_a_store_while_its_last_user_closes_it_gets_open_connections(self, tmp_path: Path) -> None:
        """The pool of the last user can still be had while its connections are being closed."""
        path = make_store(tmp_path / "store.db")
        first, opened = Store.open(path, create=False), list[Store]()
        first.put_owners("n", [memory("a", "one")])

        class Closing:
            """Opens the store once more when the connection is closed, as another thread may."""

            def __init__(self, db: sqlite3.Connection) -> None:
                self.db = db

            def close(self) -> None:
                self.db.close()
                opened.append(Store.open(path, create=False))

            def __getattr__(self, name: str) -> object:
                return getattr(self.db, name)

        pool = first._connections._open_pool()
        assert pool._writer is not None
        pool._writer = Closing(pool._writer)  # type: ignore[assignment]
        first.close()
        del pool
        [second] = opened
        change = second.change()
        second.put_owners("n", [memory("b", "two")])
        assert second.change() == change + 1
        second.close()

    def test_an_interrupted_write_is_rolled_back(self, tmp_path: Path) -> None:
        """Ctrl-C in the middle must leave nothing, and the store usable."""
        store = Store.create(tmp_path / "store.db")
        with pytest.raises(KeyboardInterrupt), store._connections.writing() as db:
            db.execute("INSERT INTO namespaces VALUES (1, 'n')")
            db.execute("INSERT INTO changes VALUES (1, 1, 1, 1, 1, x'0011223344556677')")
            raise KeyboardInterrupt
        assert store.change() == 0
        assert store.put_owners("n", [memory("a", "x")]) == 1
        store.close()

    def test_a_store_closed_while_it_is_written_ends_its_write_first(self, tmp_path: Path) -> None:
        """Closing is a wish for later calls, not a way to lose the present one."""
        store = Store.create(tmp_path / "store.db")
        with store._connections.writing() as db:
            store.close()
            db.execute("INSERT INTO namespaces VALUES (1, 'n')")
            db.execute("INSERT INTO changes VALUES (1, 1, 1, 1, 1, x'0011223344556677')")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store.db", "store.db.lock"]
        store = Store.open(tmp_path / "store.db", create=False)
        assert store.change() == 1
        store.close()

    def test_a_forked_child_opens_the_store_again(self, tmp_path: Path) -> None:
        """SQLite's connections do not survive a fork; using them corrupts databases."""
        store = Store.create(tmp_path / "store.db")
        store.put_owners("n", [memory("a", "one")])
        inherited = list(store._connections._open_pool()._idle)
        child = os.fork()
        if child == 0:
            with pytest.raises(StoreError, match="was opened before this process forked; open it again"):
                store.put_owners("n", [memory("b", "two")])
            store.close()
            again = Store.open(tmp_path / "store.db", create=False)
            is_right = again.put_owners("n", [memory("b", "two")]) == 2 and again.change() == 2
            is_right = is_right and not set(map(id, inherited)) & set(map(id, again._connections._open_pool()._idle))
            again.close()
            os._exit(0 if is_right else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert store.put_owners("n", [memory("c", "three")]) == 3
        assert store.check() == []
        store.close()

    def test_the_lock_stands_beside_the_database(self, tmp_path: Path) -> None:
        """Every program that writes must take the same one."""
        assert lock_path(tmp_path / "store.db") == tmp_path / "store.db.lock"


def test_a_commit_is_on_the_disk_and_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    """The other tests do not wait for the disk."""
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        prepare_writer(db)
        found = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        assert found == {"journal_mode": "wal", "synchronous": 2}
        assert db.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_passages_are_placed_in_small_memories_only_and_all_read_the_same(tmp_path: Path) -> None:
    """Each placed passage reads the whole content of its memory, so that many of a large one would take its square."""
    path = tmp_path / "store.db"
    small, large = (tuple(f"{number:04} é{'word ' * 200}" for number in range(count)) for count in (3, 100))
    with closing(Store.create(path)) as store:
        numbers = add(store, written("small", *small), written("large", *large))
        for number, texts in zip(numbers, (small, large), strict=True):
            passages = store.passages("n", store.passages_of("n", [number]))
            assert tuple(passages[each].chunk.text for each in sorted(passages)) == texts
    with closing(sqlite3.connect(path)) as db:
        placed = "SELECT owner, sum(length > 0), sum(length(text) > 0) FROM passages GROUP BY owner ORDER BY owner"
        assert db.execute(placed).fetchall() == [(numbers[0], 3, 0), (numbers[1], 0, 100)]


def test_passages_of_a_memory_whose_row_is_gone_can_be_deleted(tmp_path: Path) -> None:
    """What is damaged must be able to go."""
    path = tmp_path / "store.db"
    with closing(Store.create(path)) as store:
        add(store, written("a", "one", "two"))
        run_sql(path, "DELETE FROM memories")
        store.put_owners("n", [memory("a", "three")])
        assert [passage.chunk.text for passage in store.passages("n", range(9)).values()] == ["three"]


def test_check_tells_a_memory_that_is_listed_by_another_time_than_it_is_of(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(Store.create(path)) as store:
        add(store, written("told", at=5.0), written("known", born_at=5.0))
        assert store.check() == []
        run_sql(path, "UPDATE memories SET at = 6")
        assert store.check() == ["There are memories with another time than they are of: 2."]
