"""A sentence transformer of chance weights, built as the real one is: two layers, 32 dimensions, no meaning."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

SCRIPTS = Path(__file__).parents[2] / "scripts"
WORDS, WIDTH, INNER, LAYERS, HEADS, TOKENS = 30_522, 32, 64, 2, 4, 24


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


def write(directory: Path) -> Path:
    """Write the model and its manifest to a directory, and return it."""
    build = script("build")
    build.write_model(directory, tensors(), build.network_of(tensors(), HEADS, TOKENS))
    return directory


def expected(token_ids: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return what float32 makes of a text whose tokens have their marks."""
    return script("bert").embed(tensors(), HEADS, token_ids.astype(np.int64))
