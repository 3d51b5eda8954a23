"""Compute the transformer's vectors of the training texts, in parts, so that a stopped run goes on where it was."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.source import Source
from model.teacher import Floats, Teacher, read_safetensors

PART = 4096


def taught_vectors(work: Path, source: Source, tokens: list[NDArray[np.uint16]]) -> Floats:
    """Return float32, shape (len(tokens), 384), unit rows; parts are kept in `work/taught` as float16."""
    directory = work / "taught"
    directory.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(read_safetensors(source.weights))
    parts = []
    started = time.monotonic()
    for start in range(0, len(tokens), PART):
        path = directory / f"{start:06d}.npy"
        if not path.exists():
            vectors = teacher.encode(tokens[start : start + PART]).astype(np.float16)
            unfinished = path.with_suffix(".part.npy")
            np.save(unfinished, vectors)
            unfinished.rename(path)
            print(f"taught {min(start + PART, len(tokens))}/{len(tokens)} texts, {time.monotonic() - started:.0f} s")
        parts.append(np.load(path).astype(np.float32))
    return np.concatenate(parts)


def token_vectors(work: Path, source: Source, vocabulary_size: int) -> Floats:
    """Return float32, shape (vocabulary_size, 384): every token as a text of its own; kept in `work/tokens.npy`."""
    path = work / "tokens.npy"
    if not path.exists():
        teacher = Teacher(read_safetensors(source.weights))
        np.save(path, teacher.encode([np.array([token], np.uint16) for token in range(vocabulary_size)]))
    return np.asarray(np.load(path), np.float32)
