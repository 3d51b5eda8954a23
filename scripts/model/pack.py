"""Write a table as the files that ship; the layout is that of `commonplace.models.static`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from commonplace.models import static
from model.table import Floats, Neighbours, quantised


def write_model(
    directory: Path, vocabulary: bytes, table: Floats, similar: Neighbours, about: Mapping[str, object]
) -> None:
    """Write every file and the manifest.

    Args:
        directory: created if need be.
        vocabulary: the pieces, one a line.
        table: float32, shape (vocabulary, d).
        about: what the manifest says beside sizes and hashes: name, version, cutoff, provenance.
    """
    rows, scales = quantised(table)
    lists = [
        similar.tokens[start:end].astype("<u2").tobytes() + similar.cosines[start:end].tobytes()
        for start, end in zip(similar.starts[:-1], similar.starts[1:], strict=True)
    ]
    files = {
        static.VOCABULARY: vocabulary,
        static.VECTORS: rows.tobytes(),
        static.SCALES: scales.astype("<f4").tobytes(),
        static.NEIGHBOURS: b"".join(lists),
        static.NEIGHBOUR_STARTS: similar.starts.astype("<u4").tobytes(),
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    entries = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    manifest = {
        "schema": static.SCHEMA,
        **about,
        "dimensions": int(np.shape(table)[1]),
        "vocabulary_size": len(table),
        "files": entries,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (directory / static.MANIFEST).write_text(text, encoding="utf-8")
