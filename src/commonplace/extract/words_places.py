"""Words that tell a place: countries, states, large cities, and what follows a place's name."""

from __future__ import annotations

from typing import Final


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.replace("\n", " ").split(",") if name.strip())


COUNTRIES: Final = _names(
    """
afghanistan, albania, algeria, angola, argentina, armenia, australia, austria, azerbaijan, bahamas, bahrain,
bangladesh, barbados, belarus, belgium, belize, benin, bhutan, bolivia, bosnia, bosnia-herzegovina, botswana, brazil,
brunei, bulgaria, burkina faso, burma, burundi, cambodia, cameroon, canada, chad, chile, china, colombia, congo,
costa rica, croatia, cuba, cyprus, czech republic, czechia, czechoslovakia, denmark, dominican republic, east germany,
ecuador, egypt, el salvador, england, eritrea, estonia, ethiopia, fiji, finland, france, gabon, gambia, germany, ghana,
great britain, britain, greece, grenada, guatemala, guinea, guyana, haiti, honduras, hungary, iceland, india,
indonesia,
iran, iraq, ireland, israel, italy, ivory coast, jamaica, japan, jordan, kazakhstan, kenya, kosovo, kuwait, kyrgyzstan,
laos, latvia, lebanon, liberia, libya, liechtenstein, lithuania, luxembourg, macedonia, madagascar, malawi, malaysia,
maldives, mali, malta, mauritania, mauritius, mexico, moldova, monaco, mongolia, montenegro, morocco, mozambique,
myanmar, namibia, nepal, netherlands, new zealand, nicaragua, niger, nigeria, north korea, northern ireland, norway,
oman, pakistan, palestine, panama, papua new guinea, paraguay, peru, philippines, poland, portugal, puerto rico, qatar,
romania, russia, rwanda, saudi arabia, scotland, senegal, serbia, sierra leone, singapore, slovakia, slovenia, somalia,
south africa, south korea, south sudan, soviet union, spain, sri lanka, sudan, suriname, sweden, switzerland, syria,
taiwan, tajikistan, tanzania, thailand, tibet, togo, tunisia, turkey, turkmenistan, uae, uganda, ukraine, uk, u.k,
united arab emirates, united kingdom, united states, united states of america, uruguay, usa, u.s, u.s.a, ussr, u.s.s.r,
us, uzbekistan, venezuela, vietnam, wales, west germany, yemen, yugoslavia, zaire, zambia, zimbabwe, frg, gdr, prc,
rok,
dprk, crimea, chechnya
"""
)

STATES: Final = _names(
    """
alabama, alaska, arizona, arkansas, california, colorado, connecticut, delaware, florida, georgia, hawaii, idaho,
illinois, indiana, iowa, kansas, kentucky, louisiana, maine, maryland, massachusetts, michigan, minnesota, mississippi,
missouri, montana, nebraska, nevada, new hampshire, new jersey, new mexico, new york, north carolina, north dakota,
ohio, oklahoma, oregon, pennsylvania, rhode island, south carolina, south dakota, tennessee, texas, utah, vermont,
virginia, washington, west virginia, wisconsin, wyoming, district of columbia,
ala, ariz, ark, calif, colo, conn, del, fla, ga, ill, ind, kan, kans, ky, la, md, mass, mich, minn, miss, mo,
mont,
neb, nev, n.h, n.j, n.m, n.y, n.c, n.d, okla, ore, pa, penn, r.i, s.c, s.d, tenn, tex, vt, va, wash, w.va, wis, wyo,
d.c,
alberta, british columbia, manitoba, nova scotia, ontario, quebec, saskatchewan, bavaria, saxony, catalonia, andalusia,
queensland, new south wales, tasmania, tamil nadu, kerala, karnataka, maharashtra, punjab, sichuan, guangdong
"""
)
"""States and provinces, with the abbreviations that newspapers use (without their last full stop)."""

POSTAL: Final = frozenset(
    """
AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC
SD TN TX UT VT VA WA WV WI WY DC
""".split()
)
"""Count only behind a place and a comma."""

CITIES: Final = _names(
    """
abidjan, abu dhabi, accra, addis ababa, albany, albuquerque, aleppo, alexandria, algiers, amman, amsterdam, anchorage,
ankara, antwerp, athens, atlanta, auckland, austin, baghdad, baku, bali, baltimore, bangalore, bengaluru, bangkok,
barcelona, basel, beijing, beirut, belfast, belgrade, berkeley, berlin, bern, bilbao, birmingham, bogota, bogotá,
bologna,
bonn, bordeaux, boston, boulder, bratislava, bremen, brisbane, bristol, brooklyn, brussels, bucharest, budapest,
buenos aires, buffalo, cairo, calcutta, calgary, cambridge, canberra, cape town, caracas, cardiff, casablanca,
charlotte,
chennai, chicago, cincinnati, cleveland, cologne, colombo, columbus, copenhagen, cork, cracow, dakar, dallas, damascus,
davos, delhi, new delhi, denver, detroit, dhaka, doha, dresden, dubai, dublin, durban, düsseldorf, edinburgh, edmonton,
eindhoven, essen, florence, fort worth, frankfurt, gdansk, gdańsk, geneva, genoa, ghent, glasgow, gothenburg, göteborg,
granada, graz, grenoble, grozny, guadalajara, guangzhou, hague, the hague, halifax, hamburg, hanoi, hanover, harare,
havana, heidelberg, helsinki, hiroshima, ho chi minh city, hong kong, honolulu, houston, hyderabad, indianapolis,
islamabad, istanbul, izmir, jakarta, jerusalem, johannesburg, kabul, kampala, kansas city, karachi, kathmandu,
khartoum,
kiev, kyiv, kigali, kingston, kinshasa, kraków, kuala lumpur, kyoto, lagos, lahore, las vegas, leeds, leipzig, lima,
linz, lisbon, liverpool, ljubljana, london, los angeles, louisville, lubbock, luxembourg city, lyon, madison, madrid,
malmö, manchester, manhattan, manila, marseille, mecca, medellín, melbourne, memphis, mexico city, miami, milan,
milwaukee, minneapolis, minsk, mogadishu, monterrey, montevideo, montreal, montréal, moscow, mumbai, bombay, munich,
münchen, nagasaki, nairobi, naples, nashville, new orleans, new york city, nice, nicosia, novosibirsk, nuremberg,
oakland, odessa, oklahoma city, omaha, orlando, osaka, oslo, ottawa, oxford, palermo, palo alto, panama city, paris,
peking, perth, philadelphia, phnom penh, phoenix, pittsburgh, porto, portland, prague, pretoria, pristina, pune,
pyongyang,
quito, raleigh, rangoon, reykjavik, reykjavík, riga, rio de janeiro, riyadh, rochester, rome, rotterdam, sacramento,
saigon, saint petersburg, st. petersburg, salt lake city, salzburg, san antonio, san diego, san francisco, san jose,
san juan, san salvador, santa barbara, santa fe, santiago, são paulo, sao paulo, sarajevo, savannah, seattle, seoul,
seville, shanghai, sheffield, shenzhen, skopje, sofia, split, st. louis, stockholm, stuttgart, sydney, taipei, tallinn,
tampa, tbilisi, tehran, tel aviv, tijuana, tirana, tokyo, toledo, toronto, toulouse, trieste, tripoli, tucson, tulsa,
tunis, turin, ulaanbaatar, utrecht, valencia, vancouver, venice, vienna, vientiane, vilnius, warsaw, wellington,
winnipeg, wroclaw, yerevan, yokohama, aachen, aarhus, adelaide, ahmedabad, anaheim, ann arbor, arlington, asheville,
augusta, bakersfield, baton rouge, bergen,
boise, bridgeport, cagliari, charleston, chattanooga, chihuahua, chongqing, colorado springs, corpus christi, córdoba,
dayton, des moines, durham, el paso, eugene, fargo, fresno, galveston, gaza city, georgetown, greensboro, greenville,
guatemala city, haifa, hartford, huntsville, jacksonville, jersey city, kazan, knoxville, kunming,
kolkata, lausanne, lexington, lille, little rock, long beach, lviv, montgomery, nantes, nanjing,
newark,
norfolk, oaxaca, odense, palm springs, perugia, pisa, plymouth, portsmouth, providence, puebla, reno,
richmond,
rostock, rostov, salem, samarkand, san bernardino, sapporo, scranton, sevastopol, spokane, springfield, stanford,
syracuse,
tacoma, tampere, tempe, topeka, trenton, trondheim, tulsa, turku, uppsala, veracruz, victoria falls, vladivostok, waco,
wichita, wilmington, winterthur, wuhan, yonkers, zagreb, zurich, zürich, silicon valley, hollywood, wall street,
capitol hill,
white house, kremlin, pentagon, queens, bronx, harlem, st. joseph, st. paul, vatican city, vatican, midland
"""
)

REGIONS: Final = _names(
    """
africa, antarctica, asia, europe, north america, south america, latin america, central america, eastern europe,
western europe, middle east, far east, southeast asia, east coast, west coast, gulf coast, midwest, new england,
scandinavia, balkans, caucasus, siberia, caribbean, mediterranean, persian gulf, pacific, atlantic, atlantic ocean,
pacific ocean, arctic, baltic, baltics, balkan, gaza, gaza strip, west bank, golan heights, great lakes, rocky
mountains,
appalachians, alps, himalayas, sahara, southern california, northern california, great plains, korean peninsula, earth,
mars, moon, america, korea, danube, rhine, nile, amazon river, volga, thames
"""
)

PLACE_HEADS: Final = frozenset(
    """
airport avenue base basin bay beach boulevard bridge building canal canyon cape castle cathedral cave center centre
city
coast cove creek county desert district drive falls farm field forest fort gardens gulf harbor harbour heights highway
hill hills hotel house island islands isle jungle junction lake lakes lane mansion memorial monument mount mountain
mountains museum oasis ocean parish park pass peninsula plant plateau plaza point port prison province raceway ranch
range region reservation reservoir ridge river road rock sea seashore shore shores site sound springs square stadium
station strait straits street territory tower towers town township tunnel valley village volcano
wells woods zoo peninsula penitentiary depository hall
""".split()
)
"""Last words of a place's name."""

PLACE_FRONTS: Final = frozenset(
    "mount mt lake fort cape port saint st san santa santo los las el north south east west northern southern eastern "
    "western central northeast northwest southeast southwest greater downtown upper lower gulf".split()
)

INTO_PLACE: Final = frozenset(
    "in at near from to around outside inside throughout across through toward towards".split()
)
