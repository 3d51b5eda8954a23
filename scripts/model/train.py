"""Regress the token table on the transformer's vectors of whole texts; knows arrays alone.

A text is the mean of its tokens' vectors, so the table is a linear student: gradients are written out by hand, and each
step touches only the rows of the batch's tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        similarity: weight of the squared error of the batch's similarity matrix against 1 - cosine.
        rate: Adam's step size at the start; it falls linearly to 0.
    """

    epochs: int = 12
    batch: int = 1024
    rate: float = 3e-3
    similarity: float = 30.0
    seed: int = 7
    decays: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Bags:
    """Texts as bags of tokens, one after the other.

    Attributes:
        tokens: token ids, int64, shape (total,); each text's are ascending and without repeats.
        shares: float32, shape (total,): how often the token occurs, divided by the text's length.
        starts: int64, shape (texts + 1,): where each text begins.
    """

    tokens: Integers
    shares: Floats
    starts: Integers

    @staticmethod
    def of(texts: list[NDArray[np.uint16]]) -> Bags:
        """Count the tokens of each text; no text may be empty."""
        counted = [np.unique(text, return_counts=True) for text in texts]
        starts = np.cumsum([0] + [len(tokens) for tokens, _ in counted])
        shares = np.concatenate([counts / counts.sum() for _, counts in counted]).astype(np.float32)
        return Bags(np.concatenate([tokens for tokens, _ in counted]).astype(np.int64), shares, starts.astype(np.int64))

    def take(self, rows: Integers) -> Bags:
        """Return some of the texts, in the order given."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return Bags(self.tokens[places], self.shares[places], starts)


class Adam:
    """Adam (Kingma & Ba 2015) over some rows of a table at a time; rows not in the batch keep their moments."""

    def __init__(self, table: Floats, recipe: Recipe) -> None:
        self._table, self._recipe = table, recipe
        self._mean, self._square = np.zeros_like(table), np.zeros_like(table)
        self._steps = 0

    def step(self, rows: Integers, gradient: Floats, rate: float) -> None:
        """Move the given rows, each named once, against their gradient."""
        self._steps += 1
        first, second = (np.float32(decay) for decay in self._recipe.decays)
        mean = first * self._mean[rows] + (1 - first) * gradient
        square = second * self._square[rows] + (1 - second) * gradient * gradient
        self._mean[rows], self._square[rows] = mean, square
        scale = rate / (1 - float(first) ** self._steps)
        root = np.sqrt(square / np.float32(1 - float(second) ** self._steps)) + np.float32(self._recipe.epsilon)
        self._table[rows] -= np.float32(scale) * mean / root


def train(table: Floats, bags: Bags, targets: Floats, recipe: Recipe) -> Floats:
    """Return the trained table, float32, shape (vocabulary, d).

    Args:
        table: where to start; left as it is.
        bags: the texts.
        targets: float32, shape (texts, d), rows of unit length.
    """
    table = table.copy()
    adam = Adam(table, recipe)
    random = np.random.default_rng(recipe.seed)
    count = len(bags.starts) - 1
    steps = count // recipe.batch
    for epoch in range(recipe.epochs):
        order = random.permutation(count)
        losses = []
        for step in range(steps):
            rows = order[step * recipe.batch : (step + 1) * recipe.batch]
            rate = recipe.rate * (1 - (epoch * steps + step) / (recipe.epochs * steps))
            loss, tokens, gradient = gradients(table, bags.take(rows), targets[rows], recipe.similarity)
            adam.step(tokens, gradient, rate)
            losses.append(loss)
        print(f"epoch {epoch + 1}/{recipe.epochs}: loss {np.mean(losses):.4f}", flush=True)
    return table


def gradients(table: Floats, bags: Bags, targets: Floats, similarity: float) -> tuple[float, Integers, Floats]:
    """Return the loss of a batch, the tokens it holds and the gradient of the loss by their rows.

    The loss is the mean of 1 - cosine(text, target), plus `similarity` times the mean squared difference between the
    texts' and the targets' similarity matrices.
    """
    count = len(targets)
    sums = np.add.reduceat(table[bags.tokens] * bags.shares[:, None], bags.starts[:-1])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True) + np.float32(1e-9)
    units = sums / lengths
    difference = units @ units.T - targets @ targets.T
    loss = 1 - np.vdot(units, targets) / count + similarity * np.vdot(difference, difference) / count**2
    slope = np.float32(4 * similarity / count**2) * (difference @ units) - targets / np.float32(count)
    slope -= np.einsum("id,id->i", slope, units)[:, None] * units
    slope /= lengths
    order = np.argsort(bags.tokens, kind="stable")
    texts = np.repeat(np.arange(count), np.diff(bags.starts))[order]
    tokens, starts = np.unique(bags.tokens[order], return_index=True)
    return float(loss), tokens, np.add.reduceat(slope[texts] * bags.shares[order, None], starts)
