"""Read labelled documents, memories and conversations from disk, or generate a corpus and questions about it.

Every fault of a file is a `UsageError` that names the file and the line or entry.

Generated words come from the tokenizer's vocabulary, which lists pieces from most to least common; stems with endings
make the long tail. Most words of a passage follow the Zipf–Mandelbrot law of the whole language: the frequency of rank
r is proportional to 1 / (r + q)^s (Mandelbrot, "An informational theory of the statistical structure of language",
1953). The others follow the same law over the words of the passage's topic, so that they come in bursts. The constants
reproduce two million words of English passages, where the hundred commonest words make up .46 of the text and about
fifty thousand words are distinct: caches and term dictionaries depend on that.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.health.golden import read_golden
from commonplace.models.static import ModelData
from commonplace.retention import DAY_S
from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document

_CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
LOCOMO_CATEGORIES: Mapping[int, str] = dict(enumerate(_CATEGORIES, 1))

_SESSION = re.compile(r"session_(\d+)")
# Evidence comes as "D1:3", and sometimes as "D8:6; D9:17", "D:11:26" or "D30:05".
_TURN = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_TIME, _LONGMEMEVAL_TIME = "%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one conversation.

    Attributes:
        type: the type of the question, as named in the data set.
        turns, sessions: distinct ids of the turns and sessions that hold the evidence.
        is_counted: whether it counts in the total; other questions are reported only by type.
    """

    id: str
    text: str
    type: str
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation: its turns in order, each a document with a session, and the questions about it.

    Attributes:
        asked_at: when the questions are asked, in seconds since the epoch; None if the file has no times.
        repaired: number of references to evidence that were malformed but readable.
        unknown: number of references to evidence that name no turn or session; they are left out.
    """

    id: str
    turns: tuple[Document, ...]
    questions: tuple[Question, ...]
    repaired: int = 0
    unknown: int = 0
    asked_at: float | None = None


def read_dialogues(path: Path, form: str) -> Iterator[Dialogue]:
    """Yield the conversations of a file in the order of the file."""
    if form not in FORMATS:
        raise UsageError(f"format {form!r} is unknown", remedy=f"use one of {', '.join(FORMATS)}")
    try:
        entries = json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno} is not JSON ({error.msg})", remedy="give one JSON list") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error})", remedy="give one JSON list in UTF-8") from error
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path} holds no list of entries", remedy="give one JSON list")
    for number, entry in enumerate(entries):
        try:
            yield FORMATS[form](entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{path}, entry {number} is not a {form} entry: {type(error).__name__} {error}",
                remedy="check the format and the file",
            ) from error


def _locomo(entry: Mapping[str, Any]) -> Dialogue:
    conversation = entry["conversation"]
    turns = []
    for session in sorted(filter(_SESSION.fullmatch, conversation), key=lambda name: int(name.partition("_")[2])):
        at = _time(conversation.get(f"{session}_date_time", ""), _LOCOMO_TIME)
        for turn in conversation[session]:
            caption = turn.get("blip_caption")
            text = f"{turn['speaker']}: {turn['text']}" + (f" [{caption}]" if caption else "")
            turns.append(Document(id=turn["dia_id"], text=text, session=session, at=at))
    sessions = {turn.id: turn.session for turn in turns}
    questions, repaired, unknown = [], 0, 0
    for number, item in enumerate(entry["qa"]):
        evidence: dict[str, None] = {}
        for piece in item.get("evidence") or []:
            turn_ids = [f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(piece)]
            existing = [turn for turn in turn_ids if turn in sessions]
            repaired += bool(existing) and turn_ids != [piece]
            unknown += max(len(turn_ids), 1) - len(existing)
            evidence.update(dict.fromkeys(existing))
        category = LOCOMO_CATEGORIES.get(item["category"], str(item["category"]))
        questions.append(
            Question(
                id=f"{entry['sample_id']}/{number}",
                text=str(item["question"]),
                type=category,
                turns=tuple(evidence),
                sessions=tuple(dict.fromkeys(sessions[turn] for turn in evidence)),
                is_counted=category != "adversarial",
            )
        )
    # The file does not say when its questions are asked; they refer to the whole conversation as past.
    last = max((turn.at for turn in turns if turn.at is not None), default=None)
    asked_at = None if last is None else last + DAY_S
    return Dialogue(str(entry["sample_id"]), tuple(turns), tuple(questions), repaired, unknown, asked_at)


def _time(text: str, form: str) -> float | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _longmemeval(entry: Mapping[str, Any]) -> Dialogue:
    turns, evidence = [], []
    dates = entry.get("haystack_dates") or []
    names = [str(name) for name in entry["haystack_session_ids"]]
    for position, (name, session) in enumerate(zip(names, entry["haystack_sessions"], strict=True)):
        at = _time(str(dates[position]), _LONGMEMEVAL_TIME) if position < len(dates) else None
        for number, turn in enumerate(session):
            # The position makes the id unique: a haystack may hold a session twice.
            id_ = f"{position}:{name}:{number}"
            turns.append(Document(id_, f"{turn['role']}: {turn['content']}", session=name, at=at))
            if turn.get("has_answer"):
                evidence.append(id_)
    answers = [str(name) for name in entry["answer_session_ids"]]
    haystack = set(names)
    id_ = str(entry["question_id"])
    # This suffix marks questions that the haystack cannot answer: there is nothing to find.
    is_abstention = id_.endswith("_abs")
    question = Question(
        id=id_,
        text=str(entry["question"]),
        type="abstention" if is_abstention else str(entry["question_type"]),
        turns=tuple(evidence),
        sessions=tuple(dict.fromkeys(name for name in answers if name in haystack)),
        is_counted=not is_abstention,
    )
    unknown = sum(name not in haystack for name in answers)
    asked_at = _time(str(entry.get("question_date", "")), _LONGMEMEVAL_TIME)
    return Dialogue(id_, tuple(turns), (question,), 0, unknown, asked_at)


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], Dialogue]] = {"locomo": _locomo, "longmemeval": _longmemeval}


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its judgements: `grades` maps ids or paths to their relevance, which is positive if relevant."""

    id: str
    text: str
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PersonalQuestion:
    """A person's question about their own memories.

    Attributes:
        style: the kind of question, as named in the data set.
        relevant: ids of the memories that answer it; empty if none does.
        stale: ids of the overtaken memories, which once answered it.
    """

    id: str
    text: str
    style: str
    relevant: tuple[str, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """A person, their memories as items of `remember_many`, and their questions, both in the order of the files."""

    name: str
    memories: tuple[Mapping[str, Any], ...]
    questions: tuple[PersonalQuestion, ...]


def read_corpus(path: Path) -> Iterator[Document]:
    """Yield the documents of a BEIR `corpus.jsonl` ({_id, title?, text}), in the order of the file."""
    for label, row in _rows(path):
        yield Document(id=_id(row, label), text=_text(row, "text", label), title=_text(row, "title", label, default=""))


def read_queries(path: Path) -> dict[str, str]:
    """Return the texts of a BEIR `queries.jsonl` ({_id, text}) by id, in the order of the file."""
    return {_id(row, label): _text(row, "text", label) for label, row in _rows(path)}


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Return the grades of a BEIR `qrels.tsv` by query id and document id; its header line is optional."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        columns = line.split("\t")
        if len(columns) != 3:
            raise _fault(f"{path}:{number}", f"has {len(columns)} columns", "query id, document id, score, with tabs")
        try:
            grade = float(columns[2])
        except ValueError:
            if number == 1:
                continue
            raise _fault(f"{path}:{number}", f"has the score {columns[2]!r}", "a number in the third column") from None
        grades.setdefault(columns[0], {})[columns[1]] = grade
    return grades


def read_judged_queries(queries: Path, qrels: Path) -> tuple[list[Query], int]:
    """Return the queries with at least one relevant document, and the number of queries without."""
    texts, grades = read_queries(queries), read_qrels(qrels)
    judged = [
        Query(id_, text, grades[id_])
        for id_, text in texts.items()
        if any(grade > 0 for grade in grades.get(id_, {}).values())
    ]
    if not judged:
        raise UsageError(f"no query of {queries} has a relevant document in {qrels}", remedy="give files of one set")
    return judged, len(texts) - len(judged)


def read_labelled_queries(path: Path) -> list[Query]:
    """Return the queries of a file of golden queries; every relevant path has grade 1."""
    return [
        Query(str(number), golden.query, {name.removeprefix("./"): 1.0 for name in golden.relevant})
        for number, golden in enumerate(read_golden(path), 1)
    ]


def read_people(memories: Path, questions: Path) -> list[Person]:
    """Read memories ({user, id, at, content, origin}) and questions ({user, id, question, style, …}), grouped by user.

    `relevant` and `stale` hold ids of the user's memories; question times are unused. Users need at least one question.
    """
    memories_of: dict[str, list[Mapping[str, Any]]] = {}
    for label, row in _rows(memories):
        memories_of.setdefault(_text(row, "user", label), []).append(
            {name: _text(row, name, label) for name in ("id", "at", "content", "origin")}
        )
    questions_of: dict[str, list[PersonalQuestion]] = {}
    for label, row in _rows(questions):
        user, text = _text(row, "user", label), _text(row, "question", label)
        memory_ids = {memory["id"] for memory in memories_of.get(user, ())}
        answers = {}
        for name in ("relevant", "stale"):
            ids = row.get(name, [])
            if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
                raise _fault(label, f"has `{name}` {ids!r}", "a list of ids")
            if unknown := [id_ for id_ in ids if id_ not in memory_ids]:
                raise _fault(label, f"has in `{name}` {unknown[0]!r}", "the id of a memory of the same user")
            answers[name] = tuple(ids)
        question = PersonalQuestion(_text(row, "id", label), text, _text(row, "style", label), **answers)
        questions_of.setdefault(user, []).append(question)
    if not questions_of:
        raise UsageError(f"{questions} holds no question", remedy="give one JSON object {user, id, question} a line")
    return [Person(name, tuple(memories_of.get(name, ())), tuple(group)) for name, group in questions_of.items()]


def read_talk(path: Path) -> Iterator[str]:
    """Yield the `content` of JSON lines, or the texts of the turns of a LoCoMo file, which is one JSON list."""
    first = next((line.lstrip()[:1] for _, line in _lines(path)), "")
    if first == "[":
        yield from (turn.text for dialogue in read_dialogues(path, "locomo") for turn in dialogue.turns)
    else:
        yield from (_text(row, "content", label) for label, row in _rows(path))


def _unreadable(path: Path, error: OSError) -> NotFoundError | UsageError:
    kind = NotFoundError if isinstance(error, FileNotFoundError) else UsageError
    return kind(f"{path} cannot be read: {error.strerror}", remedy="name a readable file")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise _fault(f"{path}:{number + 1}", "is not UTF-8", "text in UTF-8") from error


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in _lines(path):
        label = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _fault(label, f"is not JSON ({error})", "one JSON object a line") from error
        if not isinstance(row, dict):
            raise _fault(label, f"is a JSON {type(row).__name__}", "one JSON object a line")
        yield label, row


def _id(row: Mapping[str, Any], label: str) -> str:
    value = row.get("_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _fault(label, f"has `_id` {value!r}", "a non-empty string")
    return str(value)


def _text(row: Mapping[str, Any], key: str, label: str, *, default: str | None = None) -> str:
    value = row.get(key, default)
    if not isinstance(value, str):
        raise _fault(label, f"has `{key}` {value!r}", "a string")
    return value


def _fault(label: str, problem: str, expected: str) -> UsageError:
    return UsageError(f"{label} {problem}", remedy=f"expected {expected}")


EXPONENT, SHIFT = 1.3, 2.7
WORDS = 60_000
TOPICS = 400
TOPIC_WORDS = 300
TOPIC_RANKS = (150, 20_000)
"""Range of ranks of the topics' words: the commonest words belong to no topic, the rarest to no single one."""
TOPIC_SHARE = 0.3
LENGTHS = (120, 281)
"""Half-open range of words per passage, uniformly distributed with a mean of 200."""
BATCH = 500
SAMPLED = 500
"""Number of documents from which questions are generated."""

_OPENINGS = ("what is", "how does the", "where did we", "why was the", "which of the", "when did", "who has")


def words_of(pieces: Iterable[str], limit: int = WORDS) -> list[str]:
    """Return distinct words of a WordPiece vocabulary: its whole words, in order, then stems with endings."""
    pieces = list(pieces)
    # Leave out single letters: a vocabulary lists them first, common or not.
    whole = [piece for piece in pieces if len(piece) > 1 and piece.isascii() and piece.isalpha()]
    endings = [piece[2:] for piece in pieces if piece.startswith("##") and piece[2:].isalpha() and piece.isascii()]
    stems = [word for word in whole if len(word) > 3]
    words = dict.fromkeys(whole)
    # Different strides through stems and endings keep an ending from always meeting the same stem.
    for number in count():
        if len(words) >= limit or not stems or number >= len(stems) * len(endings):
            break
        words[stems[(number * 7) % len(stems)] + endings[(number * 3) % min(len(endings), 400)]] = None
    return list(words)[:limit]


def make_documents(passages: int, seed: int = 0, words: Sequence[str] = ()) -> Iterator[Document]:
    """Yield generated passages, by default from the model's vocabulary; equal arguments give equal bytes."""
    words = words or words_of(ModelData().vocabulary())
    generator = np.random.default_rng(seed)
    general_law = _law(len(words))
    # Uniform in the logarithm of the rank: common words belong to more topics than rare ones.
    first, last = min(TOPIC_RANKS[0], len(words) // 2), min(TOPIC_RANKS[1], len(words))
    ranks = first * (last / first) ** generator.random((TOPICS, min(TOPIC_WORDS, len(words))))
    topics = ranks.astype(np.int64)
    topic_law = _law(topics.shape[1])
    # The second form of every word ends a sentence, so that joining the words needs no work for punctuation.
    forms = [*words, *(f"{word}." for word in words)]
    for start in range(0, passages, BATCH):
        size = min(BATCH, passages - start)
        lengths = generator.integers(*LENGTHS, size=size)
        total = int(lengths.sum())
        ids = np.searchsorted(general_law, generator.random(total))
        topic = np.repeat(generator.integers(len(topics), size=size), lengths)
        topical = topics[topic, np.searchsorted(topic_law, generator.random(total))]
        ids = np.where(generator.random(total) < TOPIC_SHARE, topical, ids)
        ids = ids + len(words) * (generator.random(total) < 1 / 16)
        text = [forms[number] for number in ids.tolist()]
        ends = np.cumsum(lengths).tolist()
        for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False), start=start):
            yield Document(id=f"p{number:07d}", text=" ".join(text[begin:end]))


def _law(ranks: int) -> NDArray[np.float64]:
    """Return the cumulative Zipf–Mandelbrot distribution, float64, shape (ranks,), ending in exactly 1."""
    shares = 1.0 / (np.arange(1, ranks + 1) + SHIFT) ** EXPONENT
    cumulative = np.cumsum(shares)
    return np.asarray(cumulative / cumulative[-1])


def sample(documents: Iterable[Document], size: int, seed: int) -> list[Document]:
    """Return a uniform random sample of `size` documents in one pass (Vitter's algorithm R, 1985)."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    reservoir: list[Document] = []
    for number, document in enumerate(documents):
        if len(reservoir) < size:
            reservoir.append(document)
        elif (index := draw.randrange(number + 1)) < size:
            reservoir[index] = document
    return reservoir


def questions_about(documents: Iterable[Document], size: int, seed: int) -> list[str]:
    """Return questions about a sample of `SAMPLED` documents; none if these have no words."""
    return make_queries(sample(documents, SAMPLED, seed), size, seed + 1)


def make_queries(passages: Sequence[Document], size: int, seed: int) -> list[str]:
    """Return questions of 3–10 words about the passages; every other one is phrased, with an opening and stop words."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    texts = (
        ["".join(filter(str.isalnum, word)).lower() for word in passage.text.split() if any(map(str.isalnum, word))]
        for passage in passages
    )
    with_words = [words for words in texts if len(words) >= 3]
    questions = []
    for number in range(size if with_words else 0):
        words = draw.choice(with_words)
        if number % 2:
            opening = draw.choice(_OPENINGS)
            length = min(draw.randint(6, 10) - len(opening.split()), len(words))
            start = draw.randrange(len(words) - length + 1)
            questions.append(" ".join([opening, *words[start : start + length]]))
        else:
            content = list(dict.fromkeys(word for word in words if word not in STOP_WORDS)) or words
            questions.append(" ".join(draw.sample(content, min(draw.randint(3, 6), len(content)))))
    return questions
