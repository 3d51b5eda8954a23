"""A sentence transformer of chance weights, built as the real one is: two layers, 32 dimensions, no meaning."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from commonplace.models import cross_encoder

SCRIPTS = Path(__file__).parents[2] / "scripts"
WORDS, WIDTH, INNER, LAYERS, HEADS, TOKENS = 30_522, 32, 64, 2, 4, 24
RANK, SQUARES = 3, 8


def script(name: str) -> ModuleType:
    """Import a module of `scripts/minilm`."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module(f"minilm.{name}")
    finally:
        sys.path.remove(str(SCRIPTS))


@cache
def tensors() -> dict[str, NDArray[np.float32]]:
    """Return the weights, by the names of the real one."""
    chance = np.random.default_rng(7)
    sizes = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (2 * TOKENS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for name in ("query", "key", "value"):
            sizes[f"{layer}.attention.self.{name}"] = (WIDTH, WIDTH)
        sizes[f"{layer}.attention.output.dense"] = (WIDTH, WIDTH)
        sizes[f"{layer}.attention.output.LayerNorm"] = (WIDTH,)
        sizes[f"{layer}.intermediate.dense"] = (INNER, WIDTH)
        sizes[f"{layer}.output.dense"] = (WIDTH, INNER)
        sizes[f"{layer}.output.LayerNorm"] = (WIDTH,)
    found = {}
    for name, size in sizes.items():
        if name.endswith(".weight"):
            # Words weigh more than places, so that texts that share words are alike.
            found[name] = chance.normal(0, 1 if "word" in name else 0.1, size)
            continue
        is_norm = name.endswith("LayerNorm")
        found[f"{name}.weight"] = chance.normal(1, 0.1, size) if is_norm else chance.normal(0, 0.2, size)
        found[f"{name}.bias"] = chance.normal(0, 0.1, size[0])
    return {name: values.astype(np.float32) for name, values in found.items()}


def as_shipped(weights: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Return tensors of the network as the file holds them: rounded to int8, square by square."""
    build = script("build")

    def rounded(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        small, scales = build.quantised(rows)
        return small * scales[:, np.newaxis]

    def rounded_tensor(name: str, tensor: NDArray[np.float32]) -> NDArray[np.float32]:
        if tensor.ndim == 1 or "position" in name or "token_type" in name:
            return tensor
        if ".output.dense" in name and "attention" not in name:
            return np.hstack([rounded(part) for part in np.split(tensor, tensor.shape[1] // WIDTH, axis=1)])
        return rounded(tensor)

    return {name: rounded_tensor(name, tensor) for name, tensor in weights.items()}


def write(directory: Path) -> Path:
    """Write the model and the corrections to a directory, with their manifests, and return it."""
    build = script("build")
    build.write_model(directory, tensors(), build.network_of(tensors(), HEADS, TOKENS))
    write_corrections(directory)
    return directory


def write_corrections(directory: Path) -> dict[str, NDArray[np.float16]]:
    """Write corrections of chance with which the model reads pairs, and return them."""
    chance, count = np.random.default_rng(5), LAYERS * SQUARES
    sizes = {
        "into": (count, WIDTH, RANK),
        "out": (count, RANK, WIDTH),
        "segment": (WIDTH,),
        "scores": (2, WIDTH),
        "biases": (2,),
    }
    parts = {name: chance.normal(0, 0.2, size).astype(np.float16) for name, size in sizes.items()}
    data = b"".join(part.astype("<f2").tobytes() for part in parts.values())
    (directory / cross_encoder.WEIGHTS).write_bytes(data)
    manifest = {
        "schema": cross_encoder.SCHEMA,
        "rank": RANK,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (directory / cross_encoder.MANIFEST).write_text(json.dumps(manifest))
    return parts


def expected(token_ids: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return what float32 makes of a text whose tokens have their marks."""
    return script("bert").embed(tensors(), HEADS, token_ids.astype(np.int64))
