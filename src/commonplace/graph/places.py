"""Which of two places lies in the other, by common knowledge: countries, their parts and cities that everybody knows.

A fact that somebody lives in Germany does not contradict one that she lives in Berlin. Of a place that is not known
here nothing is said, but that a country and something else may lie in each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commonplace.extract.words import COUNTRIES, STATES
from commonplace.graph.naming import loose

_CITIES: Final = """
argentina: buenos aires; australia: sydney, melbourne, brisbane, perth, canberra; austria: vienna, salzburg, graz, linz;
belgium: brussels, antwerp, ghent; brazil: são paulo, rio de janeiro; canada: toronto, montreal, vancouver, ottawa;
chile: santiago; china: beijing, shanghai, shenzhen, guangzhou, hong kong; colombia: bogota, medellin;
czech republic: prague, brno; denmark: copenhagen, aarhus; egypt: cairo, alexandria; finland: helsinki;
france: paris, lyon, marseille, bordeaux, toulouse, nice, lille, nantes, strasbourg;
germany: berlin, munich, hamburg, cologne, frankfurt, stuttgart, düsseldorf, leipzig, dresden, bonn, bremen, hanover,
nuremberg, heidelberg, karlsruhe, münchen, köln; greece: athens, thessaloniki; hungary: budapest;
india: mumbai, delhi, new delhi, bangalore, bengaluru, chennai, hyderabad, pune, kolkata; indonesia: jakarta;
ireland: dublin, cork, galway; israel: tel aviv, jerusalem, haifa;
italy: rome, milan, naples, turin, florence, venice, bologna, genoa, palermo; japan: tokyo, osaka, kyoto, nagoya,
sapporo; kenya: nairobi; mexico: mexico city, guadalajara, monterrey; netherlands: amsterdam, rotterdam, the hague,
utrecht, eindhoven; new zealand: auckland, wellington; nigeria: lagos, abuja; norway: oslo, bergen; poland: warsaw,
krakow, gdansk, wroclaw; portugal: lisbon, porto; romania: bucharest; russia: moscow, saint petersburg;
south africa: cape town, johannesburg, durban, pretoria; south korea: seoul, busan; spain: madrid, barcelona, valencia,
seville, bilbao, malaga; sweden: stockholm, gothenburg, malmö; switzerland: zurich, geneva, basel, bern, lausanne;
taiwan: taipei; thailand: bangkok; turkey: istanbul, ankara, izmir; ukraine: kyiv, kiev, lviv, odessa;
united kingdom: london, manchester, birmingham, edinburgh, glasgow, bristol, leeds, liverpool, oxford, belfast, cardiff,
england, scotland, wales, northern ireland;
united states: new york, new york city, los angeles, chicago, houston, phoenix, philadelphia, san antonio, san diego,
dallas, austin, san francisco, seattle, denver, boston, detroit, nashville, portland, las vegas, baltimore, miami,
atlanta, oakland, minneapolis, pittsburgh, san jose, palo alto, new orleans; vietnam: hanoi
"""
_CONTINENTS: Final = frozenset(
    map(loose, ("africa", "asia", "europe", "north america", "south america", "america", "antarctica", "oceania"))
)
_WIDE: Final = frozenset(map(loose, COUNTRIES)) | _CONTINENTS


def _countries() -> dict[str, str]:
    """Return the country of each city, in the forms that are compared."""
    found = {}
    for line in _CITIES.replace("\n", " ").split(";"):
        country, _, cities = line.partition(":")
        found.update({loose(city.strip()): loose(country.strip()) for city in cities.split(",")})
    return found


_COUNTRY_OF: Final = _countries()
_STATES: Final = frozenset(map(loose, STATES))


def forms_of(names: Iterable[str]) -> frozenset[str]:
    """Return the forms of a place's names by which it is compared."""
    return frozenset(map(loose, names))


def compare(first: frozenset[str], second: frozenset[str]) -> str:
    """Tell by the forms of their names whether of two places one lies in the other: "within", "apart", "unknown"."""
    for inner, outer in ((first, second), (second, first)):
        countries = {_COUNTRY_OF[name] for name in inner if name in _COUNTRY_OF}
        if countries & outer:
            return "within"
    levels = [_is_wide(first), _is_wide(second)]
    if all(levels) and not (first | second) & _CONTINENTS:
        return "apart"
    if any(levels):
        narrow = second if levels[0] else first
        return "apart" if narrow & _COUNTRY_OF.keys() and not (first | second) & _CONTINENTS else "unknown"
    return "unknown" if bool(first & _STATES) != bool(second & _STATES) else "apart"


def _is_wide(names: frozenset[str]) -> bool:
    return bool(names & _WIDE)
