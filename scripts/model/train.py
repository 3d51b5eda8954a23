"""Regress the token table on the transformer's vectors of whole texts, and let it tell pairs apart; knows arrays alone.

A text is the mean of its tokens' vectors, so the table is a linear student: gradients are written out by hand, and each
step touches only the rows of the batch's tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        batch, pairs: so many texts, and so many pairs, has a step.
        similarity: weight of the squared error of the batch's similarity matrix against 1 - cosine.
        contrast: weight of the pairs' loss against both.
        rate: Adam's step size at the start; it falls linearly to 0.
    """

    steps: int = 1500
    batch: int = 1024
    pairs: int = 512
    contrast: float = 1.0
    temperature: float = 0.05
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

    def matrix(self) -> tuple[Integers, Floats]:
        """Return the tokens that occur, ascending, and their shares, float32, shape (texts, tokens)."""
        tokens, columns = np.unique(self.tokens, return_inverse=True)
        count = len(self.starts) - 1
        shares = np.zeros((count, len(tokens)), np.float32)
        shares[np.repeat(np.arange(count), np.diff(self.starts)), columns] = self.shares
        return tokens, shares


class Lesson(NamedTuple):
    """Questions and the passages that belong to them, row by row; `share` is how often a step draws from it."""

    queries: Bags
    passages: Bags
    share: float


class Part(NamedTuple):
    """The gradient of one loss: tokens, each named once, and float32, shape (tokens, d)."""

    loss: float
    tokens: Integers
    gradient: Floats


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


def train(table: Floats, bags: Bags, targets: Floats, lessons: Sequence[Lesson], recipe: Recipe) -> Floats:
    """Return the trained table, float32, shape (vocabulary, d).

    Args:
        table: where to start; left as it is.
        bags: the texts.
        targets: float32, shape (texts, d), rows of unit length.
        lessons: what belongs together; each step draws its pairs from one of them.
    """
    table = table.copy()
    adam = Adam(table, recipe)
    random = np.random.default_rng(recipe.seed)
    shares = np.array([lesson.share for lesson in lessons])
    texts = _Drawer(len(bags.starts) - 1, random)
    pairs = [_Drawer(len(lesson.queries.starts) - 1, random) for lesson in lessons]
    losses = []
    for step in range(recipe.steps):
        rows = texts.draw(recipe.batch)
        parts = [gradients(table, bags.take(rows), targets[rows], recipe.similarity)]
        index = int(random.choice(len(lessons), p=shares / shares.sum()))
        rows, lesson = pairs[index].draw(recipe.pairs), lessons[index]
        told_apart = contrast(table, lesson.queries.take(rows), lesson.passages.take(rows), recipe.temperature)
        parts += [part._replace(gradient=part.gradient * np.float32(recipe.contrast)) for part in told_apart]
        adam.step(*_added(parts), recipe.rate * (1 - step / recipe.steps))
        losses.append((parts[0].loss, parts[1].loss))
        if (step + 1) % 100 == 0:
            means = np.mean(losses[-100:], axis=0)
            print(f"step {step + 1}/{recipe.steps}: texts {means[0]:.4f}, pairs {means[1]:.4f}", flush=True)
    return table


class _Drawer:
    """Draws rows without repeats until all were drawn, then begins anew."""

    def __init__(self, count: int, random: np.random.Generator) -> None:
        self._count, self._random = count, random
        self._order, self._drawn = random.permutation(count), 0

    def draw(self, most: int) -> Integers:
        size = min(most, self._count)
        if self._drawn + size > self._count:
            self._order, self._drawn = self._random.permutation(self._count), 0
        self._drawn += size
        return self._order[self._drawn - size : self._drawn]


def _added(parts: Sequence[Part]) -> tuple[Integers, Floats]:
    tokens = np.unique(np.concatenate([part.tokens for part in parts]))
    gradient = np.zeros((len(tokens), parts[0].gradient.shape[1]), np.float32)
    for part in parts:
        gradient[np.searchsorted(tokens, part.tokens)] += part.gradient
    return tokens, gradient


def contrast(table: Floats, queries: Bags, passages: Bags, temperature: float) -> tuple[Part, Part]:
    """Return the loss of telling each question's passage among all of the batch, and the other way round, by each side.

    The loss is InfoNCE (van den Oord et al. 2018) over cosines divided by the temperature, the mean of both directions.
    """
    query_rows, asked_shares = queries.matrix()
    passage_rows, told_shares = passages.matrix()
    left, left_lengths = _pooled(asked_shares, table[query_rows])
    right, right_lengths = _pooled(told_shares, table[passage_rows])
    cosines = left @ right.T / np.float32(temperature)
    count = len(cosines)
    identity = np.eye(count, dtype=np.float32)
    forward, backward = _softmax(cosines), _softmax(cosines.T).T
    loss = -float(np.log(np.diagonal(forward) * np.diagonal(backward) + 1e-30).mean()) / 2
    slope: Floats = (forward + backward - 2 * identity) / np.float32(2 * temperature * count)
    by_query = asked_shares.T @ _through_length(slope @ right, left, left_lengths)
    by_passage = told_shares.T @ _through_length(slope.T @ left, right, right_lengths)
    return Part(loss, query_rows, by_query), Part(loss, passage_rows, by_passage)


def _pooled(shares: Floats, rows: Floats) -> tuple[Floats, Floats]:
    sums = shares @ rows
    lengths = np.linalg.norm(sums, axis=1, keepdims=True) + np.float32(1e-9)
    return sums / lengths, lengths


def _softmax(rows: Floats) -> Floats:
    powers = np.exp(rows - rows.max(1, keepdims=True))
    softmax: Floats = powers / powers.sum(1, keepdims=True)
    return softmax


def _through_length(slope: NDArray[Any], units: Floats, lengths: Floats) -> Floats:
    """Return the gradient by the sums, of that by the sums at unit length."""
    through: Floats = (slope - np.einsum("id,id->i", slope, units)[:, None] * units) / lengths
    return through


def gradients(table: Floats, bags: Bags, targets: Floats, similarity: float) -> Part:
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
    slope = _through_length(slope, units, lengths)
    order = np.argsort(bags.tokens, kind="stable")
    texts = np.repeat(np.arange(count), np.diff(bags.starts))[order]
    tokens, starts = np.unique(bags.tokens[order], return_index=True)
    return Part(float(loss), tokens, np.add.reduceat(slope[texts] * bags.shares[order, None], starts))
