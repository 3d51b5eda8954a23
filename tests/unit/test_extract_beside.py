"""What names say by standing beside each other, and where a name ends: sentences of the kinds that newspapers print."""

from __future__ import annotations

import pytest
from tests.unit.extracting import claims, names

BESIDE = [
    ("Dominique Beuff of the International Red Cross Committee spoke.", "WORKS_FOR International Red Cross Committee"),
    ("Noboru Takeshita of the Liberal Democratic Party spoke.", "WORKS_FOR Liberal Democratic Party"),
    ("Sam Weaver at the Institute of Zoology agreed.", "WORKS_FOR Institute of Zoology"),
    ("Andrew Stephens, president of Zblork Plastics, agreed.", "WORKS_FOR Zblork Plastics"),
    ("John Georges, Zblork's chairman, agreed to it.", "WORKS_FOR Zblork"),
    ("We met the deputy secretary of the Foreign Ministry, Tom Baker.", "Tom Baker WORKS_FOR Foreign Ministry"),
    ("Daniel Weaver, 8, of Zblorkville, won.", "LIVES_IN Zblorkville"),
    ("George Weaver, a Zblorkville native, won the race.", "LIVES_IN Zblorkville"),
    ("Zblorkville native George Weaver won.", "George Weaver LIVES_IN Zblorkville"),
    ("George Weaver was born in New York.", "LIVES_IN New York once"),
    ("In 1898, George Weaver was born in New Jersey.", "LIVES_IN New Jersey"),
    ("They met in Haifa in northern Israel.", "Haifa LOCATED_IN Israel"),
    ("Fort Hamilton, Brooklyn, N.Y., was closed.", "Fort Hamilton LOCATED_IN Brooklyn"),
    ("He was a patient at Ancora State Hospital in Zblorkton.", "Ancora State Hospital LOCATED_IN Zblorkton"),
    ("A blaze south of Kelowna, British Columbia, spread.", "Kelowna LOCATED_IN British Columbia"),
    ("GRAND RAPIDS, Mich. - it rained in the city.", "GRAND RAPIDS LOCATED_IN Mich."),
    ("Sun Hung Kai Properties, a Hong Kong firm, agreed.", "Sun Hung Kai Properties LOCATED_IN Hong Kong"),
    ("CBS anchorman Dan Rather spoke.", "Dan Rather WORKS_FOR CBS"),
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
    ("Ralph K. Winter agreed.", "Ralph K. Winter person"),
    ("Tom Long agreed.", "Tom Long person"),
    ("Malcolm O 'Neill agreed.", "Malcolm O 'Neill person"),
    ("We met Darly Alves da Brandt there.", "Darly Alves da Brandt person"),
    ("They drove through Henry County then.", "Henry County place"),
    ("He taught at Queens College of the City University of New York.", "Queens College organization"),
    ("He taught at Queens College of the City University of New York.", "City University of New York organization"),
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
