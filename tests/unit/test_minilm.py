"""The embedder `minilm`: its graph computes what the network does, whatever stands beside a text, and fails clearly.

A model of chance weights stands for the real one, which no checkout holds; what needs that one says so and is skipped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.stubs import tiny_minilm

from commonplace.errors import MissingExtraError, ModelError
from commonplace.models import minilm
from commonplace.models.absent import AbsentEmbedder
from commonplace.models.contract import TokenizedText
from commonplace.models.minilm import END, MANIFEST, MODEL, START, MinilmEmbedder
from commonplace.models.opening import open_embedder
from commonplace.models.static import StaticEmbedder
from commonplace.types import Embedding

SENTENCES = ["Where are sessions refreshed?", "rice", "We chose Postgres, because the ledger needs transactions."]


def tokenized(texts: list[str]) -> list[TokenizedText]:
    tokenizer = StaticEmbedder.load()
    return [TokenizedText(text, tokenizer.tokenize(text)) for text in texts]


def marked(text: TokenizedText) -> np.ndarray:
    return np.array([START, *text.token_ids, END])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_minilm.write(tmp_path_factory.mktemp("tiny"))


def test_the_graph_computes_the_network_exactly(tmp_path: Path) -> None:
    """With weights as they are only the order of sums differs: the layers are wired as in the paper."""
    model = MinilmEmbedder(tiny_minilm.write(tmp_path, quantised=False))
    texts = tokenized(SENTENCES)
    np.testing.assert_allclose(
        model.embed(texts), np.stack([tiny_minilm.expected(marked(text)) for text in texts]), atol=2e-6
    )


def test_small_weights_move_a_vector_but_little(directory: Path) -> None:
    """Eight bits are a quarter of the size; what they cost in the real model is told in docs/model.md."""
    texts = tokenized(SENTENCES)
    found = MinilmEmbedder(directory).embed(texts)
    cosines = [float(row @ tiny_minilm.expected(marked(text))) for row, text in zip(found, texts, strict=True)]
    assert min(cosines) > 0.99


def test_weights_of_products_keep_seven_bits() -> None:
    """With eight, pairs of products overflow on processors without VNNI, and a store would not fit another machine."""
    graph = tiny_minilm.script("graph")
    rows, scales = graph.quantised(np.array([[0.25, -1.0, 0.0], [0.0, 0.0, 0.0]], np.float32), graph.LARGEST)
    assert graph.LARGEST * 255 * 2 < 2**15
    np.testing.assert_array_equal(rows, [[16, -63, 0], [0, 0, 0]])
    np.testing.assert_allclose(rows * scales[:, np.newaxis], [[0.254, -1, 0], [0, 0, 0]], atol=1e-3)


def test_a_long_text_is_embedded_by_its_beginning(directory: Path) -> None:
    """The model has no positions for more; the marks of start and end stay."""
    (long,) = tokenized(["one two three four five " * 20])
    kept = TokenizedText("", long.token_ids[: tiny_minilm.TOKENS - 2])
    model = MinilmEmbedder(directory)
    np.testing.assert_array_equal(model.embed([long]), model.embed([kept]))
    assert float(model.embed([long])[0] @ tiny_minilm.expected(marked(kept))) > 0.99


def test_the_same_weights_give_the_same_file(directory: Path, tmp_path: Path) -> None:
    """Whoever builds the model can compare it with what is published."""
    again = tiny_minilm.write(tmp_path)
    assert (again / MODEL).read_bytes() == (directory / MODEL).read_bytes()
    assert (again / MANIFEST).read_bytes() == (directory / MANIFEST).read_bytes()


@pytest.mark.parametrize("missing", ["commonplace_minilm", "onnxruntime"])
def test_without_the_extra_the_error_says_how_to_install_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else object())
    with pytest.raises(
        MissingExtraError, match=r"needs .*; install it with: pip install 'commonplace\[minilm\]'"
    ) as told:
        open_embedder("minilm")
    assert missing.replace("_", "-") in str(told.value)


def test_a_store_can_be_opened_without_the_extra_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, mending and leaving for another embedder need no vectors; only making new ones fails."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    stored = Embedding("minilm", "1", 384)
    absent = open_embedder("minilm", stored=stored)
    assert isinstance(absent, AbsentEmbedder)
    assert absent.stamp == stored
    assert absent.embed([]).shape == (0, 384)
    with pytest.raises(MissingExtraError, match=r"pip install 'commonplace\[minilm\]'"):
        absent.embed(tokenized(["rice"]))
    with pytest.raises(MissingExtraError):
        open_embedder("minilm", stored=Embedding("static", "1", 256))


def test_a_model_cut_short_is_refused_at_once(directory: Path, tmp_path: Path) -> None:
    """An interrupted installation must not fail in the middle of an indexing."""
    (tmp_path / MANIFEST).write_bytes((directory / MANIFEST).read_bytes())
    with pytest.raises(ModelError, match="cannot be read"):
        MinilmEmbedder(tmp_path)
    (tmp_path / MODEL).write_bytes((directory / MODEL).read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"has \d+ bytes, expected \d+; reinstall commonplace-minilm"):
        MinilmEmbedder(tmp_path)


def test_a_damaged_model_is_an_error_of_ours(directory: Path, tmp_path: Path) -> None:
    """onnxruntime's own errors tell nobody what to do; the checksum tells before it is loaded."""
    data = bytearray((directory / MODEL).read_bytes())
    data[:64] = bytes(64)
    (tmp_path / MODEL).write_bytes(data)
    (tmp_path / MANIFEST).write_bytes((directory / MANIFEST).read_bytes())
    with pytest.raises(ModelError, match="has sha256"):
        minilm.verify(tmp_path)
    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        MinilmEmbedder(tmp_path).embed(tokenized(["rice"]))
    minilm.verify(directory)


@pytest.mark.parametrize(
    ("change", "said"), [({"schema": "other/1"}, "has schema 'other/1'"), ({"size": None}, "bytes")]
)
def test_another_manifest_is_refused(change: dict[str, object], said: str, directory: Path, tmp_path: Path) -> None:
    document = json.loads((directory / MANIFEST).read_text()) | change
    (tmp_path / MANIFEST).write_text(json.dumps(document))
    (tmp_path / MODEL).write_bytes((directory / MODEL).read_bytes())
    with pytest.raises(ModelError, match=said):
        MinilmEmbedder(tmp_path)


def test_onnxruntime_is_loaded_with_the_first_text(directory: Path) -> None:
    """A process that only lists memories pays nothing for the model that once embedded them."""
    import subprocess

    program = (
        "import sys\nfrom pathlib import Path\nfrom commonplace.models.minilm import MinilmEmbedder\n"
        f"MinilmEmbedder(Path({str(directory)!r})).embed([])\nprint('onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.minilm
def test_the_installed_model_is_the_one_that_the_weights_give() -> None:
    """Paraphrases lie near each other, and what is not related does not."""
    model = MinilmEmbedder.load()
    minilm.verify(minilm.installed())
    assert model.stamp == Embedding("minilm", "1", 384)
    vectors = model.embed(
        tokenized(["How do I reset my password?", "I forgot my login credentials", "Rice is boiled in salted water"])
    )
    assert vectors[0] @ vectors[1] > 0.5
    assert vectors[0] @ vectors[2] < 0.15


def as_floats(path: Path) -> dict[str, np.ndarray]:
    """Return the weights that a model file holds, by the names of the network, as float32."""
    import onnx
    from onnx import numpy_helper

    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    scale = np.float32(32**0.5)  # the graph has the scale of attention in the query's weights

    def product(name: str) -> np.ndarray:
        return (held[f"{name}.weight"] * held[f"{name}.scale"]).T

    found = {
        "embeddings.word_embeddings.weight": held["words"] * held["words.scale"],
        "embeddings.position_embeddings.weight": held["positions"],
        "embeddings.token_type_embeddings.weight": np.zeros((2, 384), np.float32),
    }
    for kind in ("weight", "bias"):
        found[f"embeddings.LayerNorm.{kind}"] = held[f"embeddings.embeddings.LayerNorm.{kind}"]
    for number in range(6):
        here, there = f"layer.{number}", f"encoder.layer.{number}"
        qkv = zip(np.split(product(f"{here}.qkv"), 3), np.split(held[f"{here}.qkv.bias"], 3), strict=True)
        for name, factor, (weight, bias) in zip(("query", "key", "value"), (scale, 1, 1), qkv, strict=True):
            found[f"{there}.attention.self.{name}.weight"] = weight * factor
            found[f"{there}.attention.self.{name}.bias"] = bias * factor
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            found[f"{there}.{name}.weight"] = product(f"{here}.{name}")
            found[f"{there}.{name}.bias"] = held[f"{here}.{name}.bias"]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            for kind in ("weight", "bias"):
                found[f"{there}.{name}.{kind}"] = held[f"{here}.{name}.{kind}"]
    return {name: values.astype(np.float32) for name, values in found.items()}


@pytest.mark.minilm
def test_the_installed_model_computes_what_numpy_does_with_its_weights() -> None:
    """What is left between them is the rounding of what goes into each product."""
    bert = tiny_minilm.script("bert")
    tensors = as_floats(minilm.installed() / MODEL)
    texts = tokenized([*SENTENCES, "def refresh(token): return store.renew(token, ttl_s=3600)"])
    found = MinilmEmbedder.load().embed(texts)
    expected = np.stack([bert.embed(tensors, bert.Shape(), marked(text).astype(np.int64)) for text in texts])
    assert (found * expected).sum(1).min() > 0.99
