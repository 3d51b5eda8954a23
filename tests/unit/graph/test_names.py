"""Which names are one name, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.extract.words import COUNTRIES
from commonplace.graph import names
from commonplace.graph.names import (
    _SAME,
    MAX_NAME_CHARACTERS,
    are_compatible,
    better_name,
    checked,
    choose,
    cleaned,
    compare,
    forms_of,
    keys,
    lookups,
    loose,
    normal,
    stored_keys,
)
from commonplace.text.words import entries
from commonplace.types.graph import Entity


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
    assert keys("payments API", "concept") == ("\x1fsame:paymentsapi",)
    assert keys("phase 2", "concept") == ("\x1fsame:phase2",)


def test_a_name_is_kept_without_control_characters() -> None:
    assert cleaned(" a\x00b\n\tc\x1f ") == "a b c"


@pytest.mark.parametrize("name", ["", "  \n", "\x00\x1f", "x" * (MAX_NAME_CHARACTERS + 1), "x" * 10_000, None, 7])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="source is"):
        checked("source", name)


@pytest.mark.parametrize(
    "name",
    ["\ud800", "Mira\ud800", "\x00", "\x07\x9b", "\u200b", "\u200b \u2060\ufeff", "\u202e", "\u0301", "\xad", "  "],
)
def test_what_nobody_can_see_or_write_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"source is .*, of .* characters; give a name of 1 to 200 characters"):
        checked("source", name)


@pytest.mark.parametrize("name", ["Mira\nOkafor", "🙂", "!!!", "👩\u200d💻", "می\u200cخواهم", "C", "\tMira", "é"])
def test_what_people_write_is_a_name(name: str) -> None:
    assert checked("source", name) == " ".join(name.split())


@pytest.mark.parametrize("name", ["\ud800", "\u200b", "\x00", "\u202e \u0301", ""])
def test_nothing_is_kept_of_a_name_that_nobody_can_see(name: str) -> None:
    assert cleaned(name) == ""


# Which known entity a name means; precision comes first.


Named = tuple[Entity, tuple[str, ...]]


def known(*names: str, type: str = "concept", at: float = 0.0) -> Named:  # noqa: A002
    return Entity(names[0], names[0], type, created_at=at), names


def found(name: str, type_: str, *candidates: Named) -> str | None:
    chosen = choose(name, type_, candidates)
    return None if chosen is None else chosen.name


@pytest.mark.parametrize(
    ("name", "type_", "candidate"),
    [
        ("postgresql", "tool", known("PostgreSQL", type="tool")),
        ("Postgres", "tool", known("PostgreSQL", type="tool")),
        ("Postgres", "concept", known("PostgreSQL", type="tool")),
        ("GitHub", "organization", known("Github", type="tool")),
        ("Mira", "person", known("Mira Okafor", type="person")),
        ("Dr. Okafor", "person", known("Mira Okafor", type="person")),
        ("M. Okafor", "person", known("Mira Okafor", type="person")),
        ("Mira Okafor", "person", known("Mira", type="person")),
        ("Mira A. Okafor", "person", known("Mira Okafor", type="person")),
        ("auth.ts", "file", known("src/auth.ts", type="file")),
        ("src/auth.ts", "file", known("auth.ts", type="file")),
        ("loginService", "concept", known("login service")),
        ("Acme", "organization", known("Acme Inc.", type="organization")),
        ("the auth module", "concept", known("auth service", "auth module")),
        ("USA", "place", known("United States", type="place")),
        ("3 June", "concept", known("June 3")),
        ("the 3rd of June", "concept", known("June 3")),
        ("3 Sept 2026", "concept", known("September 3rd, 2026")),
    ],
)
def test_a_name_means_the_one_entity_that_it_can(name: str, type_: str, candidate: Named) -> None:
    assert found(name, type_, candidate) == candidate[0].name


@pytest.mark.parametrize(
    ("name", "type_", "candidate"),
    [
        ("auth.ts", "file", known("auth.py", type="file")),
        ("src/auth.ts", "file", known("lib/auth.ts", type="file")),
        ("auth", "concept", known("auth.ts", type="file")),
        ("Berlin", "place", known("Bern", type="place")),
        ("Berlin", "person", known("Berlin", type="place")),
        ("Paris Hilton", "person", known("Paris", type="place")),
        ("v1", "concept", known("v2")),
        ("release 1", "event", known("release 2", type="event")),
        ("Mira Chen", "person", known("Mira Okafor", type="person")),
        ("Mira Okafor", "person", known("Tom Okafor", type="person")),
        ("M.", "person", known("Mira Okafor", type="person")),
        ("Mercury", "project", known("Mercury", type="place")),
        ("C", "tool", known("C++", type="tool")),
        ("Georgia", "person", known("Georgia", type="place")),
        ("3 June", "concept", known("June 30")),
        ("3 June", "concept", known("3 July")),
        ("3 June 2026", "concept", known("June 3")),
    ],
)
def test_a_name_that_only_looks_alike_is_a_new_entity(name: str, type_: str, candidate: Named) -> None:
    assert found(name, type_, candidate) is None


def test_a_given_name_that_two_bear_means_neither() -> None:
    okafor, chen = known("Mira Okafor", "Mira", type="person"), known("Mira Chen", type="person")
    assert found("Mira", "person", okafor) == "Mira Okafor"
    assert found("Mira", "person", okafor, chen) is None


def test_an_entity_of_just_that_name_goes_before_others() -> None:
    assert found("Mira", "person", known("Mira", type="person"), known("Mira Okafor", type="person")) == "Mira"


def test_of_several_of_the_same_name_the_type_decides_and_then_the_age() -> None:
    first, second = known("Stripe", type="tool", at=1.0), known("Stripe", type="organization", at=2.0)
    assert choose("Stripe", "organization", [first, second]) is second[0]
    assert choose("Stripe", "concept", [second, first]) is first[0]


def test_a_base_name_of_two_paths_means_neither() -> None:
    assert found("auth.ts", "file", known("src/auth.ts", type="file"), known("lib/auth.ts", type="file")) is None


def test_the_whole_name_is_the_better_one() -> None:
    assert better_name("Mira", "Mira Okafor", "person") == "Mira Okafor"
    assert better_name("Mira Okafor", "Mira", "person") == "Mira Okafor"
    assert better_name("Weber", "Dr. Weber", "person") == "Dr. Weber"
    assert better_name("Dr. Weber", "Weber", "person") == "Dr. Weber"
    assert better_name("Dr. Weber", "Ute Weber", "person") == "Ute Weber"
    assert better_name("auth.ts", "src/auth.ts", "file") == "src/auth.ts"
    assert better_name("PostgreSQL", "Postgres", "tool") == "PostgreSQL"


def test_which_types_are_compatible() -> None:
    assert are_compatible("concept", "person")
    assert are_compatible("tool", "organization")
    assert not are_compatible("concept", "file")
    assert not are_compatible("place", "organization")


def test_a_name_is_looked_up_under_all_that_it_may_stand_under() -> None:
    assert set(lookups("Mira Okafor", "person")) == {"miraokafor", "\x1fpart:mira", "\x1fpart:okafor", "mira", "okafor"}
    assert set(lookups("auth.ts", "concept")) == {"auth.ts", "\x1fsame:authts", "authts", "\x1ffile:auth.ts"}


def test_what_is_the_name_itself_is_no_key_beside_it() -> None:
    """Most names are plain: each key is a row, and a longer name is looked up under its plain parts too."""
    assert stored_keys("Mira", "person") == stored_keys("auth.ts", "file") == stored_keys("Redis", "tool") == ()
    assert stored_keys("Mira Okafor", "person") == keys("Mira Okafor", "person")
    assert choose("Mira Okafor", "person", [(Entity("1", "Okafor", "concept", 0.0), ("Okafor",))]) is None


# Other forms of a name: which mean the same, and which only look so. A wrong "the same" joins two lives.

SAME = [
    ("Acme's", "organization", "Acme"),
    ("the auth module's", "concept", "auth module"),
    ("James'", "concept", "James"),
]

DIFFERENT = [
    ("Liz Chen", "person", "Elizabeth Okafor"),
    ("Liz Okafor", "person", "Tom Okafor"),
    ("Al", "person", "Alf"),
    ("Beth", "person", "Liz"),
    ("Robin", "person", "Robert"),
    ("Kim", "person", "Katherine"),
    ("Jack", "person", "John"),
    ("Robert's Rules", "concept", "Bob"),
    ("WHO", "organization", "World Heritage Office of Berlin"),
    ("who", "concept", "World Health Organization"),
    ("API", "concept", "Acme Payments Inc"),
    ("API", "organization", "Acme Payments Inc"),
    ("SQL", "concept", "Second Quarter Launch"),
    ("HP", "concept", "Harry Potter"),
    ("ABC", "concept", "a better cache"),
    ("World Health Organization", "organization", "WHO"),
    ("redis", "tool", "redi"),
    ("news", "concept", "new"),
    ("status", "concept", "statu"),
    ("analytics", "concept", "analytic"),
    ("access", "concept", "acces"),
    ("Williams", "organization", "William"),
    ("Jeans", "concept", "Jean"),
    ("Rosa Cafe", "place", "Rosa Hotel"),
    ("Systems", "organization", "Berlin Systems"),
    ("Wolves", "organization", "Acme Wolves"),
    ("Lakes", "place", "Minnesota Lakes"),
    ("v1s", "concept", "v1"),
    ("auth.ts", "file", "auth.t"),
    ("Mira's", "person", "Mirah"),
]


def type_of(type_: str, name: str) -> str:
    if type_ == "concept" and name in ("World Health Organization", "Acme Payments Inc"):
        return "organization"
    return type_


@pytest.mark.parametrize(("name", "type_", "other"), SAME)
def test_another_form_of_a_name_means_the_one_that_is_known(name: str, type_: str, other: str) -> None:
    assert found(name, type_, known(other, type=type_of(type_, other))) == other


@pytest.mark.parametrize(("name", "type_", "other"), DIFFERENT)
def test_what_only_looks_like_another_form_is_somebody_else(name: str, type_: str, other: str) -> None:
    assert found(name, type_, known(other, type=type_of(type_, other))) is None


def test_who_shares_a_given_name_alone_is_somebody_else() -> None:
    """That Mira Okafor is called Mira makes nobody with another surname her."""
    assert found("Mira Chen", "person", known("Mira Okafor", "Mira", type="person")) is None


def test_a_graph_knows_its_entities_by_these_forms(book: Engine) -> None:
    graph = book.graph
    graph.add_episode("Elizabeth Okafor works for the World Health Organization.")
    graph.add_episode("Elizabeth Okafor left the WHO in May.")
    assert graph.entity("Elizabeth").name == "Elizabeth Okafor"


def test_two_people_of_one_given_name_stay_two(book: Engine) -> None:
    graph = book.graph
    for text in ("Mira Okafor lives in Berlin.", "Mira likes tea.", "Mira Chen lives in Munich."):
        graph.add_episode(text)
    assert graph.entity("Mira Okafor").uuid != graph.entity("Mira Chen").uuid
    assert graph.disputes() == []


def as_written(name: str) -> str:
    return " ".join(word if word in ("of", "and", "the") else word[0].upper() + word[1:] for word in name.split())


@pytest.mark.parametrize("country", sorted(COUNTRIES))
def test_a_country_is_apart_from_another_however_its_name_ends(country: str) -> None:
    """`Philippines` is no plural."""
    other = "Germany" if country != "germany" else "France"
    assert compare(forms_of([as_written(country)]), forms_of([other])) == "apart"


@pytest.mark.parametrize("line", entries(Path(names.__file__).with_name("cities.txt")))
def test_a_city_lies_in_its_country_as_both_are_written(line: str) -> None:
    country, _, cities = line.partition(":")
    apart = [
        city
        for city in map(as_written, cities.split(","))
        if compare(forms_of([city]), forms_of([as_written(country)])) != "within"
    ]
    assert not apart


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Node.js", "nodejs", True),
        ("Next.js", "nextjs", True),
        ("Progress Bar library", "Progress library", False),
        ("Menu Bar project", "Menu", False),
    ],
)
def test_loose_forms(one: str, other: str, is_same: bool) -> None:
    assert (loose(one) == loose(other)) == is_same


@pytest.mark.parametrize("form", sorted(_SAME))
def test_a_well_known_name_is_itself_in_its_looser_form(form: str) -> None:
    assert loose(form) == _SAME[form]
