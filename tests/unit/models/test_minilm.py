"""The embedder `minilm`: it computes what the network does, whatever stands beside a text, and fails clearly."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.stubs import tiny_minilm
from tests.unit.blas import two_threads

from commonplace.errors import ModelError
from commonplace.models import minilm
from commonplace.models.contract import TokenizedText
from commonplace.models.minilm import END, MANIFEST, START, WEIGHTS, MinilmEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.types import Embedding

SENTENCES = ["Where are sessions refreshed?", "rice", "We chose Postgres, because the ledger needs transactions."]
WINDOW = tiny_minilm.TOKENS - 2
pytestmark = pytest.mark.usefixtures("vectors_made_anew")


def tokenized(texts: list[str]) -> list[TokenizedText]:
    tokenizer = StaticEmbedder.load()
    return [TokenizedText(text, tokenizer.tokenize(text)) for text in texts]


def marked(token_ids: np.ndarray) -> np.ndarray:
    return np.array([START, *token_ids, END])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_minilm.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def shipped() -> MinilmEmbedder:
    return MinilmEmbedder.load()


def test_the_network_is_computed_as_in_the_paper(directory: Path) -> None:
    """With the rounded weights only the order of sums and the form of GELU differ."""
    texts = tokenized(SENTENCES)
    tensors, bert = tiny_minilm.as_shipped(tiny_minilm.tensors()), tiny_minilm.script("bert")
    expected = [bert.embed(tensors, tiny_minilm.HEADS, marked(text.token_ids)) for text in texts]
    np.testing.assert_allclose(MinilmEmbedder(directory).embed(texts), np.stack(expected), atol=5e-4)


def test_small_weights_move_a_vector_but_little(directory: Path) -> None:
    """Eight bits are a quarter of the size; what they cost in the real model is told in docs/model.md."""
    texts = tokenized(SENTENCES)
    found = MinilmEmbedder(directory).embed(texts)
    cosines = [
        float(row @ tiny_minilm.expected(marked(text.token_ids))) for row, text in zip(found, texts, strict=True)
    ]
    assert min(cosines) > 0.999


def test_rows_are_rounded_to_eight_bits_by_their_largest() -> None:
    build = tiny_minilm.script("build")
    rows, scales = build.quantised(np.array([[0.25, -1.0, 0.0], [0.0, 0.0, 0.0]], np.float32))
    np.testing.assert_array_equal(rows, [[32, -127, 0], [0, 0, 0]])
    np.testing.assert_allclose(scales, [1 / 127, 1])


def test_a_long_text_is_the_mean_of_its_windows(directory: Path) -> None:
    """The model has no positions for more, and nothing may be known by its beginning alone."""
    (text,) = tokenized(["one two three four five " * 10])
    assert len(text.token_ids) == 50 > 2 * WINDOW
    parts = [text.token_ids[:16], text.token_ids[16:33], text.token_ids[33:]]
    bert = tiny_minilm.script("bert")
    sums = [bert.states(tiny_minilm.tensors(), tiny_minilm.HEADS, marked(part)).sum(0) for part in parts]
    found = MinilmEmbedder(directory).embed([text])[0]
    assert found @ sum(sums) / np.linalg.norm(sum(sums)) > 0.999


@pytest.mark.parametrize("count", [1, WINDOW, WINDOW + 1, 7 * WINDOW])
def test_every_token_of_a_text_is_read(count: int, directory: Path) -> None:
    """One at the end of a text of any length moves its vector."""
    model = MinilmEmbedder(directory)
    ids = np.full(count, 2003, np.uint16)
    other = ids.copy()
    other[-1] = 3899
    before, after = model.embed([TokenizedText("", ids), TokenizedText("", other)])
    assert np.isfinite(before).all()
    assert (before != after).any()


def test_windows_are_few_and_about_equally_long() -> None:
    """A remainder of two words would have to be read without any context."""
    windows = list(minilm._windows(np.arange(256, dtype=np.uint16), 254))
    assert [len(window) for window in windows] == [130, 130]
    assert [window[0] for window in windows] == [START, START]
    assert [window[-1] for window in windows] == [END, END]
    assert [token for window in windows for token in window[1:-1]] == list(range(256))
    assert list(minilm._windows(np.zeros(0, np.uint16), 254)) == []


def test_a_text_of_a_million_tokens_is_read_here_and_there() -> None:
    """A question may be a whole book pasted by mistake, and must be answered all the same."""
    windows = list(minilm._windows(np.arange(1_000_000).astype(np.uint16), 254))
    assert len(windows) == minilm.MAX_WINDOWS
    assert windows[0][1] == 0
    assert windows[-1][-2] == 999_999 % 65_536
    assert max(map(len, windows)) <= 256


def test_the_same_weights_give_the_same_file(directory: Path, tmp_path: Path) -> None:
    """Whoever builds the model can compare it with what is published."""
    again = tiny_minilm.write(tmp_path)
    assert (again / WEIGHTS).read_bytes() == (directory / WEIGHTS).read_bytes()
    assert (again / MANIFEST).read_bytes() == (directory / MANIFEST).read_bytes()


@pytest.mark.parametrize(
    ("number", "error"), [(errno.EACCES, ModelError), (errno.EIO, ModelError), (errno.EMFILE, OSError)]
)
def test_weights_that_may_not_be_opened_are_refused_and_too_many_open_files_are_no_fault_of_theirs(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """Where a model is refused searches go on by words; a process without descriptors has to be told so."""

    def fail(path: Path, *_: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(error, match=os.strerror(number)) as told:
        MinilmEmbedder(directory)
    assert isinstance(told.value, ModelError) is (error is ModelError)


def test_weights_that_are_missing_or_cut_short_are_refused_at_once(directory: Path, tmp_path: Path) -> None:
    """An interrupted installation must not fail in the middle of an indexing."""
    with pytest.raises(ModelError, match="cannot be read"):
        MinilmEmbedder(tmp_path)
    (tmp_path / MANIFEST).write_bytes((directory / MANIFEST).read_bytes())
    with pytest.raises(ModelError, match=r"is missing; reinstall Commonplace"):
        MinilmEmbedder(tmp_path)
    (tmp_path / WEIGHTS).write_bytes((directory / WEIGHTS).read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"has \d+ bytes, expected \d+; reinstall Commonplace"):
        MinilmEmbedder(tmp_path)


def test_weights_cut_short_while_they_are_open_are_an_error_of_ours(directory: Path, tmp_path: Path) -> None:
    """A mapped file would end the process."""
    for name in (MANIFEST, WEIGHTS):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    model = MinilmEmbedder(tmp_path)
    os.truncate(tmp_path / WEIGHTS, 1000)
    with pytest.raises(ModelError, match="ends before byte"):
        model.embed(tokenized(["rice"]))


def test_a_flipped_bit_is_found_by_its_checksum(directory: Path, tmp_path: Path) -> None:
    """The size is right, so that loading cannot tell; every byte is read only where somebody asks."""
    data = bytearray((directory / WEIGHTS).read_bytes())
    data[-5] ^= 16
    (tmp_path / WEIGHTS).write_bytes(data)
    (tmp_path / MANIFEST).write_bytes((directory / MANIFEST).read_bytes())
    assert np.isfinite(MinilmEmbedder(tmp_path).embed(tokenized(["rice"]))).all()
    with pytest.raises(ModelError, match=r"has sha256 \w+, expected \w+; reinstall Commonplace"):
        minilm.verify(tmp_path)
    minilm.verify(directory)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "other/1"}, "has schema 'other/1'"),
        ({"size": None}, "the weights None"),
        ({"network": {"width": 3}}, "cannot be read"),
        ({"network": None}, "cannot be read"),
    ],
)
def test_another_manifest_is_refused(change: dict[str, object], said: str, directory: Path, tmp_path: Path) -> None:
    document = json.loads((directory / MANIFEST).read_text()) | change
    (tmp_path / MANIFEST).write_text(json.dumps(document))
    (tmp_path / WEIGHTS).write_bytes((directory / WEIGHTS).read_bytes())
    with pytest.raises(ModelError, match=said):
        MinilmEmbedder(tmp_path)


def test_the_shipped_model_is_whole_and_knows_meanings(shipped: MinilmEmbedder) -> None:
    """Paraphrases lie near each other, and what is not related does not."""
    minilm.verify()
    assert shipped.stamp == Embedding("minilm", "2", 384)
    vectors = shipped.embed(
        tokenized(["How do I reset my password?", "I forgot my login credentials", "Rice is boiled in salted water"])
    )
    assert vectors[0] @ vectors[1] > 0.5
    assert vectors[0] @ vectors[2] < 0.15


def test_the_shipped_model_gives_a_text_the_same_bits_in_any_batch(shipped: MinilmEmbedder) -> None:
    """Processes compare what they wrote alone with what others wrote in bulk."""
    texts = tokenized([" ".join(SENTENCES) * times for times in (1, 2, 3)] + SENTENCES)
    together = shipped.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(shipped.embed([text])[0], vector)


def test_the_hosts_threads_are_given_back_after_use(shipped: MinilmEmbedder) -> None:
    """The application may use NumPy for its own work, on all its processors."""
    with two_threads() as count:
        before = count()
        shipped.embed(tokenized(["rice"]))
        assert count() == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_embedding_takes_few_megabytes(tmp_path: Path) -> None:
    """The weights stay in their file: 23 MB of them would double a server's memory."""
    code = (
        "import numpy as np\n"
        "from commonplace.models.contract import TokenizedText\n"
        "def private():\n"
        "    lines = open('/proc/self/smaps_rollup').read().splitlines()\n"
        "    return sum(int(line.split()[1]) for line in lines if line.startswith('Private_'))\n"
        "from commonplace.models.minilm import MinilmEmbedder\n"
        "before = private()\n"
        "model = MinilmEmbedder.load()\n"
        "for count in (10, 40, 254, 600):\n"
        "    model.embed([TokenizedText('', np.arange(2000, 2000 + count, dtype=np.uint16))])\n"
        "print(private() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 6 * 1024
