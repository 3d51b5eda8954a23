"""A namespace that has one of everything, and all that can be read of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.types import Document

MARK = "zanzibar"
"""A word in texts of the other namespace, and in nothing that is asked for or written here."""
THEIRS = {
    "shared": f"What they call shared, {MARK}",
    "theirs": f"What is theirs alone, {MARK}",
    "turn": f"What they said, {MARK}",
    "old": f"What was, {MARK}",
    # These are written here too, word for word.
    "mine": "the price of a kettle 1",
    "same": "what they said of it 0",
    "equal": "harbour master 1",
}


def issues(path: Path, id_: str, word: str = "") -> Path:
    """Write an issue about two memories that both namespaces have, as beads does."""
    notes = json.dumps({"memory_ids": ["shared", "theirs"], "agent": "merge", "word": word})
    told = {"id": id_, "title": "Merge", "notes": notes, "labels": ["consolidation:merge"], "created_at": "2026-01-01"}
    path.write_text(json.dumps(told))
    return path


def fill(store: Path, suffix: str) -> None:
    """Give the other namespace one of everything."""
    clock = Clock()
    with commonplace.open(store, namespace="other", embedder="hashing", clock=clock) as other:
        for id_, text in THEIRS.items():
            session = f"talk{suffix}" if id_ == "turn" else ""
            other.remember(text, id=id_ + suffix, tags=[f"red{suffix}"], source=f"standup{suffix}", session=session)
        other.remember_many([{"content": f"They said {n}, {MARK}", "session": f"talk{suffix}"} for n in range(4)])
        clock.move(days=0.5)
        other.update(f"theirs{suffix}", f"What is theirs alone, a second time, {MARK}")
        other.archive(f"old{suffix}")
        other.link(f"shared{suffix}", f"theirs{suffix}", MARK)
        page = Document(f"their page{suffix}", f"The harbour master of {MARK}", tags=(f"red{suffix}",))
        other.index_documents([page])
        for words in ("an old price", "the price of a kettle"):
            other.knowledge.index_knowledge(f"clerk{suffix}", [{"text": f"{words}, {MARK}"}])
        other.knowledge.set_context({"name": f"clerk{suffix}", "last_cursor": 3, "word": MARK})
        with TemporaryDirectory() as place:
            other.ledger.import_(issues(Path(place) / "issues.jsonl", f"their issue{suffix}", MARK))
        other.forget(other.remember(f"What they forgot, {MARK}", id=f"forgotten{suffix}").id)
        said = f"Mira Okafor lives in Berlin. auth.ts depends on {MARK}.ts."
        other.graph.add_episode(said, uuid=f"said{suffix}", group_id=f"group{suffix}")
        other.graph.add_episode("Mira lives in Munich.", reference_time=clock() - 1.0)
        other.consolidate(["cluster", "relations"], rate_limit=0)
        other.log_retrieval(other.search(f"The harbour master of {MARK}", min_score=0.0))
        other.log_use(f"theirs{suffix}")


def everything(store: Path) -> str:
    """Return all that can be read of the other namespace, and its pages; its time stands still, or memories fade."""
    with commonplace.open(store, namespace="other", clock=Clock()) as other:
        read = readable(other)
    pages = {str(page): page.read_text() for page in sorted((store / "memory" / "other").rglob("*.md"))}
    assert MARK in str(pages)
    return json.dumps([read, pages])


def found_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, but for its score: lengths and rarity are counted over all namespaces."""
    return {name: value for name, value in found.items() if name != "score"}


def readable(other: Engine) -> list[Any]:
    memories = other.list(statuses=(), limit=1000)
    text = io.StringIO()
    other.export(text)
    return [
        [memory.to_dict() for memory in memories],
        [[version.to_dict() for version in other.versions(memory.id)] for memory in memories],
        [repr(link) for link in other.links()],
        [receipt.to_dict() for receipt in other.receipts()],
        other.index_status().counts,
        [repr(other.knowledge.get_context(name)) for name in ("clerk", "clerkx")],
        [repr(agent) for agent in other.knowledge.status().agents],
        other.retrievals().to_dict(),
        [episode.to_dict() for episode in other.graph.episodes()],
        [found_of(found.to_dict()) for found in other.graph.search_edges("Mira", 100, include_past=True)],
        [other.ledger.query(status=None), other.ledger.counts(), *map(repr, other.ledger.history("their issue"))],
        text.getvalue(),
    ]
