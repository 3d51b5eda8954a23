"""What the tests of exports and imports share: where items go, what a store holds, and exports made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.exchange.export import export
from commonplace.exchange.import_ import ImportReport, ImportRuntime, import_items
from commonplace.exchange.items import Item
from commonplace.exchange.read import Problem, Source, SourceItem, read_export
from commonplace.graph.kinds import Kinds
from commonplace.graph.runtime import GraphRuntime, Texts
from commonplace.ingest.passages import Destination
from commonplace.memory.validate import MAX_CONTENT_BYTES
from commonplace.models.hashing import HashingEmbedder
from commonplace.store.store import Store

NAMESPACE = "n"
NOW = 1_772_355_600.0  # 2026-03-01T09:00:00Z


def into(store: Store, namespace: str = NAMESPACE) -> ImportRuntime:
    """Return the way into a store whose vectors are made by hashing."""
    embedder = HashingEmbedder()
    store.set_embedding(embedder.stamp)
    destination = Destination(
        store, embedder, lambda text: np.arange(len(text.split()), dtype=np.uint16), namespace, at=NOW
    )
    ground = GraphRuntime(Texts(destination), Kinds(), lambda: NOW)
    return ImportRuntime(store, namespace, lambda: destination, NOW, lambda _: ground)


def import_file(store: Store, path: Path, *, namespace: str = NAMESPACE, **rules: Any) -> ImportReport:
    """Import a file as the engine does."""
    source = Source("commonplace", partial(read_export, path, max_bytes=MAX_CONTENT_BYTES))
    return import_items(source, into(store, namespace), **rules)


def import_given(store: Store, items: Iterable[SourceItem], **rules: Any) -> ImportReport:
    """Import items that stand in no file."""
    given = list(items)
    return import_items(Source("test", lambda: iter(given)), into(store), **rules)


def dump(store: Store, namespace: str = NAMESPACE) -> str:
    """Return the export of a namespace."""
    stream = StringIO()
    export(store, namespace, stream)
    return stream.getvalue()


def read(text: str, path: Path) -> list[Item | Problem]:
    """Return the items of an export, which is written to a file."""
    path.write_text(text, encoding="ascii")
    return list(read_export(path, max_bytes=MAX_CONTENT_BYTES))


def written_by_hand(path: Path, *lines: dict[str, Any] | str, **header: Any) -> Path:
    """Write an export of these lines, with a first and a last line that fit them."""
    first = {"format": "commonplace-export", "version": 2, **header}
    texts = [line if isinstance(line, str) else json.dumps(line) for line in (first, *lines)]
    body = "".join(f"{text}\n" for text in texts)
    end = {"type": "end", "lines": len(texts), "sha256": sha256(body.encode()).hexdigest()}
    path.write_text(f"{body}{json.dumps(end)}\n", encoding="ascii")
    return path


def memory_line(
    id_: str, content: str, *, at: float = 10.0, until: float | None = None, **fields: Any
) -> dict[str, Any]:
    """Return the line of a version; fields are the record's, but for tags and session."""
    owner = {"id": id_, "kind": "memory"} | {name: fields.pop(name) for name in ("tags", "session") if name in fields}
    return {
        "type": "memory",
        "created_at": at,
        "expired_at": until,
        "owner": owner,
        "record": {"content": content, **fields},
    }


def link_line(source: str, target: str, **fields: Any) -> dict[str, Any]:
    """Return the line of a link."""
    return {"type": "link", "link": {"source": source, "target": target, **fields}}


def owner_line(id_: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """Return the line of an owner with a passage for each text."""
    passages = [{"text": text, "start_line": 1, "end_line": 1} for text in texts]
    return {"type": "owner", "owner": {"id": id_, "kind": "artifact", **fields}, "passages": passages}
