"""The static embedder: exact arithmetic on a tiny table, and what the shipped table knows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from commonplace.errors import ModelError
from commonplace.models import static
from commonplace.models.contract import TokenizedText
from commonplace.models.files import SHIPPED
from commonplace.models.static import TEXTS_WORTH_THE_TABLE, VOCABULARY, ModelData, StaticEmbedder, verify_data
from commonplace.text.tokens import Vocabulary

PIECES = ["[UNK]", "red", "green", "lime"]
ROWS = np.array([[0, 0], [100, 0], [0, 50], [30, 40]], np.int8)
SCALES = np.array([0, 0.5, 0.02, 0.1], np.float32)
SIMILAR = [([], []), ([1], [255]), ([2, 3], [255, 204]), ([3, 2], [255, 204])]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model of four tokens in two dimensions."""
    lists = [np.array(tokens, "<u2").tobytes() + bytes(cosines) for tokens, cosines in SIMILAR]
    starts = np.cumsum([0] + [len(tokens) for tokens, _ in SIMILAR])
    files = {
        static.VOCABULARY: "\n".join(PIECES).encode(),
        static.VECTORS: ROWS.tobytes(),
        static.SCALES: SCALES.astype("<f4").tobytes(),
        static.NEIGHBOURS: b"".join(lists),
        static.NEIGHBOUR_STARTS: starts.astype("<u4").tobytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    manifest = {
        "schema": static.SCHEMA,
        "name": "static",
        "version": "tiny",
        "dimensions": 2,
        "vocabulary_size": 4,
        "cutoff": 0.5,
        "files": {name: {"size": len(content), "sha256": "0"} for name, content in files.items()},
    }
    (tmp_path / static.MANIFEST).write_text(json.dumps(manifest))
    return tmp_path


@pytest.fixture(scope="module")
def shipped() -> StaticEmbedder:
    return StaticEmbedder.load()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the shipped model that may be damaged."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


def embedded(embedder: StaticEmbedder, *texts: str) -> np.ndarray:
    return embedder.embed([TokenizedText(text, embedder.tokenize(text)) for text in texts])


def all_cosines(embedder: StaticEmbedder, token_ids: np.ndarray) -> np.ndarray:
    """Return float32, shape (n, vocabulary)."""
    similarities = embedder.similarities(token_ids)
    return similarities.cosines[:, similarities.columns]


@pytest.mark.parametrize("copies", [1, TEXTS_WORTH_THE_TABLE])
def test_a_text_is_the_direction_of_the_sum_of_its_scaled_rows(tiny: Path, copies: int) -> None:
    """Red is 0.5·(100, 0), green 0.02·(0, 50), lime 0.1·(30, 40); few texts and many take different paths."""
    vectors = embedded(StaticEmbedder.load(tiny), *["red green green", "lime red", "blue"] * copies)
    expected = np.array([[50, 2], [53, 4], [0, 0]]) / np.array([[np.hypot(50, 2)], [np.hypot(53, 4)], [1]])
    np.testing.assert_allclose(vectors, np.tile(expected, (copies, 1)), atol=1e-6)


def test_similarities_are_the_listed_cosines_and_zero_elsewhere(tiny: Path) -> None:
    """204/255 is 0.8, the cosine of (0, 1) and (0.6, 0.8)."""
    embedder = StaticEmbedder.load(tiny)
    cosines = all_cosines(embedder, embedder.tokenize("lime blue red lime"))
    expected = np.array([[0, 0, 0.8, 1], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.8, 1]])
    np.testing.assert_allclose(cosines, expected, atol=1e-7)
    assert cosines.dtype == np.float32


def test_weights_are_the_lengths_of_the_vectors(tiny: Path) -> None:
    """‖(100, 0)‖·0.5 = 50, ‖(0, 50)‖·0.02 = 1, ‖(30, 40)‖·0.1 = 5, a mark has none."""
    embedder = StaticEmbedder.load(tiny)
    np.testing.assert_allclose(embedder.weights(embedder.tokenize("red green lime blue")), [50, 1, 5, 0], rtol=1e-6)


def test_releasing_the_table_changes_no_vector(tiny: Path) -> None:
    """Memory is given back between index runs."""
    embedder = StaticEmbedder.load(tiny)
    texts = ["red lime"] * TEXTS_WORTH_THE_TABLE
    before = embedded(embedder, *texts)
    embedder.release()
    np.testing.assert_array_equal(embedded(embedder, *texts), before)


def test_the_shipped_files_are_the_ones_of_the_manifest_and_a_damaged_one_is_noticed(tmp_path: Path) -> None:
    """Doctor asks the same question of the installed wheel."""
    verify_data()
    copy = Path(shutil.copytree(SHIPPED, tmp_path / "data"))
    damaged = copy / static.VECTORS
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ModelError, match=damaged.name):
        verify_data(copy)


def test_the_shipped_table_has_the_stated_shape(shipped: StaticEmbedder) -> None:
    """The store stamps its vectors with these."""
    assert (shipped.stamp.name, shipped.stamp.dimensions, shipped.vocabulary_size) == ("static", 256, 30522)
    data = ModelData()
    assert data.table().shape == (30522, 256)
    assert len(data.vocabulary()) == 30522
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 35_000_000


def test_every_token_is_like_itself_and_lists_are_ordered_and_above_the_cutoff(shipped: StaticEmbedder) -> None:
    """Late interaction relies on 1 for the same token, and on 0 for what is hardly alike."""
    data = ModelData()
    for token in range(1000, 30522, 97):
        tokens, shares = data.neighbours(token)
        assert (tokens[0], shares[0]) == (token, 255)
        assert (np.diff(shares.astype(int)) <= 0).all()
        assert shares[-1] >= int(json.loads((SHIPPED / "model.json").read_text())["cutoff"] * 255)
        assert len(tokens) == len(set(tokens.tolist())) <= 64


@pytest.mark.parametrize("mark", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused7]"])
def test_marks_mean_nothing(shipped: StaticEmbedder, mark: str) -> None:
    """An unknown word is not a sign that two texts speak of the same thing."""
    token = np.array([ModelData().vocabulary()[mark]], np.uint16)
    assert not all_cosines(shipped, token).any()
    assert not shipped.embed([TokenizedText(mark, token)]).any()
    assert not shipped.weights(token).any()


@pytest.mark.parametrize(
    ("question", "related", "unrelated"),
    [
        ("what database do we use", "we chose postgres for storage", "she went hiking in the mountains"),
        ("how do I treat a headache", "aspirin relieves pain", "the parser returns a syntax tree"),
        ("where does my sister live", "her apartment is in Boston", "call the function with two arguments"),
        ("parse a json file in python", "import json; json.load(open(path))", "a recipe for tomato soup"),
        ("who plays the guitar", "Tom is a musician in a rock band", "symptoms of kidney disease"),
    ],
)
def test_a_related_text_is_nearer_than_an_unrelated_one(
    shipped: StaticEmbedder, question: str, related: str, unrelated: str
) -> None:
    """No word is shared: only the table's knowledge can tell; the margin guards against a broken table."""
    vectors = embedded(shipped, question, related, unrelated)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


@pytest.mark.parametrize(("word", "other"), [("database", "sql"), ("doctor", "physician"), ("car", "vehicle")])
def test_words_of_like_meaning_are_listed_as_similar(shipped: StaticEmbedder, word: str, other: str) -> None:
    """Late interaction finds a passage by a synonym only through these lists."""
    assert all_cosines(shipped, shipped.tokenize(word))[0, shipped.tokenize(other)[0]] > 0.5


def test_a_missing_file_names_itself_and_the_remedy(copied: Path) -> None:
    """Half an installation is a user's problem to solve: tell how."""
    (copied / static.VECTORS).unlink()
    with pytest.raises(ModelError, match=r"vectors\.i8 is missing; reinstall Commonplace"):
        StaticEmbedder.load(copied)


def test_a_truncated_file_is_refused_at_load(copied: Path) -> None:
    """A short table would give wrong vectors to the last tokens only, which nobody would notice."""
    path = copied / static.VECTORS
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="7813631 bytes, expected 7813632"):
        StaticEmbedder.load(copied)


def test_a_file_cut_after_loading_is_noticed_when_read(copied: Path) -> None:
    """An upgrade may replace the files under a running server."""
    embedder = StaticEmbedder.load(copied)
    with (copied / static.VECTORS).open("r+b") as file:
        file.truncate(256 * 1000)
    with pytest.raises(ModelError, match=r"vectors\.i8 ends before byte"):
        embedded(embedder, "billing")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": "commonplace-static-model/9"}', "\ufeff{"])
def test_a_manifest_that_cannot_be_read_is_a_model_error(copied: Path, content: str) -> None:
    """Driver errors such as a JSON error must not reach the user bare."""
    (copied / static.MANIFEST).write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=r"model\.json"):
        StaticEmbedder.load(copied)


def test_verifying_names_every_file_that_is_changed_short_or_missing(copied: Path) -> None:
    """Sizes are checked at every load; only this reads every byte."""
    scales = copied / static.SCALES
    content = scales.read_bytes()
    scales.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"scales\.f32 has sha256 \w+, expected \w+; reinstall Commonplace$"):
        verify_data(copied)
    scales.write_bytes(content[:-4])
    (copied / static.VOCABULARY).unlink()
    with pytest.raises(
        ModelError, match=r"vocabulary\.txt is missing, .*scales\.f32 has 122084 bytes, expected 122088"
    ):
        verify_data(copied)
    (copied / static.MANIFEST).unlink()
    with pytest.raises(ModelError, match=r"model\.json cannot be read"):
        verify_data(copied)


def test_the_search_path_does_not_import_hashlib() -> None:
    """OpenSSL would cost 3.6 MB of a process that should stay under 50."""
    import subprocess
    import sys

    program = (
        "import sys; from commonplace.models.static import StaticEmbedder, TokenizedText; e = StaticEmbedder.load();"
        "t = e.tokenize('billing'); e.embed([TokenizedText('', t)]); e.similarities(t); e.weights(t);"
        "sys.exit('_hashlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# The vocabulary answers as a dict would.


def test_every_shipped_piece_has_the_number_of_its_line() -> None:
    """Line t of the file is token t; a piece in another place would stand for another word's vector."""
    vocabulary = ModelData().vocabulary()
    lines = (SHIPPED / VOCABULARY).read_text(encoding="utf-8").splitlines()
    assert list(vocabulary) == lines
    assert [vocabulary.get(line) for line in lines] == list(range(len(vocabulary)))
    assert vocabulary.longest >= max(map(len, lines))


def test_what_is_no_piece_has_no_id() -> None:
    """Neither a piece's beginning, nor its end, nor two that stand side by side are pieces."""
    vocabulary = Vocabulary("ab\ncdé\n##f".encode())
    assert [vocabulary.get(piece) for piece in ("ab", "cdé", "##f")] == [0, 1, 2]
    strangers = ["", "a", "b", "abcdé", "cd", "é", "f", "AB", "\ud800", "ab\x00", "ab\n", "ab\ncdé"]
    assert [vocabulary.get(stranger) for stranger in strangers] == [None] * len(strangers)
    with pytest.raises(KeyError, match="abc"):
        vocabulary["abc"]


def test_strings_that_no_piece_looks_like_are_not_taken_for_one() -> None:
    """Buckets are few: every string shares one with some piece now and then, and only its letters tell."""
    vocabulary = ModelData().vocabulary()
    known = set(vocabulary)
    words = [f"{stem}{number}" for number in range(2_000) for stem in ("##", "x", "memory")]
    assert [word for word in words if vocabulary.get(word) is not None] == [word for word in words if word in known]


def test_a_vocabulary_of_nothing_knows_nothing() -> None:
    """A damaged file must end in a message of ours, not in NumPy's."""
    empty = Vocabulary(b"")
    assert (len(empty), list(empty), empty.get("a"), empty.longest) == (0, [], None, 0)
