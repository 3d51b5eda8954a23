"""What a text names, and what kind of thing that is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.unit.extract.extraction import WRITTEN, claims, extracted, names

from commonplace.errors import UsageError
from commonplace.extract import extract
from commonplace.extract.relations import MOVES, RULES
from commonplace.types.graph import ENTITY_TYPES, RELATION_TYPES

NAMED = [
    (
        "Look at src/auth/token.ts, ./run.sh and config.yaml.",
        ["src/auth/token.ts file", "./run.sh file", "config.yaml file"],
    ),
    ("See https://example.com/docs for it.", ["https://example.com/docs file"]),
    (
        "Call `load_settings()` or AuthClient::refresh from load_all.",
        ["load_settings() concept", "AuthClient::refresh concept", "load_all concept"],
    ),
    (
        "It runs on Postgres, with redis and Visual Studio Code.",
        ["Postgres tool", "redis tool", "Visual Studio Code tool"],
    ),
    ("We flew to San Francisco, then to Kraków.", ["San Francisco place", "Kraków place"]),
    ("It rained on the Ohio River.", ["Ohio River place"]),
    ("auth.ts uses [redacted: github token] of GitHub.", ["auth.ts file", "GitHub tool"]),
    ("auth.ts uses [redacted: 1password key] of GitHub.", ["auth.ts file", "GitHub tool"]),
    ("We met Dr. Chen and Prime Minister Ardern.", ["Chen person", "Ardern person"]),
    ("We met W. Dale Nelson of NASA.", ["W. Dale Nelson person", "NASA organization"]),
    ("We heard FAA Administrator Allan McArtor.", ["FAA organization", "Allan McArtor person"]),
    ("The Department of Health and Human Services called.", ["Department of Health and Human Services organization"]),
    (
        "The University of Texas and the Bank of America called.",
        ["University of Texas organization", "Bank of America organization"],
    ),
    ("Zblork Inc. called on Monday in May.", ["Zblork Inc. organization"]),
    ("I saw it in Go and on Monday.", ["Go tool"]),
    ("Deploy to Vercel. Deploy it now.", ["Vercel tool"]),
    ("We moved the Orion project and the NOVA service.", ["Orion project", "NOVA project"]),
    ("She left project Zeus for the Blue Lantern app.", ["Zeus project", "Blue Lantern project"]),
    ("We asked about the Juno database and the Redis repo.", ["Juno tool", "Redis tool"]),
    ("The Pluto team calls the API service.", ["Pluto concept", "API concept"]),
]


@pytest.mark.parametrize(("text", "expected"), NAMED, ids=[text for text, _ in NAMED])
def test_text_names_exactly_these(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_capital_at_the_beginning_of_a_sentence_is_no_name_unless_a_fact_needs_it() -> None:
    assert names("Caching is slow.") == []
    assert names("Caching depends on Redis.") == ["Caching concept", "Redis tool"]


@pytest.mark.parametrize("opener", ["Alright", "Whoa", "Hmm", "Gosh", "Yep", "Nope", "Yay", "Yo", "Aw", "Cheers"])
def test_word_that_opens_a_turn_is_no_part_of_the_name_behind_it(opener: str) -> None:
    """In chat people leave out the comma of an address: the name alone is who is meant."""
    assert names(f"{opener} Sam, that is nice.") == ["Sam person"]


@pytest.mark.parametrize("adverb", ["Maybe", "Perhaps", "Probably", "Apparently", "Unfortunately", "Actually"])
def test_adverb_at_the_beginning_is_no_part_of_the_name_behind_it(adverb: str) -> None:
    """Else a doubt becomes a part of somebody's name, and names him in what is sure as well."""
    assert [name.split()[0] for name in names(f"{adverb} Cara works for Initech.")] == ["Cara", "Initech"]


def test_opener_that_no_given_name_follows_may_begin_a_name() -> None:
    assert names("Ha Long Bay is part of Vietnam.") == ["Ha Long Bay place", "Vietnam place"]


def test_opener_inside_a_name_stays_a_part_of_it() -> None:
    assert names("We met Jung Ha.") == ["Jung Ha person"]


def test_part_of_a_longer_name_is_no_name_beside_it() -> None:
    assert names("The payments API uses Rust.") == ["payments API concept", "Rust tool"]


def test_dates_are_told_from_the_time_of_the_text() -> None:
    found = extracted("Yesterday it rained.")
    assert [(date.text, date.until - date.since) for date in found.dates] == [("Yesterday", 86_400.0)]


def test_month_that_is_a_date_is_no_name() -> None:
    assert names("It rained in Oslo in May 2024.") == ["Oslo place"]


def test_impossible_time_is_refused() -> None:
    with pytest.raises(UsageError, match="is no time of the calendar"):
        extract("x", at=1e300)


def test_every_relation_of_the_grammar_is_a_known_one() -> None:
    known = {rule.relation for rules in RULES.values() for rule in rules}
    assert known == set(RELATION_TYPES)
    assert set(MOVES.values()) <= set(RELATION_TYPES)


def test_every_type_that_the_grammar_demands_is_a_known_one() -> None:
    demanded = {type_ for rules in RULES.values() for rule in rules for type_ in rule.before | rule.behind}
    assert demanded <= {*ENTITY_TYPES, "thing"}


def test_importing_loads_nothing_heavy() -> None:
    script = (
        "import sys, commonplace.extract; print(sorted({'numpy', 'yaml', 'dateutil', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_time_of_the_text_is_all_that_dates_hang_on() -> None:
    assert extract("We met on Monday.", at=WRITTEN) == extract("We met on Monday.", at=WRITTEN)


# What names say by standing beside each other, and where a name ends: sentences of the kinds that newspapers print.

BESIDE = [
    ("Dominique Beuff of the International Red Cross Committee spoke.", "WORKS_FOR International Red Cross Committee"),
    ("Noboru Takeshita of the Liberal Democratic Party spoke.", "WORKS_FOR Liberal Democratic Party"),
    ("Sam Weaver at the Institute of Zoology agreed.", "WORKS_FOR Institute of Zoology"),
    ("Andrew Stephens, president of Zblork Plastics, agreed.", "WORKS_FOR Zblork Plastics"),
    ("We met the deputy secretary of the Foreign Ministry, Tom Baker.", "Tom Baker WORKS_FOR Foreign Ministry"),
    ("George Weaver was born in New York.", "LIVES_IN New York once"),
    ("In 1898, George Weaver was born in New Jersey.", "LIVES_IN New Jersey"),
    ("They met in Haifa in northern Israel.", "Haifa LOCATED_IN Israel"),
    ("He was a patient at Ancora State Hospital in Zblorkton.", "Ancora State Hospital LOCATED_IN Zblorkton"),
    ("A blaze south of Kelowna, British Columbia, spread.", "Kelowna LOCATED_IN British Columbia"),
    ("GRAND RAPIDS, Mich. - it rained in the city.", "GRAND RAPIDS LOCATED_IN Mich."),
    ("NASA spokesman Lt. Tom Baker spoke.", "Tom Baker WORKS_FOR NASA"),
    ("Tom Baker, 53, a former NASA engineer, spoke of it.", "Tom Baker WORKS_FOR NASA ended"),
    ("Tom Baker, candidate of the Labour Party, spoke.", "Tom Baker WORKS_FOR Labour Party"),
]

NOTHING = [
    "It will be told in London, Argentina's friend.",
    "He was shot at Ford's Theater in Washington.",
    "New York Sen. Robert Weaver spoke.",
    "U.S. Ambassador Robert Weaver spoke.",
    "Fred Weaver, president of Habitat for Humans, spoke.",
    "Mira of Zblork likes tea.",
    "We looked at Boston, Chicago and Denver.",
]

NAMES = [
    ("Tom Long agreed.", "Tom Long person"),
    ("Morgan Stanley Bank hired Tom.", "Morgan Stanley Bank organization"),
    ("Cheers Anna, I moved to Berlin.", "Anna person"),
    ("Malcolm O 'Neill agreed.", "Malcolm O 'Neill person"),
    ("We met Darly Alves da Brandt there.", "Darly Alves da Brandt person"),
    ("They drove through Henry County then.", "Henry County place"),
    ("Ann lives there.", "Ann person"),
]


@pytest.mark.parametrize(("text", "fact"), BESIDE)
def test_names_beside_each_other_state_a_fact(text: str, fact: str) -> None:
    assert any(fact in claim for claim in claims(text))


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_stands_beside_a_name_states_none_of_where_one_is(text: str) -> None:
    assert [claim for claim in claims(text) if "PREFERS" not in claim] == []


@pytest.mark.parametrize(("text", "name"), NAMES)
def test_a_name_is_found_whole(text: str, name: str) -> None:
    assert name in names(text)


def test_a_day_behind_a_name_is_no_part_of_it() -> None:
    assert "Tom person" in names("We met Tom Monday night.")
