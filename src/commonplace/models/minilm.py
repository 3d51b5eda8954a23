"""Embed a text by all-MiniLM-L6-v2, a small sentence transformer, under onnxruntime; it knows no store and no search.

The model is an int8 ONNX file in a distribution of its own, `commonplace-minilm`; docs/model.md tells how it is made.
It is loaded with the first text. Texts are computed one by one, two at a time: a batch would be no faster, and one text
would change the rounding of another.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import MissingExtraError, ModelError
from commonplace.types import Embedding

if TYPE_CHECKING:
    from commonplace.models.contract import TokenizedText

NAME: Final = "minilm"
SCHEMA: Final = "commonplace-minilm/1"
MANIFEST, MODEL = "model.json", "model.onnx"
START, END = 101, 102
"""The tokens `[CLS]` and `[SEP]`, between which the model expects a text."""
THREADS: Final = 2
_REMEDY: Final = "reinstall commonplace-minilm"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `model.json` says.

    Attributes:
        max_tokens: the most that a text has, start and end included; a longer one is embedded by its beginning.
        size, sha256: of `model.onnx`.
    """

    stamp: Embedding
    max_tokens: int
    size: int
    sha256: str


class MinilmEmbedder:
    """The transformer with its weights. Safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        """Name a model; `model.json` is read, the rest with the first text.

        Raises:
            ModelError: a file is missing, or not what the manifest says.
        """
        self._manifest = read_manifest(directory)
        self._path = directory / MODEL
        self._loading = threading.Lock()
        self._session: Any = None

    @classmethod
    def load(cls) -> Self:
        """Return the embedder over the installed model.

        Raises:
            MissingExtraError: the model or onnxruntime is not installed.
            ModelError: the model's files are missing or damaged.
        """
        return cls(installed())

    @property
    def stamp(self) -> Embedding:
        """Name, version and dimensions of the model."""
        return self._manifest.stamp

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without words gives zeros.

        The vector of a text does not depend on what else is in the batch.

        Raises:
            ModelError: onnxruntime cannot load the model.
        """
        vectors = np.zeros((len(texts), self.stamp.dimensions), np.float32)
        places = [place for place, text in enumerate(texts) if len(text.token_ids)]
        if not places:
            return vectors
        session = self._loaded()

        def run(place: int) -> None:
            (vectors[place],) = session.run(None, {"token_ids": self._marked(texts[place].token_ids)})

        if len(places) == 1:
            run(places[0])
            return vectors
        from concurrent.futures import ThreadPoolExecutor

        # The longest first: so no thread is left with one when the other has nothing to do.
        places.sort(key=lambda place: -len(texts[place].token_ids))
        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
            list(pool.map(run, places))
        return vectors

    def _marked(self, token_ids: NDArray[np.uint16]) -> NDArray[np.int64]:
        kept = token_ids[: self._manifest.max_tokens - 2]
        return np.concatenate([[START], kept, [END]]).astype(np.int64)

    def _loaded(self) -> Any:
        with self._loading:
            if self._session is None:
                self._session = _session(self._path)
            return self._session


def installed() -> Path:
    """Return the directory of the installed model; nothing heavy is imported.

    Raises:
        MissingExtraError: the model or onnxruntime is not installed.
    """
    from importlib.util import find_spec

    missing = [name for name in ("commonplace_minilm", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"the embedder {NAME!r} needs {' and '.join(missing).replace('_', '-')}",
            remedy="install it with: pip install 'commonplace[minilm]'",
        )
    from commonplace_minilm import DIRECTORY

    return Path(DIRECTORY)


def read_manifest(directory: Path) -> Manifest:
    """Return what a model's `model.json` says, and check the size of the model itself.

    Raises:
        ModelError: a file is missing, of another schema, or has another size.
    """
    path, model = directory / MANIFEST, directory / MODEL
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ModelError(f"{path} has schema {document['schema']!r}, expected {SCHEMA!r}", remedy=_REMEDY)
        stamp = Embedding(document["name"], document["version"], document["dimensions"])
        manifest = Manifest(stamp, document["max_tokens"], document["size"], document["sha256"])
        size = model.stat().st_size
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the model in {directory} cannot be read: {error!r}", remedy=_REMEDY) from error
    if size != manifest.size:
        raise ModelError(f"{model} has {size} bytes, expected {manifest.size}", remedy=_REMEDY)
    return manifest


def verify(directory: Path) -> None:
    """Read every byte of the model and compare it with what the manifest says.

    Raises:
        ModelError: it is missing or different.
    """
    import hashlib

    manifest = read_manifest(directory)
    with (directory / MODEL).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != manifest.sha256:
        raise ModelError(f"{directory / MODEL} has sha256 {found}, expected {manifest.sha256}", remedy=_REMEDY)


def _session(path: Path) -> Any:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as faults

    options = onnxruntime.SessionOptions()
    # Threads of its own would not survive a fork; two texts at a time use two cores as well.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (
        faults.Fail,
        faults.InvalidGraph,
        faults.InvalidProtobuf,
        faults.NoSuchFile,
        faults.NotImplemented,
    ) as error:
        raise ModelError(f"onnxruntime cannot load {path}: {error}", remedy=_REMEDY) from error
