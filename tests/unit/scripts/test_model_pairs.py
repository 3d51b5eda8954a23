"""What the model scripts take for a question and its passage; a wrong cut teaches the table nonsense."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "model" / "pairs.py"


@pytest.fixture(scope="module")
def pairs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_script_pairs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_function_is_asked_for_by_its_first_sentence_and_told_without_its_docstring(pairs: ModuleType) -> None:
    """The answer must not repeat the question, or copying would be learned."""
    doc = '"""Return the area of a `circle`. It is\n    never negative.\n    """'
    source = f"def area(r):\n    {doc}\n    return 3 * r * r\n"
    assert list(pairs.of_code(source)) == [
        ("Return the area of a circle", "def area(r):\n    return 3 * r * r"),
        ("Return the area of a circle", "It is never negative."),
    ]
    assert list(pairs.of_code("def broken(:")) == []
    assert list(pairs.of_code('def empty():\n    """.. note:: x"""\n')) == [("", "")]


def test_a_section_is_asked_for_by_its_heading(pairs: ModuleType) -> None:
    """A comment in a code block is no heading of Markdown."""
    rst = "Sailing\n=======\n\nThe *wind* decides.\n\nKnots\n-----\n\n.. note::\n\nTie ``them`` well.\n"
    assert list(pairs.of_page(rst, marks="rst")) == [
        ("", ""),
        ("Sailing", "The wind decides."),
        ("Knots", "Tie them well."),
    ]
    md = "# Tea\n\nBoil water.\n\n```sh\n# not this\n```\n## Cups\nWarm them.\n"
    assert [pair.query for pair in pairs.of_page(md, marks="md")] == ["", "Tea", "Cups"]


def test_words_are_asked_for_by_their_meaning_and_meanings_by_examples(pairs: ModuleType) -> None:
    """A line tells how many words follow, in hexadecimal, each with its sense; those of the licence begin blank."""
    line = '00001740 03 n 02 tea_leaf 0 leaf(p) 0 001 @ 00001930 n 0000 | a dried leaf; "he dried the leaves"  \n'
    assert list(pairs.of_wordnet("  1 This software\n" + line)) == [
        ("tea leaf, leaf", "a dried leaf"),
        ("a dried leaf", "he dried the leaves"),
    ]


def test_an_operation_is_asked_for_in_words(pairs: ModuleType) -> None:
    """Nobody types a name in capitals when looking for what it does."""
    document = {
        "metadata": {"serviceFullName": "Kettle Service"},
        "operations": {"BoilWater": {"documentation": "<p>Boils the water. Waits.</p>"}},
        "shapes": {},
    }
    assert list(pairs.of_service(document)) == [
        ("boil water Kettle Service", "Boils the water. Waits."),
        ("Boils the water.", "Waits."),
    ]


def test_a_country_is_asked_for_with_the_subject(pairs: ModuleType) -> None:
    """What has no name is left out, since nobody could ask for it."""
    about = {"Government": {"Country name": {"conventional short form": {"text": "Chad"}}}}
    assert list(pairs.of_country({**about, "Geography": {"Climate": {"text": "tropical in <b>south</b>"}}})) == [
        ("conventional short form Chad", "Chad"),
        ("Climate Chad", "tropical in  south "),
    ]
    assert list(pairs.of_country({"Geography": {"Climate": {"text": "dry"}}})) == []


def test_a_line_of_talk_is_answered_by_the_next_within_its_dialogue(pairs: ModuleType) -> None:
    """The last line of one dialogue has nothing to do with the first of the next."""
    talk = "categories:\n- food\nconversations:\n- - Hungry?\n  - Very.\n  - 'Then eat.'\n- - Thirsty?\n  - No.\n"
    assert list(pairs.of_talk(talk)) == [("Hungry?", "Very."), ("Very.", "Then eat."), ("Thirsty?", "No.")]


def test_a_medical_passage_is_asked_for_by_the_question_at_its_head(pairs: ModuleType) -> None:
    assert list(pairs.of_answer("What is (are) Gout ? A painful joint.")) == [
        ("What is (are) Gout?", "A painful joint.")
    ]
    assert list(pairs.of_answer("A painful joint.")) == []


@pytest.mark.parametrize(
    ("query", "length", "worth"), [("Two words", 60, True), ("One", 60, False), ("Two words", 59, False)]
)
def test_what_says_too_little_is_left_out(pairs: ModuleType, query: str, length: int, worth: bool) -> None:
    assert pairs.worth(pairs.Pair(query, "x" * length)) is worth
