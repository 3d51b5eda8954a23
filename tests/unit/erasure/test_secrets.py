"""Secrets in a store that was filled before they were replaced on the way in: found, replaced, and gone from all files.

They are written past the redaction here, as an older release, another program or a new detector would leave them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.engine.doctor import Problem
from commonplace.erasure.receipt import RECEIPT
from commonplace.erasure.secrets import PART
from commonplace.ingest.passages import PassageMaker, PreparedOwner
from commonplace.memory.admission import writes_of
from commonplace.models.contract import TokenizedText
from commonplace.types import Chunk, FileStamp, Owner

MIXED = "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEaXoKi"
TOKEN = "ghp" + "_" + MIXED[:36]
OTHER = "ghp" + "_" + MIXED[:36][::-1]
AWS = MIXED[::-1]
PASSWORD = "hunter" + "2x9"
SECRETS = (TOKEN, OTHER, AWS, PASSWORD)
STAMP = FileStamp("0" * 64, 7, 8, "recipe")
GONE = "[redacted: github token]"


def spoil(book: Engine, id_: str, **values: Any) -> None:
    """Give every version of a memory other values, as they are; `owner` and `record` name fields of these two."""
    versions = book._runtime.store.versions(book.namespace, id_)
    owners = [replace(version.owner, **values.get("owner", {})) for version in versions]
    records = [replace(version.record, **values.get("record", {})) for version in versions]
    writes = writes_of(book._runtime.destination(), list(zip(owners, records, strict=True)))
    with book._runtime.store.change_memories(book.namespace) as change:
        links = book._runtime.store.links(book.namespace, [id_])
        blocks = [block for block in book._runtime.store.blocks(book.namespace) if block.id == id_]
        change.erase([id_])
        for version, write in zip(versions, writes, strict=True):
            placed = replace(write, is_placed=True)
            change.add(placed, created_at=version.created_at, expired_at=version.expired_at)
        for link in links:
            change.link(link)
        for block in blocks:
            change.put(block)


def store_file(book: Engine, path: str, *texts: str, lines: tuple[int, ...] = (1, 2, 3), **values: Any) -> None:
    """Store an artifact whose passages are these texts, each of one line."""
    owner = Owner(path, "artifact", path=path, stamp=STAMP, **values)
    chunks = tuple(Chunk(text, line, line) for text, line in zip(texts, lines, strict=False))
    tokens = tuple(TokenizedText(text, book._runtime.tokens.tokenize(text)) for text in texts)
    [write] = PassageMaker(book._runtime.destination()).complete([PreparedOwner(owner, chunks, tokens, 0)])
    book._runtime.store.put_owners(book.namespace, [write], at=book._runtime.now())


def texts_of(book: Engine, name: str) -> list[str]:
    """Return the passages of the artifact with this file name."""
    store = book._runtime.store
    numbers = [number for number, owner in store.artifacts("default") if Path(owner.path).name == name]
    return [passage.chunk.text for passage in store.passages("default", store.passages_of("default", numbers)).values()]


def holding(book: Engine, *secrets: str) -> list[str]:
    """Return the files that hold one of the secrets, in any form that a text may have in a file."""
    marks = [mark.encode() for secret in secrets or SECRETS for mark in (secret, secret.lower())]
    files = [path for path in book.directory.rglob("*") if path.is_file()]
    return sorted(
        path.relative_to(book.directory).as_posix() for path in files if any(m in path.read_bytes() for m in marks)
    )


def found(book: Engine, *, mend: bool = True) -> list[Problem]:
    report = book.doctor(mend=mend, secrets=True)
    assert PART in report.checked
    assert not any(secret in str(asdict(report)) for secret in SECRETS)
    assert [finding for finding in report.findings if finding.part not in (PART, "index")] == []
    return [finding for finding in report.findings if finding.part == PART]


def problems(book: Engine) -> list[str]:
    findings = found(book)
    assert all(finding.mended for finding in findings)
    return [finding.problem for finding in findings]


class TestWhatIsFound:
    def test_a_store_without_secrets_is_well_and_nothing_is_written(self, book: Engine) -> None:
        change, names = book._runtime.store.change(), book.namespaces()
        assert found(book) == []
        assert (book._runtime.store.change(), book.namespaces()) == (change, names)

    @pytest.mark.parametrize(
        "spoilt",
        [
            {"record": {"content": f"The CI has {TOKEN} in it"}},
            {"owner": {"title": f"About {TOKEN}"}},
            {"owner": {"summary": f"About {TOKEN}"}},
            {"owner": {"tags": ("a", TOKEN)}},
            {"record": {"category": TOKEN}},
            {"record": {"source": f"mail with {TOKEN}"}},
            {"record": {"entities": ("CI", TOKEN)}},
            {"record": {"metadata": json.dumps({"deep": [{"key": TOKEN}]})}},
            {"record": {"metadata": json.dumps({TOKEN: True})}},
        ],
    )
    def test_every_field_of_a_memory_is_cleaned(self, book: Engine, spoilt: dict[str, Any]) -> None:
        spoil(book, "kettle 4", **spoilt)
        assert holding(book)
        expected = ["memory 'kettle 4' of namespace 'default' holds a secret of the kind github token"]
        assert [(each.problem, each.mended) for each in found(book, mend=False)] == [(expected[0], False)]
        assert [problem for problem in problems(book) if "page" not in problem] == expected
        assert holding(book) == []
        [version] = book._runtime.store.versions("default", "kettle 4")
        assert GONE in str(asdict(version))
        assert found(book) == []

    def test_an_old_version_is_cleaned_and_the_others_stay_as_they_are(self, book: Engine, clock: Clock) -> None:
        spoil(book, "kettle 4", record={"content": f"Password: {PASSWORD}"})
        then = clock()
        clock.move(days=1)
        book.update("kettle 4", content="There is no password any more")
        clock.move(days=1)
        book.archive("kettle 4")
        before = book.versions("kettle 4")
        assert len(problems(book)) == 1
        assert holding(book) == []
        after = book.versions("kettle 4")
        assert after[1:] == before[1:]
        assert after[0] == replace(before[0], content="Password: [redacted: password]")
        assert book.get("kettle 4", as_of=then).content == "Password: [redacted: password]"

    def test_an_indexed_file_is_cleaned_passage_by_passage(self, book: Engine) -> None:
        """A token that was cut in two is one; the title, tags and references of a file are its own words too."""
        store_file(book, "a.md", f"It is {TOKEN[:20]}", f"{TOKEN[20:]} today", lines=(1, 1))
        store_file(book, "b.md", "Clean", title=TOKEN, summary=TOKEN, tags=("x", TOKEN), references=(f"x/{TOKEN}", "y"))
        assert len(holding(book, TOKEN[:20], TOKEN[20:])) == 1
        assert problems(book) == [
            f"artifact '{name}' of namespace 'default' holds a secret of the kind github token"
            for name in ("a.md", "b.md")
        ]
        assert holding(book, *SECRETS, TOKEN[:20], TOKEN[20:]) == []
        cut, other = dict(book._runtime.store.artifacts("default")).values()
        assert texts_of(book, "a.md") == [f"It is {GONE}", f"{GONE} today"]
        assert (other.title, other.summary, other.tags, other.references) == (
            GONE,
            GONE,
            ("x", GONE),
            (f"x/{GONE}", "y"),
        )
        assert cut.stamp == other.stamp == STAMP
        assert [hit.owner_id for hit in book.search("what is today", method="bm25", min_score=0.0).hits] == ["a.md"]

    def test_the_remedy_says_that_the_file_itself_was_left(self, book: Engine) -> None:
        store_file(book, "a.md", TOKEN)
        [finding] = found(book)
        assert finding.remedy.startswith("take it out of the file, which was left as it is, and change the secret")
        assert "older backups still hold it" in finding.remedy

    def test_the_next_build_reads_a_file_without_its_secrets(self, book: Engine, tmp_path: Path) -> None:
        """Its text is cleaned on the way in like that of a memory; tags in its front matter are not."""
        (tmp_path / "a.md").write_text(f"The token {TOKEN} is in here")
        book.index(tmp_path)
        assert texts_of(book, "a.md") == [f"The token {GONE} is in here"]
        assert found(book) == []

    def test_links_and_receipts_are_cleaned(self, book: Engine) -> None:
        link = book.link("kettle 1", "kettle 2", strength=0.5)
        book.unlink("kettle 1", "kettle 2")
        book.forget("kettle 3")
        with book._runtime.store.change_memories("default") as change:
            change.link(replace(link, type=f"has {TOKEN}"))
            [note] = book._runtime.store.notes("default", RECEIPT)
            change.put(replace(note, body=note.body.replace("kettle 3", OTHER)))
        named = f"link from 'kettle 1' to 'kettle 2' ('has {GONE}') of namespace 'default'"
        assert problems(book) == [
            f"{named} holds a secret of the kind github token",
            f"the receipt {note.id} holds a secret of the kind github token",
        ]
        assert holding(book) == []
        [link] = book._runtime.store.links("default")
        assert (link.type, link.strength, link.created_at) == (f"has {GONE}", 0.5, book._runtime.now())
        assert book.receipts()[0].ids == (GONE,)

    def test_what_one_memory_calls_a_key_is_replaced_in_another_that_does_not(self, book: Engine) -> None:
        spoil(book, "kettle 1", record={"content": f"Use {AWS} for it"})
        assert found(book) == []
        spoil(book, "kettle 2", record={"content": f"aws_secret_access_key = {AWS}"})
        assert len(problems(book)) == 2
        assert book.get("kettle 1").content == "Use [redacted: aws secret key] for it"
        assert holding(book) == []

    def test_a_password_that_is_an_ordinary_word_elsewhere_is_told_of_and_stays(self, book: Engine) -> None:
        """Nobody but its owner knows whether the machine of that name is meant."""
        spoil(book, "kettle 1", record={"content": f"ssh {PASSWORD}"})
        spoil(book, "kettle 2", record={"content": f"password: {PASSWORD}"})
        mended, left = found(book)
        assert mended.mended
        assert left.problem == "one of these secrets is also in texts that do not name it as one, and was left there"
        assert not left.mended
        assert book.get("kettle 1").content == f"ssh {PASSWORD}"
        assert book.get("kettle 2").content == "password: [redacted: password]"

    def test_names_are_told_of_and_never_replaced(self, book: Engine) -> None:
        """With another id it would be another memory, and links to it would lead nowhere."""
        book.remember("Kettle", id=TOKEN)
        book.remember("Said", id="said", session=f"s {OTHER}")
        book.link("kettle 1", TOKEN)
        book.sync()
        for _ in range(2):
            assert [(each.problem, each.mended) for each in found(book)] == [
                (f"the name of memory '{GONE}' of namespace 'default' holds a secret of the kind github token", False),
                ("the name of memory 'said' of namespace 'default' holds a secret of the kind github token", False),
            ]
        assert book.get(TOKEN).content == "Kettle"
        assert TOKEN in next(book.directory.glob("memory/*.md")).read_text()
        book.forget(TOKEN)
        book.forget("said")
        assert problems(book)
        assert holding(book) == []

    def test_every_namespace_is_looked_through(self, book: Engine, clock: Clock) -> None:
        with commonplace.open(book.directory, namespace="theirs", clock=clock) as theirs:
            theirs.remember("Kettle", id="kettle 1")
            spoil(theirs, "kettle 1", record={"content": f"Two of them: {TOKEN} and {OTHER}"})
            spoil(book, "kettle 1", record={"content": TOKEN})
            theirs.sync()
            book.sync()
            assert problems(book) == [
                "memory 'kettle 1' of namespace 'default' holds a secret of the kind github token",
                "memory 'kettle 1' of namespace 'theirs' holds 2 secrets of the kind github token",
                "the page memory/2026-03-02.md holds a secret of the kind github token",
                "the page memory/theirs/2026-03-02.md holds 2 secrets of the kind github token",
            ]
            assert holding(book) == []
            assert theirs.get("kettle 1").content == f"Two of them: {GONE} and {GONE}"
        assert found(book) == []
