"""Gather the pairs that the table learns from, in groups; knows where each comes from, no model."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from model import packages
from model.packages import Package
from model.pairs import Pair, of_answer, of_code, of_country, of_page, of_service, of_talk, of_wordnet, worth

SEED = 20_261_122
PER_PACKAGE = 2_500
"""So many pairs of each kind are drawn from a package, so that no large one teaches more than its subject."""
_CODE = re.compile(r"(async )?def ")
_CHANGES = re.compile("change|release", re.IGNORECASE)


class Group(NamedTuple):
    """Pairs of one kind: a step of training draws its pairs from one group, so that the wrong passages are not easy.

    Attributes:
        share: how often the group is drawn, against the other groups' shares.
        most: so many pairs of it are used.
    """

    name: str
    share: float
    most: int
    pairs: list[Pair]


def groups(work: Path, data: Path) -> list[Group]:
    """Return all groups, each with its pairs in a fixed random order; kept in `work/lessons.json`."""
    path = work / "lessons.json"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(_gathered(work, data)), encoding="utf-8")
        unfinished.rename(path)
    read = json.loads(path.read_text(encoding="utf-8"))
    return [Group(name, share, most, [Pair(*pair) for pair in pairs]) for name, share, most, pairs in read]


def _gathered(work: Path, data: Path) -> list[Group]:
    code, docstrings, pages = _of_sources(work)
    groups = [
        Group("a sentence about a function, its code", 3.0, 45_000, code),
        Group("the first sentence about a function or class, the others", 3.0, 45_000, docstrings),
        Group("a heading, its section", 1.5, 20_000, pages),
        Group("words, their meaning; a meaning, an example", 2.0, 100_000, list(_of_wordnet(work))),
        Group("a country and a subject, what there is to say", 1.0, 9_000, list(_of_countries(work))),
        Group("an operation of a web service, what it does", 0.7, 15_000, list(_of_services(work))),
        Group("a question about health, the answer", 1.0, 16_000, list(_of_answers(data))),
        Group("a line of talk, the next one", 0.2, 1_300, list(_of_talk(work))),
    ]
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    return [group._replace(pairs=_some(draw, group.pairs, group.most)) for group in groups]


def _some(draw: random.Random, pairs: list[Pair], most: int) -> list[Pair]:
    different = sorted(set(pairs))
    return draw.sample(different, min(most, len(different)))


def _of_sources(work: Path) -> tuple[list[Pair], list[Pair], list[Pair]]:
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    code, docstrings, pages = list[Pair](), list[Pair](), list[Pair]()
    for package in packages.SOURCES:
        documented = [pair for pair in _of_package(package, work, (".py",)) if worth(pair)]
        functions = [pair for pair in documented if _CODE.match(pair.passage)]
        code += _some(draw, functions, PER_PACKAGE)
        docstrings += _some(draw, [pair for pair in documented if not _CODE.match(pair.passage)], PER_PACKAGE)
        print(f"{package.name} {package.version}: {len(documented)} pairs", flush=True)
    for package in (*packages.SOURCES, *packages.MANUALS):
        pages += filter(worth, _of_package(package, work, (".rst", ".md", ".txt")))
    return code, docstrings, pages


def _of_package(package: Package, work: Path, endings: tuple[str, ...]) -> Iterator[Pair]:
    for path, content in packages.texts(packages.archive(package, work), endings):
        text = content.decode("utf-8", "replace")
        if path.suffix == ".py":
            yield from of_code(text)
        elif not _CHANGES.search(str(path)) and (path.suffix != ".txt" or "docs" in path.parts):
            yield from of_page(text, marks="md" if path.suffix == ".md" else "rst")


def _of_wordnet(work: Path) -> Iterator[Pair]:
    for _, content in packages.texts(packages.wordnet(work), ("data.noun", "data.verb", "data.adj", "data.adv")):
        yield from of_wordnet(content.decode("utf-8", "replace"))


def _of_services(work: Path) -> Iterator[Pair]:
    for _, content in packages.texts(packages.archive(packages.SERVICES, work), ("service-2.json.gz",)):
        yield from filter(worth, of_service(json.loads(gzip.decompress(content))))


def _of_countries(work: Path) -> Iterator[Pair]:
    for _, content in packages.texts(packages.archive(packages.COUNTRIES, work), (".json",)):
        yield from filter(worth, of_country(json.loads(content)))


def _of_talk(work: Path) -> Iterator[Pair]:
    for path, content in packages.texts(packages.archive(packages.TALK, work), (".yml",)):
        if "english" in path.parts:
            yield from of_talk(content.decode("utf-8"))


def _of_answers(data: Path) -> Iterator[Pair]:
    with (data / "medquad" / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield from filter(worth, of_answer(json.loads(line)["text"]))
