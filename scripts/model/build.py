"""Build the static model from the transformer's package and the training texts, and write it as it ships.

    PYTHONPATH=scripts python -m model.build --work DIR --out src/commonplace/models/data

The development data are found by `--data` or COMMONPLACE_DATA. Slow results are kept in the work directory.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.text.tokens import WordPiece
from model.lessons import Group, groups
from model.pack import write_model
from model.source import PACKAGE, VERSION, Source, fetch
from model.table import Floats, Neighbours, blended, neighbours, principal_axes, rarity_weights, text_frequencies, unit
from model.teach import taught_vectors, token_vectors
from model.teacher import MAX_TOKENS
from model.texts import TEXTS, training_texts
from model.train import Bags, Lesson, Recipe, train

DIMENSIONS = 256
CUTOFF = 0.45
MODEL_VERSION = "2"
RECIPE = Recipe()
MAX_QUERY_TOKENS, MAX_PASSAGE_TOKENS = 64, 192
MAX_PASSAGE_CHARACTERS = 1_200


def centred_tokens(work: Path, source: Source) -> Floats:
    """Return float32, shape (vocabulary, 384): every token through the transformer, less their mean; marks are 0."""
    pieces = source.vocabulary.read_text(encoding="utf-8").splitlines()
    vectors = token_vectors(work, source, len(pieces))
    marks = np.array([len(piece) > 2 and piece[0] == "[" and piece[-1] == "]" for piece in pieces])
    vectors -= vectors[~marks].mean(0)
    vectors[marks] = 0
    return vectors


def token_neighbours(tokens: Floats) -> Neighbours:
    """Return the similar tokens of each, by the transformer's own view of single tokens."""
    return neighbours(tokens, CUTOFF)


def trained_table(work: Path, source: Source, tokens: Floats, data: Path) -> Floats:
    """Return float32, shape (vocabulary, 256): the table regressed on the transformer's vectors of the texts."""
    tokenizer = source.tokenizer()
    texts: list[NDArray[np.uint16]] = [
        np.frombuffer(tokenizer.encode(text), "<u2")[: MAX_TOKENS - 2] for text in training_texts(data)
    ]
    texts = [text for text in texts if len(text)]
    taught = taught_vectors(work, source, texts)
    axes = principal_axes(taught, DIMENSIONS)
    frequencies = text_frequencies(texts, len(tokens))
    start = np.ascontiguousarray(tokens @ axes * rarity_weights(frequencies, len(texts))[:, None])
    lessons = [lesson(group, tokenizer) for group in groups(work, data)]
    trained = train(start, Bags.of(texts), unit(taught @ axes), lessons, RECIPE)
    for side in (side for lesson in lessons for side in (lesson.queries, lesson.passages)):
        frequencies += np.bincount(side.tokens, minlength=len(tokens)).astype(np.float32)
    np.savez(work / "trained.npz", trained=trained, start=start, frequencies=frequencies)
    return blended(trained, start, frequencies)


def lesson(group: Group, tokenizer: WordPiece) -> Lesson:
    """Return the pairs of a group as bags of tokens; those of which a side has none are left out."""
    sides = [
        (
            np.frombuffer(tokenizer.encode(query), "<u2")[:MAX_QUERY_TOKENS],
            np.frombuffer(tokenizer.encode(passage[:MAX_PASSAGE_CHARACTERS]), "<u2")[:MAX_PASSAGE_TOKENS],
        )
        for query, passage in group.pairs
    ]
    queries, passages = zip(*((query, passage) for query, passage in sides if len(query) and len(passage)), strict=True)
    print(f"{group.name}: {len(queries)} pairs", flush=True)
    return Lesson(Bags.of(list(queries)), Bags.of(list(passages)), group.share)


def build(work: Path, data: Path, out: Path) -> None:
    """Write the whole model to `out`."""
    source = fetch(work)
    tokens = centred_tokens(work, source)
    table = trained_table(work, source, tokens, data)
    provenance = {
        "teacher": "sentence-transformers/all-MiniLM-L6-v2, Apache-2.0",
        "package": f"{PACKAGE} {VERSION}",
        "texts": f"{TEXTS} short texts: 83 public repositories (MIT, Apache-2.0, BSD) and MedQuAD (CC BY 4.0)",
        "pairs": "WordNet, the World Factbook, MedQuAD, and sources and manuals of packages that NOTICE names",
        "method": "docs/model.md",
    }
    about = {"name": "static", "version": MODEL_VERSION, "cutoff": CUTOFF, "provenance": provenance}
    write_model(out, source.vocabulary.read_bytes(), table, token_neighbours(tokens), about)


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the static model.")
    parser.add_argument("--work", type=Path, required=True, help="directory for downloads and slow results")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the model to")
    parser.add_argument("--data", type=Path, default=os.environ.get("COMMONPLACE_DATA"), help="development data")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("no training texts; name their directory with --data or COMMONPLACE_DATA")
    build(arguments.work, arguments.data, arguments.out)


if __name__ == "__main__":
    main()
