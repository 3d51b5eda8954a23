"""The analysis of text into terms: words, identifiers, scripts, and the fields of a passage."""

from __future__ import annotations

import threading

import pytest

from commonplace.text import analysis
from commonplace.text.analysis import FIELDS, LONGEST_TERM, analyse, clear_cache, many_words, terms_by_field


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running runners RAN", ["run", "runner", "ran"]),
        ("the cat and the hat", ["cat", "hat"]),
        ("don't use John's", ["use", "john"]),
        ("loginService", ["loginservic", "login", "servic"]),
        ("ConnectionResetError", ["connectionreseterror", "connect", "reset", "error"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("snake_case", ["snakecas", "snake", "case"]),
        ("two-stage", ["twostag", "two", "stage"]),
        ("os.path", ["ospath", "os", "path"]),
        ("__init__", ["init"]),
        ("APIs", ["api"]),
        ("0.27", ["0.27", "0", "27"]),
        ("2024-05-12", ["2024-05-12", "2024", "05", "12"]),
        ("(foo,bar)[0]", ["foo", "bar", "0"]),
        ("use-of_the.word", ["useoftheword", "use", "word"]),
    ],
)
def test_words_and_identifiers_give_these_terms(text: str, terms: list[str]) -> None:
    """These terms are stored in indexes: a change of any needs a new schema version."""
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("数据库配置", ["数据", "据库", "库配", "配置"]),
        ("猫", ["猫"]),
        ("使用Python编程", ["使用", "python", "编程"]),
        ("데이터", ["데이", "이터"]),
        ("データ", ["デー", "ータ"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("ＵＴＦ８", ["utf8", "utf", "8"]),
        ("café ﬁne", ["cafe", "fine"]),
        ("Straße", ["strass"]),
        ("İstanbul ISTANBUL", ["istanbul", "istanbul"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ÉcoleNormale", ["ecolenormal", "ecol", "normal"]),
    ],
)
def test_other_scripts_and_forms_give_these_terms(text: str, terms: list[str]) -> None:
    """A text must be found however its characters were typed, in every script."""
    assert analyse(text) == terms


def test_a_text_of_stop_words_only_keeps_them() -> None:
    """ "To be or not to be" is a query too, and "The Who" a title."""
    assert analyse("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert analyse("The Who") == ["the", "who"]


@pytest.mark.parametrize("text", ["", " \n\t", "?!…—", "\x00", "\ud800", "___", "..."])
def test_a_text_without_words_gives_no_terms(text: str) -> None:
    """Any string is accepted, lone surrogates included."""
    assert analyse(text) == []


def test_a_word_beyond_all_bounds_is_cut_and_does_not_stay_in_memory() -> None:
    """Minified files and encoded data hold words of a million characters."""
    assert analyse("a" * 1_000_000) == ["a" * LONGEST_TERM]
    assert analyse("é" * 1_000_000) == ["e" * LONGEST_TERM]
    assert len(analyse("ab-" * 300_000)) == 300_000
    assert len(analyse("猫" * 100_000)) == 99_999


def test_encoded_data_is_not_torn_to_pieces() -> None:
    """A digest split at every digit would fill the index with single letters."""
    assert len(analyse("a3f5b9c1d7e2a4f6b8c0")) == 1


def test_analysis_is_the_same_before_and_after_the_cache_was_cleared_and_in_every_thread() -> None:
    """The cache and the stemmer behind it are shared between threads."""
    text = " ".join(f"fooBar{n} running{n}Tests" for n in range(300))
    expected = analyse(text)
    results: list[list[str]] = []

    def work() -> None:
        for _ in range(5):
            clear_cache()
            results.append(analyse(text))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 20


def fields(**values: str) -> dict[str, list[str]]:
    given = {"title": "", "heading": "", "path": "", "text": "", "summary": ""} | values
    return terms_by_field(**given, tags=("Red Tape", "x"))


def test_fields_are_exactly_those_with_weights() -> None:
    """Index, tail and reference sum over the same fields."""
    assert list(fields()) == list(FIELDS)


def test_title_holds_the_distinct_words_of_title_heading_and_path() -> None:
    """A file named after its title must not count twice."""
    made = fields(title="Billing guide", heading="Refunds", path="docs/billing.md")
    assert made["title"] == ["bill", "guid", "refund", "doc", "billingmd", "md"]
    assert made["tags"] == ["red", "tape", "x"]


def test_a_summary_that_the_text_contains_is_left_out() -> None:
    """The first paragraph is often both, and would lift its own passage twice."""
    assert fields(text="We chose Postgres. Then we slept.", summary="We chose Postgres.")["summary"] == []
    assert fields(text="Then we slept.", summary="We chose Postgres.")["summary"] == ["chose", "postgr"]


def test_single_characters_are_indexed_beside_their_pairs() -> None:
    """A query of one Han character would otherwise find nothing."""
    assert fields(text="黑猫")["content"] == ["黑猫", "黑", "猫"]
    assert fields(text="猫")["content"] == ["猫"]


def test_few_words_are_kept_except_while_many_are_to_come() -> None:
    """A server would hold the terms of every word it ever met; a large corpus is analysed twice as fast with them."""
    text = " ".join(f"word{number}" for number in range(10_000))
    terms = analyse(text)
    words = analysis.words_in("english", "english")
    assert 0 < len(words) <= 4_096
    with many_words():
        assert analyse(text) == terms
        assert len(words) == 10_000
    assert len(words) == 0
    assert analyse(text) == terms
    assert len(words) <= 4_096
