"""Find pairs of a question and a passage that answers it in sources, manuals and dictionaries; knows texts, no files.

A pair teaches the table what belongs together: a sentence about a function and its code, a heading and what stands
below it, words and their meaning. No pair was judged by anybody.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

MIN_WORDS, MIN_PASSAGE, MAX_PASSAGE_LENGTH = 2, 60, 4_000
_ROLE = re.compile(r":[\w:.+-]+:`[~!]?([^`<]*?)(?:\s*<[^>]*>)?`|`{1,2}([^`]*)`{1,2}_{0,2}")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z\"'(])")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.`_:])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"^\s*(\.\. .*|:\w[\w -]*:.*)$", re.MULTILINE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TAG = re.compile(r"<[^>]*>")
_GLOSS = re.compile(r';\s*(?=")')


class Pair(NamedTuple):
    """A question, or what stands for one, and the passage that belongs to it."""

    query: str
    passage: str


def plain(text: str) -> str:
    """Return a text in one line without the marks of reStructuredText and Markdown."""
    text = _ROLE.sub(lambda match: match[1] or match[2] or "", _DIRECTIVE.sub("", text))
    return " ".join(text.replace("*", "").split())


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence]


def worth(pair: Pair) -> bool:
    """Return whether both sides say something, the passage not at too great length."""
    return len(pair.query.split()) >= MIN_WORDS and MIN_PASSAGE <= len(pair.passage) <= MAX_PASSAGE_LENGTH


def of_code(source: str) -> Iterator[Pair]:
    """Yield for each documented function or class: first sentence and code, and first sentence and what follows it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        doc = ast.get_docstring(node)
        if not doc:
            continue
        first, *remaining = sentences(plain(doc.split("\n\n")[0])) or [""]
        following = plain(" ".join([*remaining, *doc.split("\n\n")[1:]]))
        if not isinstance(node, ast.ClassDef) and len(node.body) > 1:
            node.body = node.body[1:]
            yield Pair(first.rstrip("."), ast.unparse(node))
        yield Pair(first.rstrip("."), following)


def of_page(text: str, *, marks: str) -> Iterator[Pair]:
    """Yield each section of a page, its heading and the text below it; `marks` is rst or md."""
    heading, lines, previous = "", list[str](), ""
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        title = ""
        if marks == "rst" and _UNDERLINE.match(line) and previous.strip() and len(line) >= len(previous.rstrip()):
            title = lines.pop() if lines else previous
        elif marks == "md" and line.startswith("#") and not is_code:
            title = line.lstrip("#")
        if title.strip():
            yield Pair(plain(heading), plain("\n".join(lines)))
            heading, lines = title, []
        else:
            lines.append(line)
        previous = line
    yield Pair(plain(heading), plain("\n".join(lines)))


def of_wordnet(data: str) -> Iterator[Pair]:
    """Yield for each synset of a WordNet data file its words and its gloss, and its gloss with each example."""
    for line in data.splitlines():
        if line.startswith("  ") or " | " not in line:
            continue
        head, _, gloss = line.partition(" | ")
        fields = head.split()
        words = [fields[4 + 2 * index].partition("(")[0].replace("_", " ") for index in range(int(fields[3], 16))]
        meaning, *examples = _GLOSS.split(gloss.strip())
        yield Pair(", ".join(words), meaning)
        for example in examples:
            yield Pair(meaning, example.strip('"; '))


def of_service(document: dict[str, object]) -> Iterator[Pair]:
    """Yield what a service description of botocore says about its operations and shapes, their names split in words."""
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    service = str(metadata.get("serviceFullName", ""))
    for kind in ("operations", "shapes"):
        entries = document.get(kind)
        assert isinstance(entries, dict)
        for name, entry in entries.items():
            text = plain(_TAG.sub(" ", str(entry.get("documentation", ""))))
            first, *remaining = sentences(text) or [""]
            words = _CAMEL.sub(" ", str(name)).lower()
            if kind == "operations":
                yield Pair(f"{words} {service}", text)
            yield Pair(first, " ".join(remaining))


def of_country(document: dict[str, object]) -> Iterator[Pair]:
    """Yield each entry of the World Factbook about a country: subject and country, and what there is to say."""
    name = _at(document, "Government", "Country name", "conventional short form", "text")
    if isinstance(name, str):
        yield from _entries(document, name)


def _entries(part: dict[str, object], country: str) -> Iterator[Pair]:
    for subject, entry in part.items():
        if isinstance(entry, dict):
            if isinstance(text := entry.get("text"), str):
                yield Pair(f"{subject} {country}", _TAG.sub(" ", text))
            yield from _entries(entry, country)


def _at(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def of_talk(text: str) -> Iterator[Pair]:
    """Yield each line of the dialogues of a file of ChatterBot's corpus with the line after it."""
    previous = ""
    for line in text.splitlines():
        mark = line[:4]
        if mark not in ("- - ", "  - "):
            previous = ""
            continue
        turn = line[4:].strip("'\" ")
        if mark == "  - " and previous:
            yield Pair(previous, turn)
        previous = turn


def of_answer(text: str) -> Iterator[Pair]:
    """Yield the question at the head of a MedQuAD passage, and the answer below it."""
    question, mark, answer = text.partition(" ? ")
    if mark:
        yield Pair(question + "?", answer)
