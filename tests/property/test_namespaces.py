"""No public call of an engine sees or changes anything of another namespace, whatever it is given.

The same calls are made in two stores. In both another namespace holds the same texts; in one of them under the very
ids, tags, sessions and sources that the calls name, in the other one under its own. Nobody may notice the difference.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.other_namespace import MARK, THEIRS, everything, fill, issues
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import CommonplaceError, NotFoundError, UsageError
from commonplace.ledger.ledger import maintain
from commonplace.memory.idempotency import StoredAnswer
from commonplace.types import Document

IDS = (*THEIRS, "page", "their page")
WORDS = ("what they said of it", "the price of a kettle", "shared and alone", "harbour master")
EXEMPT = {
    "close": "it ends the engine",
    "doctor": "it checks the whole store, and names no content",
    "embed_pending": "it embeds what waits in the whole store, and names no content",
    "index_upgrade": "it embeds the whole store anew, and names no content",
    "backup": "it copies the whole store, and is for whoever owns it",
    "backups": "it names the backups of the whole store, and no content",
    "consolidation_runtime": "it is what agents stand on, and answers nothing",
    "count_tokens": "it counts what it is given",
    "cut_tokens": "it cuts what it is given",
    "snippet": "it cuts the text that it is given",
    "move_memories": "it exports to another store and forgets here, each of which is tried",
    "namespaces": "names are no secret: there is no other way to know what there is",
    "in_namespace": "it is another engine, of a namespace that is named",
    "is_local": "it tells of the embedders of the whole store, and names no content",
    "tokens": "they are of the whole store, and are for whoever owns it",
}


MADE = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{64}|commonplace-[0-9a-f]{8}")
"""Ids, and checksums of what holds them."""
DIFFERENT = frozenset("latency_ms stages methods trace seconds checked excluded_needles".split())
"""What a call says of the time it took and of the files, which hold the whole store."""


class Values:
    """Chooses arguments: names and words that the other namespace has, as often as not."""

    def __init__(self, choose: Callable[[int], int], directory: Path) -> None:
        self._choose = choose
        self.directory = directory

    def one(self, *choices: Any) -> Any:
        return choices[self._choose(len(choices))]

    @property
    def id(self) -> str:
        return str(self.one(*IDS))

    @property
    def words(self) -> str:
        return str(self.one(*WORDS))

    @property
    def filters(self) -> dict[str, Any]:
        name, value = self.one(("tags", "red"), ("sessions", "talk"), ("sources", "standup"), ("tiers", "short"))
        return {name: [value]} if self.one(True, False) else {}

    @property
    def wanted(self) -> dict[str, Any]:
        name, value = self.one(
            ("id", self.one(self.id, "said", "their fact", "their entity")),
            ("tag", "red"),
            ("session", "talk"),
            ("source", "standup"),
            ("path", "their page"),
            ("agent", "clerk"),
        )
        return {name: value, "dry_run": self.one(True, False)}

    @property
    def memory(self) -> dict[str, Any]:
        return {
            "content": f"{self.words} {self.one(0, 1)}",
            "id": self.id,
            "tags": self.one([], ["red"]),
            "source": self.one("", "standup"),
            "session": self.one("", "talk"),
            "derived_from": self.one([], [self.id]),
        }


def importing(book: Engine, values: Values) -> Any:
    text = io.StringIO()
    book.export(text)
    path = values.directory / "export.jsonl"
    path.write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue(), book.import_(path)


def indexing(book: Engine, values: Values) -> Any:
    root = values.directory / "project"
    root.mkdir(exist_ok=True)
    words = values.words
    (root / "page.md").write_text(f"# Page\n\n{words}\n")
    os.utime(root / "page.md", (WORDS.index(words), WORDS.index(words)))
    return book.index(root, force=values.one(True, False))


def deleting(book: Engine, values: Values) -> Any:
    name, confirm = values.one(("other", "mine"), ("other", ""), ("mine", "mine"))
    return book.forget_namespace(name, confirm=confirm)


def explaining(book: Engine, values: Values) -> Any:
    result = book.search(values.words, 100, min_score=0.0)
    return [book.why(result, hit.id) for hit in result.hits]


def reading(book: Engine, values: Values) -> Any:
    day, name = "2026-03-02.md", f"memory:{values.id}"
    pages = ("MEMORY.md", f"memory/{day}", f"memory/other/{day}", f"memory/../memory/other/{day}", "their page")
    return book.read(values.one(*pages, name, str(values.directory / "project" / "page.md")))


def asking(book: Engine, values: Values) -> Any:
    """Ask the memory specialist for what it can do but for storing, which would make ids that differ in both stores."""
    asked = values.one(
        f"recall {values.words}",
        f"query_graph {values.words}",
        f"get mem:{values.id}",
        f"promote mem:{values.id}",
        f"forget mem:{values.id}",
        "decay",
        "stats",
    )
    more = '\nPARAMS {"min_relevance": 0}' if asked.startswith(("recall", "query")) else ""
    return book.specialist.handle(f"TASK REQ:{asked} IN:MEM OUT:X{more}")


def moving(book: Engine, values: Values) -> Any:
    """Write the graph as Graphiti's, and take in such a one that has the ids of the other namespace."""
    path = values.directory / "theirs.json"
    ends = ("their entity", "their other")
    nodes = [
        {"uuid": id_, "name": name, "created_at": "2026-01-01"}
        for id_, name in zip(ends, ("Mira", "Berlin"), strict=True)
    ]
    edge = {"uuid": "their fact", "source_node_uuid": ends[0], "target_node_uuid": ends[1], "name": "LIVES_IN"}
    episode = {"uuid": "said", "content": "Mira lives in Berlin.", "created_at": "2026-01-01"}
    edges = [{**edge, "created_at": "2026-01-01", "fact": "Mira lives in Berlin.", "episodes": ["said"]}]
    path.write_text(json.dumps({"entity_nodes": nodes, "entity_edges": edges, "episodic_nodes": [episode]}))
    taken = book.graph.import_graphiti(path, dry_run=values.one(True, False))
    return replace(taken, path=None), book.graph.export_graphiti(io.StringIO()), book.graph.sync()


def graphing(book: Engine, values: Values) -> Any:
    """Make one call on the graph, with ids and names that the other namespace has."""
    graph, named = book.graph, values.one("Mira", "Mira Okafor", "auth.ts", "Berlin", "their entity", "their fact")
    calls: tuple[Callable[[], Any], ...] = (
        lambda: graph.add_episode(f"Mira lives in {values.one('Berlin', 'Munich')}.", uuid=values.one("said", None)),
        lambda: graph.add_triplet("Mira", "WORKS_FOR", values.one("Acme", "Globex"), group_id=values.one("", "group")),
        lambda: graph.delete_episode("said"),
        lambda: graph.merge(named, values.one("Mira", "Berlin")),
        lambda: graph.split(named),
        lambda: graph.settle("their fact"),
        lambda: graph.search_entities(named, 100, group_ids=values.one(None, ["group"])),
        lambda: graph.search_edges("where Mira lives", 100, include_past=values.one(True, False)),
        # How many tokens ids have is no secret, and different.
        lambda: replace(graph.build_context([named], query=values.one("", "Mira")), tokens=0),
        lambda: graph.entity(named),
        lambda: graph.relation("their fact"),
        lambda: graph.episode("said"),
        lambda: graph.facts_of_memory(values.id),
        lambda: graph.neighbourhood(named),
        lambda: graph.show(named, include_past=values.one(True, False)),
        lambda: graph.path("Mira", named),
        lambda: graph.timeline(named),
        lambda: graph.history(named),
        lambda: moving(book, values),
        graph.episodes,
        graph.communities,
        graph.disputes,
        graph.counts,
    )
    return unordered(plain(values.one(*calls)()))


def unordered(value: Any) -> Any:
    """Return a value without the order of what is in it: equals are ordered by their ids, which are made."""
    if isinstance(value, str):
        return sorted(value.splitlines())
    if isinstance(value, dict):
        return {name: unordered(each) for name, each in value.items()}
    return sorted(map(unordered, value), key=repr) if isinstance(value, list) else value


def knowing(book: Engine, values: Values, **service: Any) -> Any:
    """Ask the knowledge service for one thing; its agents here are called as those of the other namespace are."""
    knowledge = book.knowledge_service(**service) if service else book.knowledge
    agent = values.one("clerk", "their clerk")
    context = {"name": agent, "last_cursor": values.one(0, 7), "note": values.words}
    return values.one(
        lambda: knowledge.index_knowledge(agent, [{"text": values.words}, {"text": f"{values.words} again"}]),
        lambda: knowledge.create_agent({"name": agent, "knowledge": [{"text": values.words}]}).report,
        lambda: knowledge.retrieve(agent, values.words),
        lambda: knowledge.notices_of(agent),
        lambda: knowledge.delete_agent_knowledge(agent),
        lambda: knowledge.set_context(context),
        lambda: knowledge.get_context(agent),
        lambda: knowledge.status().agents,
    )()


def filing(book: Engine, values: Values) -> Any:
    """Make one call on the ledger, about memories and issues that the other namespace has."""
    ledger, issue = book.ledger, values.one("their issue", "no issue")
    path = values.directory / f"of {book.directory.name}" / "issues.jsonl"  # its name stands in the history
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: ledger.create(values.one("merge", "decay"), [values.id, values.id], "merge"),
        lambda: ledger.query(values.one(None, "merge"), values.one(None, "open")),
        lambda: ledger.claim(issue),
        lambda: ledger.close(issue, "done"),
        lambda: ledger.block(issue, "no"),
        lambda: ledger.reopen(issue),
        lambda: ledger.show(issue),
        lambda: ledger.history(issue),
        lambda: (ledger.export(path), path.read_text()),
        lambda: ledger.import_(issues(path, "their issue")),
        lambda: maintain(book.consolidation_runtime().pace(0), "keeper"),
        ledger.counts,
    )
    return unordered(plain(values.one(*calls)()))


def answering(book: Engine, values: Values) -> Any:
    """Look for or keep the answer to a request with a key that the other namespace has."""
    key = values.one("key", "other")
    if values.one(True, False):
        book.answers.keep(key, StoredAnswer(values.words, 200, "{}"))
    return book.answers.find(key)


def consolidating(book: Engine, values: Values) -> Any:
    """Run agents, or do, undo or look at what they did, by ids that the other namespace has."""
    agents = values.one(None, ["decay"], ["cluster", "merge"], ["relations"], ["promote"])
    done = book.consolidate(agents, values.one(True, False), rate_limit=0)
    said = {agent: [result.model_dump() for result in results] for agent, results in done.results.items()}
    if values.one(True, False):
        book.undo_consolidation(done.run)
    return unordered(plain((said, done.errors, done.skipped, done.applied)))


CALLS: dict[str, Callable[[Engine, Values], Any]] = {
    "archive": lambda book, values: book.archive(values.id),
    "answer": lambda book, values: book.answer(
        values.one("their issue", "their fact", "no issue"), values.one("right", "reject"), reason="asked"
    ),
    "answers": answering,
    "consolidate": consolidating,
    "consolidation_changes": lambda book, values: [
        len(book.consolidation_changes(run.run)) for run in book.consolidation_runs()
    ],
    "consolidation_runs": lambda book, values: [(each.agents, each.applied) for each in book.consolidation_runs()],
    "consolidation_status": lambda book, values: book.consolidation_status(values.one(None, "merge")).agents,
    "context": lambda book, values: book.context(
        values.one("", values.words), limit=100, min_score=0.0, agent=values.one(None, "default")
    ),
    "count_use": lambda book, values: book.count_use(book.search(values.words, min_score=0.0).hits),
    "decay": lambda book, values: book.decay(threshold=1.0),
    "export": importing,
    "export_index": lambda book, values: book.export_index(),
    "clear_injected": lambda book, values: book.clear_injected(values.one("talk", "other")),
    "forget": lambda book, values: book.forget(**values.wanted),
    "forget_namespace": deleting,
    "gc": lambda book, values: book.gc(0, dry_run=values.one(True, False)),
    "resolve_id": lambda book, values: book.resolve_id(values.id[:8]),
    "get": lambda book, values: book.get(values.id, touch=values.one(True, False)),
    "import_": importing,
    "golden_queries": lambda book, values: [(each.query, each.relevant) for each in book.golden_queries()],
    "graph": graphing,
    "health": lambda book, values: unordered(plain(book.health())),
    "index": indexing,
    "injection": lambda book, values: book.injection(values.words, conversation=values.one("talk", "other")),
    "injections": lambda book, values: [(each.conversation, each.ids) for each in book.injections()],
    "index_documents": lambda book, values: book.index_documents(
        [Document(values.id, values.words, tags=("red",), session=values.one("", "talk"))]
    ),
    "index_status": lambda book, values: book.index_status().counts,
    "knowledge": knowing,
    "knowledge_service": lambda book, values: knowing(book, values, embedder="static"),
    "ledger": filing,
    "link": lambda book, values: book.link(values.id, values.id),
    "links": lambda book, values: book.links(values.one(None, values.id)),
    "rule_links": lambda book, values: plain(book.rule_links()),
    "list": lambda book, values: book.list(statuses=(), **values.filters),
    "log_retrieval": lambda book, values: book.log_retrieval(book.search(values.words, min_score=0.0)),
    "log_use": lambda book, values: book.log_use(values.id),
    "mark": lambda book, values: book.mark(values.words, values.id, values.one("right", "wrong")).relevant,
    "memory_facets": lambda book, values: book.memory_facets(statuses=(), **values.filters),
    "memory_fading": lambda book, values: book.memory_fading(values.id, past=values.one(True, False)),
    "memory_uses": lambda book, values: book.memory_uses(values.id),
    "memory_counts": lambda book, values: book.memory_counts(),
    "neighbourhood": lambda book, values: book.neighbourhood(values.id),
    "memory_at": lambda book, values: [book.memory_at(page, line) for page in book.pages() for line in range(1, 40)],
    "pages": lambda book, values: book.pages(),
    "places": lambda book, values: book.places(IDS),
    "process_issue": lambda book, values: book.process_issue(values.one("their issue", "no issue"), rate_limit=0),
    "read": reading,
    "questions": lambda book, values: sorted(each.kind for each in book.questions()),
    "raise_tier": lambda book, values: book.raise_tier(values.id),
    "recall": lambda book, values: book.recall(values.words, 100, min_score=0.0, **values.filters),
    "receipts": lambda book, values: book.receipts(),
    "remember": lambda book, values: book.remember(**values.memory),
    "remember_many": lambda book, values: book.remember_many([values.memory, values.memory]),
    "restore_memory": lambda book, values: book.restore_memory(values.id),
    "retrievals": lambda book, values: book.retrievals(values.one(None, "2026-03-02")),
    "review": lambda book, values: book.review(values.id),
    "search": lambda book, values: book.search(
        values.words,
        100,
        method=values.one("two-stage", "bm25", "semantic"),
        min_score=0.0,
        as_of=values.one(None, "2026-03-02T09:00:01Z"),
        per_owner=5,
        agent=values.one(None, "default"),
        **values.filters,
    ),
    "specialist": asking,
    "sync": lambda book, values: book.sync(),
    "touch": lambda book, values: book.touch(values.id, reinforce=True),
    "undo_consolidation": lambda book, values: book.undo_consolidation(values.one("their issue", "no issue")),
    "unlink": lambda book, values: book.unlink("shared", "theirs"),
    "unmerge": lambda book, values: book.unmerge(values.id),
    "update": lambda book, values: book.update(values.id, values.words),
    "versions": lambda book, values: book.versions(values.id),
    "why": explaining,
}


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    """Two stores whose other namespace is full, `same` and `own`; copied for each example."""
    with TemporaryDirectory() as place:
        fill(Path(place) / "same", "")
        fill(Path(place) / "own", "x")
        yield Path(place)


def test_every_public_call_is_tried() -> None:
    """A new call of the engine joins this test, or says here why it need not."""
    public = {name for name in dir(Engine) if not name.startswith("_")}
    assert public - EXEMPT.keys() == CALLS.keys()


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), names=st.lists(st.sampled_from(sorted(CALLS)), min_size=5, max_size=20))
def test_no_call_sees_or_changes_anything_of_another_namespace(
    filled: Path, data: st.DataObject, names: list[str]
) -> None:
    """What is remembered, shown, counted and scored is the same whatever ids and tags are in use elsewhere."""
    with TemporaryDirectory() as place:
        directory, clock, numbers = Path(place), Clock(), Random()
        clock.move(days=2)
        shutil.copytree(filled, directory, dirs_exist_ok=True)
        before = everything(directory / "same")
        with (
            commonplace.open(directory / "same", namespace="mine", clock=clock) as mine,
            commonplace.open(directory / "own", namespace="mine", clock=clock) as twin,
            # Equals are in the order of their ids, so both stores must make the same.
            patch("commonplace.knowledge.service.uuid4", lambda: UUID(int=numbers.getrandbits(128), version=4)),
        ):
            for step, name in enumerate(names):
                drawn: list[int] = []

                def choose(count: int, drawn: list[int] = drawn) -> int:
                    drawn.append(data.draw(st.integers(0, count - 1)))
                    return drawn[-1]

                numbers.seed(step)
                said = outcome(mine, name, Values(choose, directory))
                again = iter(drawn)
                numbers.seed(step)
                assert said == outcome(twin, name, Values(lambda _count, again=again: next(again), directory)), name
                assert MARK not in str(said).lower(), name
                clock.move(days=0.01)
        assert everything(directory / "same") == before


def outcome(book: Engine, name: str, values: Values) -> Any:
    """Return what a call says, be it an error, without what is different in every store."""
    try:
        return plain(CALLS[name](book, values))
    except CommonplaceError as error:
        return plain(f"{type(error).__name__}: {error}")


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return MADE.sub("made", value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name not in DIFFERENT}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items() if name not in DIFFERENT}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return value


NEAR = (
    "Other",
    "OTHER",
    "other ",
    " other",
    "other\n",
    "othe",
    "others",
    "ｏther",
    "other\u200b",
    "%",
    "oth*",
    "*",
    "",
    ".",
)
"""What a person, a shell or a database might take for the name."""
wrong_names = st.one_of(st.sampled_from(NEAR), st.text(max_size=8)).filter(lambda name: name != "other")


@given(name=wrong_names, confirm=wrong_names)
@settings(deadline=None, max_examples=20)
def test_a_namespace_is_not_deleted_without_its_exact_name(filled: Path, name: str, confirm: str) -> None:
    """A slip of the pen must not cost a tenant everything."""
    store = filled / "same"
    before = everything(store)
    with commonplace.open(store, namespace="other", clock=Clock()) as book:
        for first, second in ((name, confirm), ("other", confirm), (name, "other"), (name, name)):
            error = NotFoundError if first == second else UsageError
            with pytest.raises(error):
                book.forget_namespace(first, confirm=second)
    assert everything(store) == before
