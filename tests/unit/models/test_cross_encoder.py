"""The reader of pairs: it computes the corrected network, reads a pair once, and fails clearly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.stubs import tiny_minilm
from tests.stubs.tiny_minilm import HEADS, LAYERS, SQUARES, WORDS

from commonplace.errors import ModelError
from commonplace.memory.supersession import DOUBTED
from commonplace.models import cross_encoder
from commonplace.models.cross_encoder import MANIFEST, MAX_TOKENS, WEIGHTS, CrossEncoder
from commonplace.models.minilm import END, START, MinilmEmbedder
from commonplace.models.static import StaticEmbedder

OLDER, NEWER = np.array([2003, 3899, 2023], np.uint16), np.array([2175, 2003], np.uint16)


def expected(parts: dict[str, np.ndarray]) -> np.ndarray:
    """Return what float32 makes of the pair: corrections added to the weights, the segment to words of their own."""
    tensors = tiny_minilm.as_shipped(tiny_minilm.tensors())
    added = np.einsum("nwr,nrv->nvw", parts["into"].astype(np.float32), parts["out"].astype(np.float32))
    names = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    for number in range(LAYERS):
        own = added[number * SQUARES : (number + 1) * SQUARES]
        prefix = f"encoder.layer.{number}."
        for name, square in zip(names, own, strict=False):
            tensors[f"{prefix}{name}.weight"] = tensors[f"{prefix}{name}.weight"] + square
        tensors[f"{prefix}intermediate.dense.weight"] = tensors[f"{prefix}intermediate.dense.weight"] + np.vstack(
            own[4:6]
        )
        tensors[f"{prefix}output.dense.weight"] = tensors[f"{prefix}output.dense.weight"] + np.hstack(own[6:8])
    words = "embeddings.word_embeddings.weight"
    second = [*NEWER.tolist(), END]
    tensors[words] = np.vstack([tensors[words], tensors[words][second] + parts["segment"].astype(np.float32)])
    ids = np.array([START, *OLDER, END, *range(WORDS, WORDS + len(second))], dtype=np.int64)
    state = tiny_minilm.script("bert").states(tensors, HEADS, ids)[0]
    return parts["scores"].astype(np.float32) @ state + parts["biases"].astype(np.float32)


def test_the_corrected_network_is_computed_over_both_texts(tmp_path: Path) -> None:
    tiny_minilm.write(tmp_path)
    parts = tiny_minilm.write_corrections(tmp_path)
    assert CrossEncoder(tmp_path).log_odds([(OLDER, NEWER)])[0] == pytest.approx(expected(parts), abs=2e-2)


def test_the_order_of_the_two_matters_and_no_other_pair_does(tmp_path: Path) -> None:
    tiny_minilm.write(tmp_path)
    alone = CrossEncoder(tmp_path).log_odds([(OLDER, NEWER)])
    both = CrossEncoder(tmp_path).log_odds([(NEWER, OLDER), (OLDER, NEWER)])
    assert both[1].tolist() == alone[0].tolist() != both[0].tolist()


def test_a_pair_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour that comes has pairs judged anew of which no word has changed."""
    tiny_minilm.write(tmp_path)
    reader = CrossEncoder(tmp_path)
    first = reader.log_odds([(OLDER, NEWER)])
    monkeypatch.setattr(MinilmEmbedder, "read_pair", None)
    assert reader.log_odds([(OLDER, NEWER)]).tolist() == first.tolist()


def test_of_long_texts_the_beginning_is_read() -> None:
    reader = CrossEncoder.load()
    long = np.resize(OLDER, MAX_TOKENS + 5)
    for cut in ((long[:MAX_TOKENS], NEWER), (OLDER, long[:MAX_TOKENS])):
        whole = tuple(long if len(text) == MAX_TOKENS else text for text in cut)
        assert CrossEncoder.load().log_odds([whole]).tolist() == reader.log_odds([cut]).tolist()


def test_another_value_of_what_cannot_change_leaves_doubt_and_plain_news_does_not() -> None:
    ids = StaticEmbedder.load().tokenize
    pairs = [
        ("Mira was born on 3 May 1990.", "Mira was born on 5 May 1990."),
        ("Deployments go out on Thursdays.", "Deployments go out on Fridays now."),
    ]
    birth, days = CrossEncoder.load().log_odds([(ids(older), ids(newer)) for older, newer in pairs])
    assert birth[1] > DOUBTED > days[1]
    assert days[0] > 0


def test_pairs_are_read_while_the_interpreter_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may save its last memory when no thread can be started any more."""
    tiny_minilm.write(tmp_path)
    pairs = [(NEWER, OLDER), (OLDER, NEWER)]
    before = CrossEncoder(tmp_path).log_odds(pairs).tolist()

    def fail(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", fail)
    assert CrossEncoder(tmp_path).log_odds(pairs).tolist() == before


def test_no_pair_has_no_odds() -> None:
    assert CrossEncoder.load().log_odds([]).shape == (0, 2)


@pytest.mark.parametrize("name", [WEIGHTS, MANIFEST])
def test_missing_weights_are_refused(name: str, tmp_path: Path) -> None:
    tiny_minilm.write(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=name):
        CrossEncoder(tmp_path)


def test_a_manifest_of_another_rank_is_refused(tmp_path: Path) -> None:
    """The parts would be cut in wrong places, and every odds be nonsense."""
    tiny_minilm.write(tmp_path)
    manifest = tmp_path / MANIFEST
    manifest.write_text(manifest.read_text().replace('"rank": 3', '"rank": 2'))
    with pytest.raises(ModelError, match="rank 2"):
        CrossEncoder(tmp_path)


def test_changed_weights_are_found(tmp_path: Path) -> None:
    tiny_minilm.write(tmp_path)
    cross_encoder.verify(tmp_path)
    data = bytearray((tmp_path / WEIGHTS).read_bytes())
    data[7] ^= 1
    (tmp_path / WEIGHTS).write_bytes(data)
    with pytest.raises(ModelError, match="sha256"):
        cross_encoder.verify(tmp_path)
