"""The made corpus: the same for everyone, and shaped like text."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from commonplace.benchmarks.data import Recipe, make_documents, make_queries, sample, words_of
from commonplace.benchmarks.latency import content_words
from commonplace.benchmarks.measures import median
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
    first = list(make_documents(Recipe(700, seed=3), WORDS))
    assert first == list(make_documents(Recipe(700, seed=3), WORDS))
    assert first[:5] != list(islice(make_documents(Recipe(700, seed=4), WORDS), 5))
    assert [first[0].id, first[-1].id] == ["p0000000", "p0000699"]


def test_passages_have_about_two_hundred_words_and_repeat_common_ones() -> None:
    """Lengths are 120–280; the first rank is several times as common as the hundredth, as in any language."""
    documents = list(make_documents(Recipe(300), WORDS))
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
        for document in make_documents(Recipe(300), WORDS)
    ]
    assert median(bursts) >= 5


def test_questions_have_three_to_ten_words_and_every_other_reads_like_language() -> None:
    """Stop words make half of real questions, and cost some engines most of their time."""
    passages = list(make_documents(Recipe(50), WORDS))
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
