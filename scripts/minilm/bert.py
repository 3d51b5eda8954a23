"""Run a BERT sentence transformer on one text in float32, step by step: the measure of what the shipped one computes.

The network is that of Devlin et al. 2019; the vector of a text is the mean of the last layer over its tokens, scaled to
length 1, as sentence-transformers computes it. It is exact and slow; `model.teacher` is the fast one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

EPSILON = 1e-12
_erf = np.vectorize(math.erf, otypes=[np.float32])


def layer(tensors: Tensors, number: int) -> dict[str, Floats]:
    """Return the tensors of one layer, by their names within it."""
    prefix = f"encoder.layer.{number}."
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def embed(tensors: Tensors, heads: int, token_ids: NDArray[np.integer[Any]]) -> Floats:
    """Return the vector of a text, float32, shape (d,), unit length; its tokens have their marks already."""
    mean = states(tensors, heads, token_ids).mean(0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)


def states(tensors: Tensors, heads: int, token_ids: NDArray[np.integer[Any]]) -> Floats:
    """Return the last layer over a text's tokens, float32, shape (n, d)."""
    hidden = tensors["embeddings.word_embeddings.weight"][token_ids]
    hidden = hidden + tensors["embeddings.position_embeddings.weight"][: len(token_ids)]
    hidden = hidden + tensors["embeddings.token_type_embeddings.weight"][0]
    hidden = _normalised(hidden, tensors, "embeddings.LayerNorm")
    for number in range(sum(name.endswith("intermediate.dense.bias") for name in tensors)):
        hidden = _layer(hidden, layer(tensors, number), heads)
    return hidden


def _layer(hidden: Floats, part: Tensors, heads: int) -> Floats:
    query, key, value = (
        _linear(hidden, part, f"attention.self.{name}").reshape(len(hidden), heads, -1).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(query.shape[-1]))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    context = (shares @ value).transpose(1, 0, 2).reshape(hidden.shape)
    attended = _linear(context, part, "attention.output.dense") + hidden
    attended = _normalised(attended, part, "attention.output.LayerNorm")
    inner = _linear(attended, part, "intermediate.dense")
    inner = inner * (1 + _erf(inner / np.float32(math.sqrt(2)))) / 2
    return _normalised(_linear(inner, part, "output.dense") + attended, part, "output.LayerNorm")


def _linear(rows: Floats, tensors: Tensors, name: str) -> Floats:
    return np.asarray(rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"], np.float32)


def _normalised(rows: Floats, tensors: Tensors, name: str) -> Floats:
    centred = rows - rows.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(EPSILON))
    return np.asarray(centred / spread * tensors[f"{name}.weight"] + tensors[f"{name}.bias"], np.float32)
