"""Measure what is found in sentences that people have marked: entities and relations, by type, and the time it takes.

Only names are compared, for the files give no places: an entity is found where its name and type are. A claim is right
where any of the forms that the text has for its two ends stand in one marked relation of that type. The files mark
`Milan , Ohio` as one place here and as two there, and titles here but not there; so all is counted twice: `exact`, and
`by_part`, where a marked name is also met by what stands before or behind its comma, or without its title or `the`.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.output import FILE, json_option, show
from commonplace.benchmarks.harness import describe, latency
from commonplace.errors import UsageError
from commonplace.extract import Extraction, extract
from commonplace.extract.words import TITLES
from commonplace.types import Progress

ENTITY_TYPES: Final[Mapping[str, str]] = {"Peop": "person", "Loc": "place", "Org": "organization", "Other": "other"}
RELATION_TYPES: Final[Mapping[str, str]] = {
    "Work_For": "WORKS_FOR",
    "Live_In": "LIVES_IN",
    "Located_In": "LOCATED_IN",
    "OrgBased_In": "LOCATED_IN",
}
"""`Kill` is left out: we have no such relation."""

WRITTEN_AT: Final = 788_918_400.0
"""1995-01-01: the sentences are older, and none of the figures depends on it."""

_NOT_COMPARED: Final = re.compile(r"[\W_]+")
Fact = tuple[str, str, str]
Name = tuple[str, str]
Readings = Callable[[str], frozenset[str]]
"""How a marked name may be read: the folded names that meet it."""
OTHER: Final = "other"
_JUDGED: Final = frozenset(ENTITY_TYPES.values()) - {OTHER}
_KNOWN: Final = frozenset(RELATION_TYPES.values())


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """What to measure.

    Attributes:
        file: the marked sentences.
        format: how they are laid out, one of `FORMATS`.
    """

    file: Path
    format: str = "conll04"


@dataclass(frozen=True, slots=True)
class Marked:
    """One sentence with what people found in it, in our types."""

    text: str
    entities: frozenset[Name]
    relations: frozenset[Fact]


def run(options: ExtractionOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Extract from every sentence, compare, and return the JSON form of it.

    Raises:
        UsageError: the file cannot be read, or is not of the format.
    """
    if options.format not in FORMATS:
        raise UsageError(f"format {options.format!r} is unknown", remedy=f"use one of {', '.join(FORMATS)}")
    sentences = list(FORMATS[options.format](options.file))
    tallies = {reading: (Tally(), Tally()) for reading in WAYS}
    times: list[float] = []
    for number, marked in enumerate(sentences):
        begin = time.perf_counter()
        extraction = extract(marked.text, at=WRITTEN_AT)
        times.append((time.perf_counter() - begin) * 1000)
        for reading, (entities, relations) in tallies.items():
            compare_entities(marked, extraction, entities, WAYS[reading])
            compare_relations(marked, extraction, relations, WAYS[reading])
        if progress is not None:
            progress("extracting", number + 1, len(sentences))
    return {
        "benchmark": "extraction",
        "machine": describe(),
        "sentences": len(sentences),
        **{
            reading: {"entities": entities.figures(), "relations": relations.figures()}
            for reading, (entities, relations) in tallies.items()
        },
        "time": latency(times),
    }


class Tally:
    """Counts by type: what was marked, what was found, how much of each the other has."""

    def __init__(self) -> None:
        self.marked: Counter[str] = Counter()
        self.extracted: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.recalled: Counter[str] = Counter()

    def figures(self) -> dict[str, dict[str, float]]:
        """Return precision, recall and F1 of every type, and of `all` that can be wrong, which `other` cannot."""
        types = sorted(self.marked.keys() | self.extracted.keys())
        rows = {type_: self._row([type_]) for type_ in types}
        return {**rows, "all": self._row([type_ for type_ in types if type_ != OTHER])}

    def _row(self, types: Sequence[str]) -> dict[str, float]:
        marked, extracted = sum(self.marked[type_] for type_ in types), sum(self.extracted[type_] for type_ in types)
        precision = sum(self.right[type_] for type_ in types) / extracted if extracted else 0.0
        recall = sum(self.recalled[type_] for type_ in types) / marked if marked else 0.0
        both = precision + recall
        return {
            "marked": marked,
            "found": extracted,
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / both if both else 0.0,
        }


def compare_entities(marked: Marked, extraction: Extraction, tally: Tally, readings: Readings) -> None:
    """Count the names of one sentence.

    Marked as `other` are dates, amounts and all the rest, which may be of any type here; they count as found where
    anything of ours, dates too, has that name, and what of ours has another type than the three is not held against it.
    """
    extracted = {(name, entity.type) for entity in extraction.entities for name in forms(marked.text, entity.spans)}
    names = {name for name, _ in extracted} | {folded(date.text) for date in extraction.dates}
    right: set[Name] = set()
    for name, type_ in marked.entities:
        read = readings(name)
        recalled = {(key, type_) for key in read if (key, type_) in extracted}
        is_recalled = bool(recalled) or (type_ == OTHER and not names.isdisjoint(read))
        right |= recalled
        tally.marked[type_] += 1
        tally.recalled[type_] += is_recalled
        if type_ == OTHER:
            tally.extracted[type_] += is_recalled
            tally.right[type_] += is_recalled
    for key in extracted:
        if key[1] in _JUDGED:
            tally.extracted[key[1]] += 1
            tally.right[key[1]] += key in right


def compare_relations(marked: Marked, extraction: Extraction, tally: Tally, readings: Readings) -> None:
    """Count the relations of one sentence, but no claims of types that the file has not, nor inside one marked name."""
    facts = {
        fact: {(left, fact[1], right) for left in readings(fact[0]) for right in readings(fact[2])}
        for fact in marked.relations
    }
    whole = [readings(name) for name, _ in marked.entities]
    recalled: set[Fact] = set()
    for source, target, type_ in {(claim.source, claim.target, claim.type) for claim in extraction.claims}:
        if type_ not in _KNOWN:
            continue
        lefts, rights = (forms(marked.text, extraction.entities[index].spans) for index in (source, target))
        stated = {(left, type_, right) for left in lefts for right in rights}
        fitting = {fact for fact, read in facts.items() if stated & read}
        if not fitting and any(lefts & read and rights & read for read in whole):
            continue
        tally.extracted[type_] += 1
        tally.right[type_] += bool(fitting)
        recalled |= fitting
    for fact in marked.relations:
        tally.marked[fact[1]] += 1
        tally.recalled[fact[1]] += fact in recalled


def exactly(name: str) -> frozenset[str]:
    """Return the one way to read a marked name."""
    return frozenset({folded(name)})


def by_part(name: str) -> frozenset[str]:
    """Return a marked name, what stands before and behind its comma, and what is left of it without a title."""
    words = name.split()
    while len(words) > 1 and words[0].lower().rstrip(".") in TITLES | {"the"}:
        words = words[1:]
    return frozenset({folded(name), folded(" ".join(words)), *map(folded, name.split(","))}) - {""}


def forms(text: str, spans: Sequence[tuple[int, int]]) -> set[str]:
    """Return the names that a text has for an entity, pronouns and common nouns left out."""
    texts = {text[start:end] for start, end in spans}
    return {folded(name) for name in texts if any(char.isupper() or char.isdigit() for char in name)}


def folded(name: str) -> str:
    """Return a name without spaces and punctuation, which the file sets apart."""
    return _NOT_COMPARED.sub("", name).casefold()


def read_conll04(path: Path) -> Iterator[Marked]:
    """Yield the sentences of JSON lines {text, entities: [[name, type]], relations: [[name, type, name]]}.

    Raises:
        UsageError: the file cannot be read, or a line is no such thing; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a readable file in UTF-8") from error
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            yield Marked(
                str(entry["text"]),
                frozenset((_plain(name), ENTITY_TYPES[type_]) for name, type_ in entry["entities"]),
                frozenset(
                    (_plain(source), RELATION_TYPES[type_], _plain(target))
                    for source, type_, target in entry["relations"]
                    if type_ in RELATION_TYPES
                ),
            )
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{path}:{number} is no conll04 sentence: {type(error).__name__} {error}",
                remedy="check the format and the file",
            ) from error


def _plain(name: str) -> str:
    return " ".join(str(name).split()).casefold()


WAYS: Final[Mapping[str, Readings]] = {"exact": exactly, "by_part": by_part}
FORMATS: Final = {"conll04": read_conll04}


@click.command()
@click.argument("file", type=FILE)
@click.option("--format", type=click.Choice(("conll04",)), required=True, help="How FILE is laid out.")
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure what is found in sentences without a model.

    FILE holds sentences in which people have marked entities and relations. Prints precision, recall and F1 by type,
    for exact names and for their parts, and the time for a sentence.
    """
    show(lambda: run(ExtractionOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
