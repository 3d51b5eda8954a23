"""The made corpus: the same for everyone, and shaped like text."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from benchmarks.baselines import content_words

from commonplace.benchmarks.data import (
    Dialogue,
    Query,
    Question,
    make_documents,
    make_queries,
    read_corpus,
    read_dialogues,
    read_judged_queries,
    read_labelled_queries,
    read_qrels,
    read_queries,
    sample,
    words_of,
)
from commonplace.benchmarks.measures import median
from commonplace.errors import NotFoundError, UsageError
from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document

PIECES = ["[PAD]", "a", "!", "the", "of", "house", "garden", "##ing", "##s", "##!", "ärger"]
WORDS = [f"word{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(600)]


def test_words_are_whole_pieces_first_then_stems_with_endings() -> None:
    """A vocabulary lists common words first, and rank is all that the law of frequencies knows of a word."""
    assert words_of(PIECES) == ["the", "of", "house", "garden", "houseing", "gardens"]
    assert words_of(PIECES, limit=3) == ["the", "of", "house"]


def test_the_same_recipe_gives_the_same_bytes() -> None:
    """Figures of two machines are compared on the same corpus."""
    first = list(make_documents(700, 3, WORDS))
    assert first == list(make_documents(700, 3, WORDS))
    assert first[:5] != list(islice(make_documents(700, 4, WORDS), 5))
    assert [first[0].id, first[-1].id] == ["p0000000", "p0000699"]


def test_passages_have_about_two_hundred_words_and_repeat_common_ones() -> None:
    """Lengths are 120–280; the first rank is several times as common as the hundredth, as in any language."""
    documents = list(make_documents(300, words=WORDS))
    lengths = [len(document.text.split()) for document in documents]
    assert min(lengths) >= 120
    assert max(lengths) <= 280
    assert 190 < sum(lengths) / len(lengths) < 210
    counts = Counter(word.strip(".") for document in documents for word in document.text.split())
    assert counts[WORDS[0]] > 5 * counts[WORDS[100]]


def test_words_of_a_topic_come_in_bursts() -> None:
    """By the law alone, a word of rank 150 or more would come once or not at all in two hundred words."""
    rare = set(WORDS[150:])
    bursts = [
        max(Counter(word for word in document.text.split() if word in rare).values())
        for document in make_documents(300, words=WORDS)
    ]
    assert median(bursts) >= 5


def test_questions_have_three_to_ten_words_and_every_other_reads_like_language() -> None:
    """Stop words make half of real questions, and cost some engines most of their time."""
    passages = list(make_documents(50, words=WORDS))
    questions = make_queries(passages, 40, seed=1)
    assert len(questions) == 40
    assert questions == make_queries(passages, 40, seed=1)
    assert all(3 <= len(question.split()) <= 10 for question in questions)
    assert all(STOP_WORDS & set(question.split()) for question in questions[1::2])
    assert not any(STOP_WORDS & set(question.split()) for question in questions[::2])


def test_passages_too_short_to_ask_about_give_no_questions() -> None:
    """An empty corpus is told apart before anything is divided by its size."""
    assert make_queries([Document("a", "two words"), Document("b", "")], 5, seed=0) == []


def test_a_sample_of_a_short_stream_is_the_stream() -> None:
    """Nothing is drawn twice, and a stream is read once."""
    documents = [Document(str(number), "text") for number in range(10)]
    assert sample(iter(documents), 20, seed=0) == documents
    drawn = sample(iter(documents), 4, seed=0)
    assert len({document.id for document in drawn}) == 4


def test_keyword_engines_get_content_words() -> None:
    """Each once, in lower case; a question of nothing but stop words keeps them."""
    assert content_words("What is the Login login SERVICE?") == ["login", "service"]
    assert content_words("what is it?") == ["what", "is", "it"]
    assert content_words("?!") == []


# The readers of labelled sets: what they accept, and what they say about files that are wrong.


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


def test_a_line_is_ended_by_a_line_feed_alone_and_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """JSON may hold the separators of Unicode as they are, and Windows begins files with a mark."""
    path = tmp_path / "q.jsonl"
    path.write_bytes('\ufeff{"query": "log\u2028in", "relevant": ["a.md"]}\r\n'.encode())
    assert read_labelled_queries(path) == [Query("1", "log\u2028in", {"a.md": 1.0})]


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
    with pytest.raises(UsageError, match=r"line 1 of .*labelled\.jsonl does not name what is relevant"):
        read_labelled_queries(path)


def test_a_missing_or_foreign_file_is_told(tmp_path: Path) -> None:
    """Nobody should meet a traceback for a typing error or a file in Latin-1."""
    with pytest.raises(NotFoundError, match="cannot be read"):
        read_queries(tmp_path / "absent.jsonl")
    with pytest.raises(UsageError, match="cannot be read: Is a directory; name a readable file"):
        read_queries(tmp_path)
    foreign = tmp_path / "latin.jsonl"
    foreign.write_bytes(b'{"_id": "a", "text": "ok"}\n{"_id": "b", "text": "\xe9"}\n')
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_queries(foreign)
    with pytest.raises(UsageError, match="has 0 queries"):
        read_labelled_queries(write(tmp_path, "empty.jsonl", "\n"))


# The readers of conversations, whose published files are not free of faults.


def locomo(evidence: list[str], category: int = 4) -> dict[str, Any]:
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Bye"}],
            "session_10_date_time": "unknown",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a kite"},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "Nice"},
            ],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_3_date_time": "2:00 pm on 9 May, 2023",
        },
        "qa": [{"question": "What flew?", "answer": "a kite", "evidence": evidence, "category": category}],
    }


def read(directory: Path, entries: object, form: str = "locomo") -> list[Dialogue]:
    path = directory / "conversations.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return list(read_dialogues(path, form))


def test_locomo_turns_carry_speaker_caption_session_and_time(tmp_path: Path) -> None:
    """Sessions come in the order of their numbers, not of their names; an unreadable date is no date."""
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    [dialogue] = read(tmp_path, [locomo(["D2:1"])])
    assert dialogue.turns == (
        Document("D2:1", "Ada: Look! [a photo of a kite]", session="session_2", at=at),
        Document("D2:2", "Ben: Nice", session="session_2", at=at),
        Document("D10:1", "Ben: Bye", session="session_10"),
    )
    assert dialogue.questions == (Question("conv-1/0", "What flew?", "single-hop", ("D2:1",), ("session_2",)),)


@pytest.mark.parametrize(
    ("evidence", "turns", "repaired", "unknown"),
    [
        (["D2:1; D2:2"], ("D2:1", "D2:2"), 1, 0),
        (["D2:1 D10:1 D2:2"], ("D2:1", "D10:1", "D2:2"), 1, 0),
        (["D:10:1"], ("D10:1",), 1, 0),
        (["D2:01"], ("D2:1",), 1, 0),
        (["D2:1", "D2:1"], ("D2:1",), 0, 0),
        (["D"], (), 0, 1),
        (["D9:9", "D2:2"], ("D2:2",), 0, 1),
        (["D2:1; D9:9"], ("D2:1",), 1, 1),
        ([], (), 0, 0),
    ],
)
def test_malformed_evidence_is_read_where_it_can_be_and_counted(
    tmp_path: Path, evidence: list[str], turns: tuple[str, ...], repaired: int, unknown: int
) -> None:
    """The published file has each of these; dropping them silently would change the figures."""
    [dialogue] = read(tmp_path, [locomo(evidence)])
    assert dialogue.questions[0].turns == turns
    assert (dialogue.repaired, dialogue.unknown) == (repaired, unknown)


def test_adversarial_questions_stay_out_of_the_total(tmp_path: Path) -> None:
    """Their evidence is for a question that was not asked."""
    [dialogue] = read(tmp_path, [locomo(["D2:1"], category=5)])
    assert dialogue.questions[0].type == "adversarial"
    assert not dialogue.questions[0].is_counted


def longmemeval(question_id: str = "q7") -> dict[str, Any]:
    return {
        "question_id": question_id,
        "question_type": "multi-session",
        "question": "Which bike?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer_session_ids": ["s2", "gone"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello"}],
            [
                {"role": "user", "content": "I ride a gravel bike", "has_answer": True},
                {"role": "assistant", "content": "Good", "has_answer": False},
            ],
        ],
    }


def test_longmemeval_haystack_is_one_conversation(tmp_path: Path) -> None:
    """Evidence by turn is what has the answer; by session what the file names, as far as it is there."""
    [dialogue] = read(tmp_path, [longmemeval()], "longmemeval")
    assert [turn.id for turn in dialogue.turns] == ["0:s1:0", "1:s2:0", "1:s2:1"]
    assert dialogue.turns[0] == Document(
        "0:s1:0",
        "user: Hello",
        session="s1",
        at=datetime(2023, 5, 20, 2, 21, tzinfo=UTC).timestamp(),
    )
    assert dialogue.questions == (Question("q7", "Which bike?", "multi-session", ("1:s2:0",), ("s2",)),)
    assert dialogue.unknown == 1


def test_questions_without_an_answer_are_a_type_of_their_own(tmp_path: Path) -> None:
    """An id that ends in _abs asks for what was never said: there is nothing to find."""
    [dialogue] = read(tmp_path, [longmemeval("q7_abs")], "longmemeval")
    assert dialogue.questions[0].type == "abstention"
    assert not dialogue.questions[0].is_counted


@pytest.mark.parametrize(
    ("entries", "form", "complaint"),
    [
        ([locomo([]), {"qa": []}], "locomo", "entry 1 is not a locomo entry: KeyError 'conversation'"),
        ([locomo([])], "longmemeval", "entry 0 is not a longmemeval entry"),
        ({}, "locomo", "holds no list of entries"),
        ([7], "locomo", "entry 0 is not a locomo entry"),
        ([], "beam", "format 'beam' is unknown; use one of locomo, longmemeval"),
    ],
)
def test_a_file_of_another_shape_is_a_usage_error(tmp_path: Path, entries: object, form: str, complaint: str) -> None:
    """The message names the entry and what it lacks."""
    with pytest.raises(UsageError, match=complaint):
        read(tmp_path, entries, form)


def test_broken_json_is_a_usage_error(tmp_path: Path) -> None:
    """A download that broke off is the usual reason."""
    path = tmp_path / "half.json"
    path.write_text('[\n{"sample_id": ', encoding="utf-8")
    with pytest.raises(UsageError, match=r"half\.json:2 is not JSON"):
        list(read_dialogues(path, "locomo"))
    with pytest.raises(NotFoundError, match="cannot be read"):
        list(read_dialogues(tmp_path / "absent.json", "locomo"))
    with pytest.raises(UsageError, match="cannot be read: Is a directory; name a readable file"):
        list(read_dialogues(tmp_path, "locomo"))
