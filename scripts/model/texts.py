"""Choose the short texts that the table is trained on; knows the layout of the development data, no model."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

TEXTS = 160_000
SEED = 20_240_229
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")


def training_texts(data: Path) -> list[str]:
    """Return the texts in a fixed random order: all of `prose`, then sentences of medquad's passages to fill up.

    Judgements, queries and the other collections are never read, so that they stay fit to measure with.
    """
    with gzip.open(data / "prose" / "sentences.jsonl.gz", "rt", encoding="utf-8") as lines:
        prose = dict.fromkeys(json.loads(line)["text"] for line in lines)
    with (data / "medquad" / "corpus.jsonl").open(encoding="utf-8") as lines:
        passages = [json.loads(line)["text"] for line in lines]
    sentences = dict.fromkeys(
        sentence for passage in passages for sentence in _SENTENCE_END.split(passage) if len(sentence) >= 20
    )
    order = random.Random(SEED)  # noqa: S311 - a sample, no secret
    texts = list(prose)[:TEXTS]
    texts += order.sample(sorted(sentences), min(len(sentences), TEXTS - len(texts)))
    order.shuffle(texts)
    return texts
