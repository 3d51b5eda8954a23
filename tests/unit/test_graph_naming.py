"""Which names are one name, and which are not."""

from __future__ import annotations

import pytest

from commonplace.errors import UsageError
from commonplace.graph.names import MAX_NAME_CHARACTERS, checked, cleaned, keys, loose, normal


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("loginService", "loginservice"),
        ("login_service", "loginservice"),
        ("the Login-Service", "loginservice"),
        ("Dr. Mira Okafor", "miraokafor"),
        ("O’Brien", "obrien"),
        ("Müller", "muller"),
        ("Ｂｅｒｌｉｎ", "berlin"),
        (".\\src\\Auth.ts", "src/auth.ts"),
        ("C++", "c++"),
        ("AT&T", "at&t"),
        ("phase 1 2", "phase1 2"),
        ("St. Louis", "stlouis"),
        ("!!!", "!!!"),
        ("🙂", "🙂"),
        ("the", "the"),
        ("A B", "ab"),
        ("a cache", "cache"),
        ("an API", "api"),
        ("the C", "c"),
        ("東京", "東京"),
    ],
)
def test_the_normal_form_of_a_name(name: str, form: str) -> None:
    assert normal(name) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("auth.ts", "auth.py"),
        ("Berlin", "Bern"),
        ("v1", "v2"),
        ("v1.2", "v12"),
        ("C", "C++"),
        ("C", "C#"),
        ("src/auth.ts", "lib/auth.ts"),
        ("phase 1 2", "phase 12"),
        (".env", "env"),
        ("Postgres", "PostgreSQL"),
        ("A B", "B"),
        ("An X", "X"),
    ],
)
def test_names_of_different_things_differ(one: str, other: str) -> None:
    assert normal(one) != normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Postgres", "PostgreSQL"),
        ("Node.js", "NodeJS"),
        ("Acme", "Acme, Inc."),
        ("Commonplace", "the Commonplace project"),
        ("k8s", "Kubernetes"),
        ("USA", "United States"),
    ],
)
def test_well_known_forms_share_a_loose_form(one: str, other: str) -> None:
    assert loose(one) == loose(other)


@pytest.mark.parametrize(("one", "other"), [("v1.2", "v12"), ("Go", "Golf"), ("src/a.ts", "srca.ts"), ("SQL", "S")])
def test_loose_forms_stay_apart(one: str, other: str) -> None:
    assert loose(one) != loose(other)


def test_keys_are_of_the_type_of_thing() -> None:
    assert keys("Mira Okafor", "person") == ("\x1fpart:mira", "\x1fpart:okafor")
    assert keys("src/auth.ts", "file") == ("\x1ffile:auth.ts",)
    assert keys("Postgres", "tool") == ("\x1fsame:postgresql",)
    assert keys("payments APIs", "concept") == ("\x1fsame:paymentsapis", "\x1fstem:payment api")
    assert keys("phase 2", "concept") == ("\x1fsame:phase2",)


def test_a_name_is_kept_without_control_characters() -> None:
    assert cleaned(" a\x00b\n\tc\x1f ") == "a b c"


@pytest.mark.parametrize("name", ["", "  \n", "\x00\x1f", "x" * (MAX_NAME_CHARACTERS + 1), "x" * 10_000, None, 7])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="source is"):
        checked("source", name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("\ud800", "half of a character"),
        ("Mira\ud800", "half of a character"),
        ("\x00", "nothing is to be seen"),
        ("\x07\x9b", "nothing is to be seen"),
        ("\u200b", "nothing is to be seen"),
        ("\u200b \u2060\ufeff", "nothing is to be seen"),
        ("\u202e", "nothing is to be seen"),
        ("\u0301", "nothing is to be seen"),
        ("\xad", "nothing is to be seen"),
        ("  ", "characters"),
    ],
)
def test_what_nobody_can_see_or_write_is_no_name(name: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as caught:
        checked("source", name)
    assert str(caught.value).startswith("source is ")
    assert caught.value.remedy != ""


@pytest.mark.parametrize("name", ["Mira\nOkafor", "🙂", "!!!", "👩\u200d💻", "می\u200cخواهم", "C", "\tMira", "é"])
def test_what_people_write_is_a_name(name: str) -> None:
    assert checked("source", name) == " ".join(name.split())


@pytest.mark.parametrize("name", ["\ud800", "\u200b", "\x00", "\u202e \u0301", ""])
def test_nothing_is_kept_of_a_name_that_nobody_can_see(name: str) -> None:
    assert cleaned(name) == ""
