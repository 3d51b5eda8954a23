"""The gradients that the model scripts write out by hand are those of the loss; the lists they make are exact."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts" / "model"


def script(name: str) -> ModuleType:
    """Load a script by its path; dataclasses look their module up by name while they are made."""
    spec = importlib.util.spec_from_file_location(f"model_script_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def train() -> ModuleType:
    return script("train")


@pytest.fixture(scope="module")
def table() -> ModuleType:
    return script("table")


TEXTS = [np.array(tokens, np.uint16) for tokens in ([3, 1, 3], [2], [0, 2, 5, 1])]


def test_a_bag_counts_each_token_once_with_its_share(train: ModuleType) -> None:
    """3 1 3 is one third token 1 and two thirds token 3."""
    bags = train.Bags.of(TEXTS)
    assert bags.tokens.tolist() == [1, 3, 2, 0, 1, 2, 5]
    np.testing.assert_allclose(bags.shares[:3], [1 / 3, 2 / 3, 1], rtol=1e-6)
    assert bags.starts.tolist() == [0, 2, 3, 7]
    taken = bags.take(np.array([2, 0]))
    assert taken.tokens.tolist() == [0, 1, 2, 5, 1, 3]
    assert taken.starts.tolist() == [0, 4, 6]


def test_gradients_agree_with_finite_differences(train: ModuleType) -> None:
    """A wrong term would still train, only worse, and nobody would know."""
    random = np.random.default_rng(5)
    rows, targets = random.normal(size=(6, 4)), random.normal(size=(3, 4))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    bags = train.Bags.of(TEXTS)
    _, tokens, gradient = train.gradients(rows, bags, targets, 2.0)
    assert tokens.tolist() == [0, 1, 2, 3, 5]
    for line, token in enumerate(tokens):
        for axis in range(4):
            losses = []
            for step in (1e-5, -1e-5):
                moved = rows.copy()
                moved[token, axis] += step
                losses.append(train.gradients(moved, bags, targets, 2.0)[0])
            assert gradient[line, axis] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-4)


def test_training_brings_texts_to_their_targets_and_is_repeatable(train: ModuleType) -> None:
    """Three texts and a table of free rows can meet any targets; the same seed must give the same bytes."""
    random = np.random.default_rng(6)
    rows = random.normal(size=(6, 4)).astype(np.float32)
    targets = np.eye(3, 4, dtype=np.float32)
    recipe = train.Recipe(steps=300, batch=3, rate=0.05, similarity=1.0, contrast=0.0)
    bags = train.Bags.of(TEXTS)
    lessons = [train.Lesson(bags, bags, 1.0)]
    trained = train.train(rows, bags, targets, lessons, recipe)
    loss, _, _ = train.gradients(trained, bags, targets, 1.0)
    assert loss < 0.01
    assert train.train(rows, bags, targets, lessons, recipe).tobytes() == trained.tobytes()
    np.testing.assert_array_equal(trained[4], rows[4])


def test_gradients_of_pairs_agree_with_finite_differences(train: ModuleType) -> None:
    """Question and passage share tokens, so each side's gradient is a part of the whole."""
    rows = np.random.default_rng(9).normal(size=(6, 4))
    queries = train.Bags.of(TEXTS)
    passages = train.Bags.of([np.array(tokens, np.uint16) for tokens in ([1, 4], [2, 5], [0])])
    whole = np.zeros_like(rows)
    for part in train.contrast(rows, queries, passages, 0.5):
        whole[part.tokens] += part.gradient
    for token in range(6):
        for axis in range(4):
            losses = []
            for step in (1e-5, -1e-5):
                moved = rows.copy()
                moved[token, axis] += step
                losses.append(train.contrast(moved, queries, passages, 0.5)[0].loss)
            assert whole[token, axis] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-4)


def test_pairs_bring_questions_to_their_passages(train: ModuleType) -> None:
    """The texts pull towards nothing here; only the pairs say which of three passages a question belongs to."""
    rows = np.random.default_rng(10).normal(size=(6, 4)).astype(np.float32)
    queries = train.Bags.of([np.array([token], np.uint16) for token in (0, 1, 2)])
    passages = train.Bags.of([np.array([token], np.uint16) for token in (3, 4, 5)])
    recipe = train.Recipe(steps=200, batch=1, rate=0.05, similarity=0.0, contrast=1.0)
    text, target = train.Bags.of([np.array([0], np.uint16)]), rows[:1] / np.linalg.norm(rows[0])
    trained = train.train(rows, text, target, [train.Lesson(queries, passages, 1.0)], recipe)
    cosines = (trained[:3] @ trained[3:].T) / np.outer(*(np.linalg.norm(part, axis=1) for part in np.split(trained, 2)))
    assert cosines.argmax(1).tolist() == [0, 1, 2]
    assert train.contrast(trained, queries, passages, recipe.temperature)[0].loss < 0.01


def test_neighbours_are_the_cosines_above_the_cutoff_best_first(table: ModuleType) -> None:
    """(1, 0) and (0.6, 0.8) have cosine 0.6 = 153/255; zeros are like nothing."""
    lists = table.neighbours(np.array([[2, 0], [0, 0], [0.6, 0.8], [0, 1]], np.float32), 0.5)
    assert lists.starts.tolist() == [0, 2, 2, 5, 7]
    assert lists.tokens.tolist() == [0, 2, 2, 3, 0, 3, 2]
    assert lists.cosines.tolist() == [255, 153, 255, 204, 153, 255, 204]


def test_quantised_rows_are_within_half_a_step(table: ModuleType) -> None:
    """The scale is the largest part over 127, so no part is off by more than half of it."""
    rows = np.random.default_rng(8).normal(size=(5, 16)).astype(np.float32)
    rows[3] = 0
    small, scales = table.quantised(rows)
    assert np.abs(small * scales[:, None] - rows).max() <= scales.max() / 2 + 1e-7
    assert not small[3].any()


def test_a_row_that_no_text_taught_keeps_its_direction(table: ModuleType) -> None:
    """f / (f + 5) is learned: none at no text, half at five; the start is scaled as others were; marks stay 0."""
    start = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], np.float32)
    trained = np.array([[5, 5], [0, 3], [0, 2], [7, 7]], np.float32)
    blended = table.blended(trained, start, np.array([0, 5, 50, 1000], np.float32))
    np.testing.assert_allclose(blended[[0, 1, 3]], [[2, 0], [1, 1.5], [0, 0]], atol=1e-6)
