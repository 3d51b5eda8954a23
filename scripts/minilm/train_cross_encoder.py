"""Train the corrections with which the shipped transformer reads two memories: does the later overtake the earlier?

    PYTHONPATH=src:scripts python -m minilm.train_cross_encoder --out src/commonplace/models/data

The weights of the transformer stay as they ship; each square of them gets a correction of low rank (Hu et al. 2021,
"LoRA"). The training has two parts: the first reads families of statements alone (benchmarks/statements.txt), the
second starts where it ended and reads a quarter of them, plain sentences (plain_statements.txt and
short_statements.txt), messages (messages.txt) and whole stores (memory_stores.txt) with the pairs of which both hold.
Two scores of one state are trained together: of what overtakes, and of what leaves a careful reader in doubt. What
ships is the mean of both states (Wortsman et al. 2022), which keeps what the first part learned. Every tenth family and
every fifth store is held out, and measured on.

It needs PyTorch, which is no dependency of Commonplace, and takes an hour on two cores. `--first` and `--second` start
from what an earlier run wrote after that part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from commonplace.models.contract import TokenizedText
from commonplace.models.cross_encoder import MANIFEST, SCHEMA, WEIGHTS
from commonplace.models.minilm import END, START, MinilmEmbedder
from commonplace.models.static import StaticEmbedder

DATA = Path(__file__).parents[2] / "benchmarks"
RANK = 16
MEAN = 0.85
"""The share of the second part's state in what ships; all of its score of doubt, of which the first has no examples."""
BATCH = 32
RATE = 1e-3
MAX_TOKENS = 60
"""So many tokens of either text are read here, twice as many as where the result is used."""
DOUBTED = 0.5
"""What a pair is marked with that a careful reader would ask about."""
SMOOTHING = 0.02
"""Marks are taken to be wrong this often, so that no odds grow without end."""
NEAREST, OTHERS = 5, 2
"""Of a store's pairs that both hold, each memory is read with so many of its nearest before it, and so many others."""
PEOPLE = """Priya Jonas Mara Tom Aisha Diego Hannah Kofi Yuki Elena Sam Ingrid Omar Lucy Mateusz Zoe Ravi Chloe Ben
Nadia Felix Grace Ivan Leila Noah Petra Hugo Amara Viktor Rosa""".split()
PLACES = """Leeds Porto Boston Seattle Graz Lyon Oslo Utrecht Denver Austin Kyoto Turin Malmö Bristol Ghent Cork Basel
Tampere Lisbon Chicago Dresden Nantes Perth Toronto Galway Siena""".split()
HELD_OUT_FAMILIES, HELD_OUT_STORES = 10, 5


Store = list[tuple[str, dict[int, float]]]
"""Statements, oldest first, each with the places of those that it overtakes, and how surely."""


class Example(NamedTuple):
    """Two statements and how likely it is that the newer one overtakes the older, 0-1."""

    older: str
    newer: str
    overtakes: float


class CrossEncoder(nn.Module):  # type: ignore[misc] # PyTorch is no dependency
    """The shipped transformer with corrections that can be trained, and a score for the state of the first token."""

    def __init__(self, embedder: MinilmEmbedder) -> None:
        super().__init__()
        network, width = embedder.network, embedder.network.width
        self.network = network
        words, positions, vectors, squares = _shipped(embedder)
        for name, values in (("words", words), ("positions", positions), ("vectors", vectors), ("squares", squares)):
            self.register_buffer(name, torch.from_numpy(values), persistent=False)
        count = network.layers * network.squares
        self.into = nn.Parameter(torch.randn(count, width, RANK) * width**-0.5)
        self.out = nn.Parameter(torch.zeros(count, RANK, width))
        self.segment = nn.Parameter(torch.zeros(width))
        self.score = nn.Parameter(torch.randn(width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(1))
        self.doubt = nn.Linear(width, 1)

    def forward(self, ids: Tensor, is_newer: Tensor, is_there: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-odds of pairs and those of doubt, shape (n,), of their tokens, shape (n, tokens)."""
        network, width = self.network, self.network.width
        hidden = self.words[ids] + self.positions[: ids.shape[1]] + is_newer[..., None] * self.segment
        hidden = _norm(hidden, self.vectors[0], self.vectors[1])
        for layer in range(network.layers):
            first = 2 + layer * network.vectors
            biases, norms, _ = self.vectors[first : first + network.vectors].split(
                [5 + network.inner, 4, network.squares]
            )

            def product(rows: Tensor, number: int, layer: int = layer) -> Tensor:
                at = layer * network.squares + number
                return rows @ self.squares[at] + rows @ self.into[at] @ self.out[at]

            def heads(rows: Tensor) -> Tensor:
                return rows.unflatten(-1, (network.heads, width // network.heads)).transpose(1, 2)

            query, key, value = (heads(product(hidden, number) + biases[number]) for number in range(3))
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=is_there[:, None, None])
            attended = product(mixed.transpose(1, 2).flatten(2), 3) + biases[3] + hidden
            attended = _norm(attended, norms[0], norms[1])
            out = attended + biases[4 + network.inner]
            for part in range(4, 4 + network.inner):
                wide = nn.functional.gelu(product(attended, part) + biases[part], approximate="tanh")
                out = out + product(wide, part + network.inner)
            hidden = _norm(out, norms[2], norms[3])
        mark = hidden[:, 0]  # before both texts
        return mark @ self.score + self.bias, self.doubt(mark)[:, 0]

    def packed(self) -> bytes:
        """Return the weights' file; its layout is stated in `commonplace.models.cross_encoder`."""
        doubt = self.doubt
        parts = (self.into, self.out, self.segment, self.score, doubt.weight, self.bias, doubt.bias)
        return b"".join(part.detach().numpy().astype("<f2").tobytes() for part in parts)


def _norm(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return nn.functional.layer_norm(rows, rows.shape[-1:], weight, bias, 1e-12)


def _shipped(embedder: MinilmEmbedder) -> list[np.ndarray[Any, Any]]:
    """Return words, positions, vectors and squares of the shipped file, widened to float32."""
    network, width = embedder.network, embedder.network.width
    data = (embedder.directory / "minilm.bin").read_bytes()
    words = np.frombuffer(data, np.int8, network.positions_at).reshape(-1, network.word_bytes)
    scales = np.ascontiguousarray(words[:, width:]).view("<f4")
    floats = np.frombuffer(data[network.positions_at : network.squares_at], "<f4").reshape(-1, width)
    vectors = floats[network.tokens :]
    squares = np.frombuffer(data, np.int8, offset=network.squares_at).reshape(-1, width, width).astype(np.float32)
    for layer in range(network.layers):
        last = 2 + (layer + 1) * network.vectors
        span = slice(layer * network.squares, (layer + 1) * network.squares)
        squares[span] *= vectors[last - network.squares : last, None]
    return [words[:, :width] * scales, floats[: network.tokens].copy(), vectors.copy(), squares]


def read_families(*names: str) -> list[list[tuple[str, str]]]:
    """Return families of statements, each with its mark."""
    blocks = [block for name in names for block in (DATA / name).read_text("utf-8").strip().split("\n\n")]
    return [
        [(mark, text) for mark, _, text in (line.partition(": ") for line in block.splitlines())] for block in blocks
    ]


def read_stores() -> list[Store]:
    """Return the statements of stores, oldest first, each with the places of those before it that it overtakes."""
    stores = []
    for block in (DATA / "memory_stores.txt").read_text("utf-8").strip().split("\n\n"):
        store = []
        for line in block.splitlines()[1:]:
            text, *marks = line.partition(". ")[2].split(" | ")
            overtaken = {}
            for mark in marks:
                word, *places = re.findall(r"\w+", mark)
                overtaken.update({int(number) - 1: 1.0 if word == "over" else DOUBTED for number in places})
            store.append((text.strip(), overtaken))
        stores.append(store)
    return stores


def of_family(
    family: Sequence[tuple[str, str]], strangers: Sequence[str], draw: random.Random, alike: str, most: int
) -> Iterator[Example]:
    """Yield pairs of a family, with names of people and places put in anew.

    Args:
        alike: the marks of which all statements say the same.
        most: so many of the older statements are read, chosen by chance.
    """
    first, second, *_ = draw.sample(PEOPLE, 2)
    home, away = draw.sample(PLACES, 2)
    marks = {"{N}": first, "{M}": second, "{C}": home, "{D}": away}

    def fill_in(text: str) -> str:
        return re.sub(r"\{[NMCD]\}", lambda found: marks[found[0]], text)

    by_mark: dict[str, list[str]] = {"o": [], "n": [], "d": [], "x": []}
    for mark, statement in family:
        by_mark["n" if mark == "q" else mark].append(fill_in(statement))
    for older in draw.sample(by_mark["o"], min(most, len(by_mark["o"]))):
        yield from (Example(older, newer, 1) for newer in by_mark["n"])
        yield from (Example(older, unsure, DOUBTED) for unsure in by_mark["d"])
        yield from (Example(older, near, 0) for near in by_mark["x"])
        yield Example(older, fill_in(draw.choice(strangers)), 0)
    for name in alike:
        if len(by_mark[name]) > 1:  # what says the same, or stands beside it
            first_said, then_said = draw.sample(by_mark[name], 2)
            yield Example(first_said, then_said, 0)
    # The same news of another person.
    for mark, statement in family:
        if mark in "nq" and "{N}" in statement and any(m == "o" and "{N}" in text for m, text in family):
            older = draw.choice([text for m, text in family if m == "o" and "{N}" in text])
            yield Example(fill_in(older), fill_in(statement.replace("{M}", first).replace("{N}", second)), 0)


def of_store(
    store: Sequence[tuple[str, dict[int, float]]], embed: Callable[[Sequence[str]], Any], draw: random.Random
) -> Iterator[Example]:
    """Yield the pairs of a store in which one overtakes, and of those that both hold the nearest and a few others."""
    vectors = embed([text for text, _ in store])
    for index, (text, over) in enumerate(store):
        before = [number for number in np.argsort(-vectors[:index] @ vectors[index]).tolist() if number not in over]
        both = before[:NEAREST] + draw.sample(before[NEAREST:], min(OTHERS, len(before[NEAREST:])))
        yield from (Example(store[number][0], text, chance) for number, chance in over.items())
        yield from (Example(store[number][0], text, 0) for number in both)


class Reader:
    """Makes batches of examples, of about the same length each."""

    def __init__(self, most: int = MAX_TOKENS) -> None:
        self._tokens = StaticEmbedder.load()
        self._most = most
        self._ids: dict[str, list[int]] = {}

    def batches(self, examples: Iterable[Example], draw: random.Random) -> list[tuple[Tensor, ...]]:
        ids = [self._pair(example) for example in examples]
        order = sorted(range(len(ids)), key=lambda row: (sum(map(len, ids[row][:2])) + draw.random() * 4, row))
        batches = [[ids[row] for row in order[first : first + BATCH]] for first in range(0, len(order), BATCH)]
        draw.shuffle(batches)
        return [self._batch(rows) for rows in batches]

    def _batch(self, rows: Sequence[tuple[list[int], list[int], float]]) -> tuple[Tensor, ...]:
        longest = max(len(older) + len(newer) for older, newer, _ in rows)
        ids = torch.zeros((len(rows), longest), dtype=torch.long)
        is_newer = torch.zeros((len(rows), longest))
        is_there = torch.zeros((len(rows), longest), dtype=torch.bool)
        for row, (older, newer, _) in enumerate(rows):
            count = len(older) + len(newer)
            ids[row, :count] = torch.tensor(older + newer)
            is_newer[row, len(older) : count] = 1
            is_there[row, :count] = True
        return ids, is_newer, is_there, torch.tensor([float(chance) for _, _, chance in rows])

    def _pair(self, example: Example) -> tuple[list[int], list[int], float]:
        older, newer = (self._of(text) for text in example[:2])
        return [START, *older, END], [*newer, END], example.overtakes

    def _of(self, text: str) -> list[int]:
        if text not in self._ids:
            self._ids[text] = self._tokens.tokenize(text)[: self._most].tolist()
        return self._ids[text]


def train(
    model: CrossEncoder, epochs: Sequence[Sequence[Example]], reader: Reader, draw: random.Random, rate: float
) -> None:
    """Minimise the cross entropy of all examples with AdamW; the rate rises for 1/20 of the steps, then falls."""
    steps = sum(-(-len(examples) // BATCH) for examples in epochs)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / (steps / 20), (steps - step) / (steps * 0.95))
    )
    steps_done, total = 0, 0.0
    for examples in epochs:
        for *inputs, chances in reader.batches(examples, draw):
            with torch.autocast("cpu", torch.bfloat16):
                odds = torch.stack(model(*inputs))
            targets = torch.stack([chances, (chances == DOUBTED).float()]) * (1 - 2 * SMOOTHING) + SMOOTHING
            loss = nn.functional.binary_cross_entropy_with_logits(odds.float(), targets)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            steps_done, total = steps_done + 1, total + loss.item()
            if steps_done % 100 == 0:
                print(f"{steps_done} of {steps} steps, loss {total / 100:.4f}", flush=True)
                total = 0.0


def held_out(items: Sequence[Any], every: int) -> tuple[list[Any], list[Any]]:
    """Return what is trained with, and what is measured on."""
    return [item for position, item in enumerate(items) if position % every], list(items[::every])


def measure(model: CrossEncoder, examples: Sequence[Example], reader: Reader, draw: random.Random) -> dict[str, float]:
    """Return how many pairs of those held out are judged right, and the average precision of either score."""
    with torch.no_grad():
        outputs = [(*model(*inputs), chances) for *inputs, chances in reader.batches(examples, draw)]
    odds, doubts, chances = (torch.cat(parts) for parts in zip(*outputs, strict=True))

    def average_precision(score: Tensor, is_true: Tensor) -> float:
        true = is_true[torch.argsort(-score)].float()
        precision = true.cumsum(0) / torch.arange(1, len(true) + 1)
        return round(float((precision * true).sum() / true.sum()), 3)

    right = ((odds > 0) == (chances > 0.75)).float().mean()
    return {
        "pairs": len(odds),
        "right": round(float(right), 3),
        "ap": average_precision(odds, chances > 0.75),
        "doubt": average_precision(doubts, chances == DOUBTED),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, nargs=2, default=(3, 3))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=Path)
    parser.add_argument("--second", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    draw = random.Random(arguments.seed)  # noqa: S311 - no secret
    reader, tokens, embedder = Reader(), StaticEmbedder.load(), MinilmEmbedder.load()

    def embed(texts: Sequence[str]) -> Any:
        return embedder.embed([TokenizedText(text, tokens.tokenize(text)) for text in texts])

    families, test_families = held_out(read_families("statements.txt"), HELD_OUT_FAMILIES)
    messages, test_messages = held_out(read_families("messages.txt"), HELD_OUT_FAMILIES)
    stores, test_stores = held_out(read_stores(), HELD_OUT_STORES)
    plain = read_families("plain_statements.txt")
    short, test_short = held_out(read_families("short_statements.txt"), HELD_OUT_FAMILIES)

    def of_families(entries: Sequence[Sequence[tuple[str, str]]], alike: str = "onx", most: int = 9) -> list[Example]:
        strangers = [statement for family in entries for _, statement in family]
        return [example for family in entries for example in of_family(family, strangers, draw, alike, most)]

    def of_stores(entries: Iterable[Store]) -> list[Example]:
        return [example for store in entries for example in of_store(store, embed, draw)]

    tests = {
        "families": of_families(test_families),
        "messages": of_families(test_messages, "ox", 1),
        "short": of_families(test_short),
        "stores": of_stores(test_stores),
    }
    model = CrossEncoder(embedder)
    if arguments.first is None:
        train(model, [of_families(families) for _ in range(arguments.epochs[0])], reader, draw, RATE)
        torch.save(model.state_dict(), arguments.out / "first.pt")
    else:
        model.load_state_dict(torch.load(arguments.first))
    print({name: measure(model, examples, reader, draw) for name, examples in tests.items()}, flush=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    second = [
        of_families([*draw.sample(families, len(families) // 4), *plain])
        + of_families(messages, "ox", 1)
        + of_families(short, most=2)
        + of_stores(stores)
        for _ in range(arguments.epochs[1])
    ]
    if arguments.second is None:
        train(model, second, reader, draw, RATE / 2)
    else:
        model.load_state_dict(torch.load(arguments.second))
    print({name: measure(model, examples, reader, draw) for name, examples in tests.items()}, flush=True)
    after = model.state_dict()
    torch.save(after, arguments.out / "second.pt")
    shares = {name: 1.0 if name.startswith("doubt") else MEAN for name in after}
    model.load_state_dict({name: s * after[name] + (1 - s) * before[name] for name, s in shares.items()})
    print({name: measure(model, examples, reader, draw) for name, examples in tests.items()}, flush=True)
    data = model.packed()
    document = {
        "schema": SCHEMA,
        "rank": RANK,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (arguments.out / WEIGHTS).write_bytes(data)
    (arguments.out / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
