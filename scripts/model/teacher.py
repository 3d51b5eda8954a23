"""Run all-MiniLM-L6-v2 in NumPy; knows token ids and weights, no text.

The network is BERT (Devlin et al. 2019) with 6 layers, 384 dimensions and 12 heads; a sentence vector is the mean of
the last layer over its tokens, start and end marks included, as sentence-transformers computes it.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.models.minilm import gelu

Floats = NDArray[np.float32]

LAYERS = 6
HEADS = 12
DIMENSIONS = 384
EPSILON = np.float32(1e-12)
START, END = 101, 102
MAX_TOKENS = 64
TOKENS_PER_BATCH = 2048
THREADS = 2


def read_safetensors(path: Path) -> dict[str, Floats]:
    """Return the float32 tensors of a safetensors file: a length, a JSON header with offsets, then the data."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            count = int(np.prod(entry["shape"]))
            flat = np.frombuffer(data, "<f4", count, start + entry["data_offsets"][0])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Teacher:
    """The transformer, ready to turn token ids into sentence vectors."""

    def __init__(self, tensors: Mapping[str, Floats]) -> None:
        self._tensors = tensors
        self._layers = [self._layer(f"encoder.layer.{number}.") for number in range(LAYERS)]

    def encode(self, texts: Sequence[NDArray[np.uint16]]) -> Floats:
        """Return float32, shape (len(texts), 384), rows of unit length; a text is cut after 62 tokens.

        Batches run on threads of their own: set OPENBLAS_NUM_THREADS=1 to keep the products off each other's cores.
        """
        lengths = [min(len(text), MAX_TOKENS - 2) + 2 for text in texts]
        result = np.empty((len(texts), DIMENSIONS), np.float32)

        def run(rows: NDArray[np.int64]) -> None:
            ids = np.zeros((len(rows), lengths[rows[0]]), np.int64)
            present = np.zeros(ids.shape, np.float32)
            for line, row in enumerate(rows):
                ids[line, : lengths[row]] = [START, *texts[row][: MAX_TOKENS - 2], END]
                present[line, : lengths[row]] = 1
            result[rows] = self._forward(ids, present)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(run, batches(lengths)))
        return result

    def _layer(self, prefix: str) -> dict[str, Floats]:
        part = {name.removeprefix(prefix): value for name, value in self._tensors.items() if name.startswith(prefix)}
        names = [f"attention.self.{kind}" for kind in ("query", "key", "value")]
        fused = {
            "qkv.weight": np.concatenate([part[f"{name}.weight"] for name in names]).T.copy(),
            "qkv.bias": np.concatenate([part[f"{name}.bias"] for name in names]),
        }
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            fused[f"{name}.weight"] = part[f"{name}.weight"].T.copy()
            fused[f"{name}.bias"] = part[f"{name}.bias"]
        norms = {name: value for name, value in part.items() if "LayerNorm" in name}
        return fused | norms

    def _forward(self, ids: NDArray[np.int64], present: Floats) -> Floats:
        tensors, width = self._tensors, ids.shape[1]
        hidden = tensors["embeddings.word_embeddings.weight"][ids]
        hidden += tensors["embeddings.position_embeddings.weight"][:width]
        hidden += tensors["embeddings.token_type_embeddings.weight"][0]
        _normalise(hidden, tensors, "embeddings.LayerNorm")
        hidden = hidden.reshape(-1, DIMENSIONS)
        absent = ((1 - present) * np.float32(-1e9))[:, None, None, :]
        for layer in self._layers:
            hidden = _block(hidden, layer, absent)
        states = hidden.reshape(*ids.shape, DIMENSIONS)
        means: Floats = np.einsum("btd,bt->bd", states, present) / present.sum(1, keepdims=True)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def batches(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers in batches of like length, longest first, none with more padded tokens than the limit."""
    order = np.argsort([-length for length in lengths], kind="stable")
    start = 0
    while start < len(order):
        count = max(1, TOKENS_PER_BATCH // lengths[order[start]])
        yield order[start : start + count]
        start += count


def _block(hidden: Floats, layer: Mapping[str, Floats], absent: Floats) -> Floats:
    count, width = absent.shape[0], absent.shape[3]
    qkv = hidden @ layer["qkv.weight"]
    qkv += layer["qkv.bias"]
    query, key, value = np.ascontiguousarray(
        qkv.reshape(count, width, 3, HEADS, DIMENSIONS // HEADS).transpose(2, 0, 3, 1, 4)
    )
    scores = query @ key.transpose(0, 1, 3, 2)
    scores *= np.float32((DIMENSIONS // HEADS) ** -0.5)
    scores += absent
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    context = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, DIMENSIONS)
    attended = context @ layer["attention.output.dense.weight"]
    attended += layer["attention.output.dense.bias"]
    attended += hidden
    _normalise(attended, layer, "attention.output.LayerNorm")
    inner = attended @ layer["intermediate.dense.weight"]
    inner += layer["intermediate.dense.bias"]
    gelu(inner)
    out: Floats = inner @ layer["output.dense.weight"]
    out += layer["output.dense.bias"]
    out += attended
    _normalise(out, layer, "output.LayerNorm")
    return out


def _normalise(rows: Floats, tensors: Mapping[str, Floats], name: str) -> None:
    rows -= rows.mean(-1, keepdims=True)
    variance = np.einsum("...d,...d->...", rows, rows)[..., None] / np.float32(rows.shape[-1])
    rows /= np.sqrt(variance + EPSILON)
    rows *= tensors[f"{name}.weight"]
    rows += tensors[f"{name}.bias"]
