"""The readers of labelled sets: what they accept, and what they say about files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.benchmarks.data import (
    Query,
    read_corpus,
    read_judged_queries,
    read_labelled_queries,
    read_qrels,
    read_queries,
)
from commonplace.errors import UsageError
from commonplace.types import Document


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_corpus_keeps_ids_titles_and_order(tmp_path: Path) -> None:
    """Ids are the judgements' keys; a number in a file is the same key as its digits in the qrels."""
    path = write(tmp_path, "corpus.jsonl", '{"_id": "b", "title": "T", "text": "one"}\n\n{"_id": 7, "text": "two"}\n')
    assert list(read_corpus(path)) == [Document("b", "one", title="T"), Document("7", "two")]


@pytest.mark.parametrize("header", ["query-id\tcorpus-id\tscore\n", ""])
def test_qrels_are_read_with_and_without_a_header(tmp_path: Path, header: str) -> None:
    """BEIR writes the line, other tools do not."""
    path = write(tmp_path, "qrels.tsv", f"{header}q1\td1\t2\nq1\td2\t0\r\nq2\td1\t1\n")
    assert read_qrels(path) == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d1": 1.0}}


def test_queries_without_a_relevant_document_are_counted_not_asked(tmp_path: Path) -> None:
    """They would only lower every method alike; how many there were is part of the result."""
    queries = write(
        tmp_path,
        "queries.jsonl",
        '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n{"_id": "q3", "text": "three"}\n',
    )
    qrels = write(tmp_path, "qrels.tsv", "q1\td1\t2\nq2\td1\t0\n")
    assert read_judged_queries(queries, qrels) == ([Query("q1", "one", {"d1": 2.0})], 2)


def test_files_of_two_different_sets_are_refused(tmp_path: Path) -> None:
    """Zero for every method would look like a measurement."""
    queries = write(tmp_path, "queries.jsonl", '{"_id": "q1", "text": "one"}\n')
    qrels = write(tmp_path, "qrels.tsv", "other\td1\t2\n")
    with pytest.raises(UsageError, match=r"no query of .* has a relevant document"):
        read_judged_queries(queries, qrels)


def test_labelled_queries_name_paths(tmp_path: Path) -> None:
    """A path may be written as a shell completes it, with ./ in front."""
    path = write(tmp_path, "labelled.jsonl", '{"query": "login", "relevant": ["./src/login.py", "docs/login.md"]}\n')
    assert read_labelled_queries(path) == [Query("1", "login", {"src/login.py": 1.0, "docs/login.md": 1.0})]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"_id": "a", "text": "x"}\n{"_id": "b"', r"corpus\.jsonl:2 is not JSON"),
        ('{"_id": "a", "text": "x"}\n\n["b"]', r"corpus\.jsonl:3 is a JSON list"),
        ('{"text": "x"}', r"corpus\.jsonl:1 has `_id` None"),
        ('{"_id": "a", "text": 5}', r"corpus\.jsonl:1 has `text` 5"),
        ('{"_id": true, "text": "x"}', r"corpus\.jsonl:1 has `_id` True"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    """A corpus of a million lines is only mended by someone who knows which one is wrong."""
    with pytest.raises(UsageError, match=complaint):
        list(read_corpus(write(tmp_path, "corpus.jsonl", text)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("q1\td1\t1\nq1 d2 1\n", r"qrels\.tsv:2 has 1 columns"),
        ("q1\td1\t1\nq1\td2\tgood\n", r"qrels\.tsv:2 has the score 'good'"),
    ],
)
def test_a_bad_judgement_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    """A word in the third column is a header in the first line only."""
    with pytest.raises(UsageError, match=complaint):
        read_qrels(write(tmp_path, "qrels.tsv", text))


@pytest.mark.parametrize("relevant", ["[]", '"src/login.py"', "[1]", "null"])
def test_labels_must_be_a_list_of_paths(tmp_path: Path, relevant: str) -> None:
    """A bare string would be read as a list of letters."""
    path = write(tmp_path, "labelled.jsonl", f'{{"query": "login", "relevant": {relevant}}}\n')
    with pytest.raises(UsageError, match=r"labelled\.jsonl:1 has `relevant`"):
        read_labelled_queries(path)


def test_a_missing_or_foreign_file_is_a_usage_error(tmp_path: Path) -> None:
    """Nobody should meet a traceback for a typing error or a file in Latin-1."""
    with pytest.raises(UsageError, match="cannot be read"):
        read_queries(tmp_path / "absent.jsonl")
    foreign = tmp_path / "latin.jsonl"
    foreign.write_bytes(b'{"_id": "a", "text": "ok"}\n{"_id": "b", "text": "\xe9"}\n')
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_queries(foreign)
    with pytest.raises(UsageError, match="holds no query"):
        read_labelled_queries(write(tmp_path, "empty.jsonl", "\n"))
