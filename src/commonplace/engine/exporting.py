"""The artifact index in the form that the auto-retrieval contract gives it, for other tools. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.times import iso

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.types import Owner

EXPORT_VERSION = "1.0.0"


def artifact_index(store: Store, namespace: str) -> dict[str, Any]:
    """Return all artifacts of a namespace, by path, each with the unit mean of its passages' vectors."""
    with store.snapshot():
        return _document(store, namespace)


def _document(store: Store, namespace: str) -> dict[str, Any]:
    embedding = store.embedding()
    sums: dict[int, NDArray[np.float32]] = {}
    for entry in store.entries_since(0, store.change()):
        if entry.namespace == namespace and entry.kind == "artifact":
            vector = np.frombuffer(entry.vector, dtype=np.int8).astype(np.float32)
            sums[entry.owner_number] = sums.get(entry.owner_number, np.float32(0)) + _unit(vector)
    return {
        "version": EXPORT_VERSION,
        "namespace": namespace,
        "change": store.change(),
        "embedding_config": {
            "model": embedding.name if embedding else None,
            "dimensions": embedding.dimensions if embedding else None,
        },
        "artifacts": [_artifact(owner, sums.get(number)) for number, owner in store.artifacts(namespace)],
    }


def _artifact(owner: Owner, total: NDArray[np.float32] | None) -> dict[str, Any]:
    return {
        "path": owner.path,
        "embedding": [] if total is None else [round(float(value), 6) for value in _unit(total)],
        "type": owner.type,
        "last_modified": iso(owner.at),
        "metadata": {
            "title": owner.title,
            "tags": list(owner.tags),
            "phase": owner.phase or None,
            "references": list(owner.references),
            "summary": owner.summary,
            "sha256": owner.stamp.sha256 if owner.stamp else None,
        },
    }


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = float(np.linalg.norm(vector))
    return (vector / np.float32(norm)).astype(np.float32) if norm else vector
