"""Words that tell a person: first names, titles, roles; written down from general knowledge, not taken from a list."""

from __future__ import annotations

from typing import Final

FIRST_NAMES: Final = frozenset(
    """
aaron abdul abigail abraham adam adrian agatha agnes ahmad ahmed aiden aisha akira alan albert alejandro aleksandr
alex alexander alexandra alexis alfred ali alice alicia alison allen allison alma alonso amanda amber amelia amir amit
amy ana anders andre andrea andreas andrei andres andrew andy angela anita anja ann anna anne annie anthony anton
antonia antonio archibald arjun arnold arthur asha astrid audrey august augustus ava ayesha barbara barry bartholomew
beatrice ben benedict benjamin bernadette bernard beth beverly bill billy björn bob bobby bonnie boris brandon brenda
brian bruce bruno bryan caitlin calvin camille carl carla carlos carmen carol caroline carolyn catherine cecilia
charles charlie charlotte chen chiara chloe chris christian christina christine christopher cindy claire clara
clarence claude claudia clifford clyde colin connor constance cornelius craig cristina curtis cynthia daisuke dan dana
daniel daniela danielle danny darren dave david deborah debra delores denis dennis derek diana diane diego dieter
dimitri dmitri dominic don donald donna doris dorothy doug douglas dylan earl eddie edgar edith edmund edna eduardo
edward edwin eileen elaine eleanor elena eli elias elizabeth ella ellen elmer elsie emil emily emma enrique eric erica
erik erin ernest ernesto esther ethan ethel eugene eva evan evelyn ezekiel fatima felix fernando fiona florence floyd
frances francesca francesco francis francisco franco francois frank franz fred frederick friedrich gabriel gabriela
gabriella gabrielle gail gary gavin geoffrey george gerald gerard gertrude gilbert gina giorgio giovanni giulia gladys
glenn gloria gordon grace graham greg gregory guillermo gunther gus gustavo gwendolyn hannah hans harold harriet harry
harvey hassan heather hector heidi heinrich helen helena helga henri henrik henry herbert herman hiroshi howard hubert
hugh hugo ian ibrahim igor ingrid irene iris irma isaac isabel isabella isabelle isaiah ivan jack jackie jacob
jacqueline jacques jaime jake jakob james jamie jan jane janet janice jason javier jay jean jeff jeffrey jennifer
jenny jeremiah jeremy jerome jerry jesse jessica jesus jim jimmy joan joanna joanne joe joel johan johannes john
johnny jon jonas jonathan jordan jorge jose josef joseph josephine josh joshua joyce juan juanita judith judy julia
julian juliana julie julius jun jurgen jürgen kai karen karim karin karl kate katherine kathleen kathryn kathy katie
kay keith kelly ken kenji kenneth kenta kevin khalid kim kimberly kirk klaus konstantin kristen kristin kristina kurt
kyle lance lars laura lauren laurence lawrence layla leah lee leila lena leo leon leonard leonardo leopold leroy
leslie lester levi lewis liam lillian lily linda lisa lloyd lois lorenzo lori lorraine louis louise luca lucas lucia
lucille lucy luigi luis luisa lukas luke lydia lynn mabel madeleine madeline mae magnus malcolm manuel marc marcel
marcia marco marcos marcus margaret maria mariana marie marilyn marina mario marion marjorie mark marta martha martin
martina marvin mary masako matt matteo matthew maureen maurice max maximilian maxwell maya megan mei melanie melissa
melvin mia michael michel michele michelle miguel mika mikael mike mikhail mila milan mildred millicent milton mira
miranda miriam mohamed mohammad mohammed moira molly monica monique morris muhammad mustafa myrtle nadia nancy naomi
natalia natalie natasha nathan nathaniel neil nelson nicholas nick nicolas nicole nigel nikhil nikita nikolai nina
noah noel nolan nora norma norman olga oliver olivia omar oscar oswald otto owen pablo pamela paolo pat patricia
patrick paul paula pauline pavel pedro peggy penelope percy perry pete peter petra phil philip philippe phillip
phyllis pierre priscilla priya rachel rafael rahul raj rajesh ralph ramon randall randy raul ravi ray raymond rebecca
reginald rené ricardo richard rick rita rob robert roberta roberto robin roderick rodney rodrigo roger roland roman
ron ronald rosa rose roy ruben rudolf rudolph russell ruth ryan sally sam samantha samir samuel sandra sara sarah
satoshi scott sean sebastian serge sergei sergio seth shannon sharon shawn sheila shirley sidney silvia simon simone
sofia solomon sonia sonja sophia sophie stacy stan stanley stefan stella stephan stephanie stephen steve steven
stewart stuart sue susan susanna suzanne sven svetlana sylvia søren tabitha takeshi tanya tara ted terence teresa
terrence terry thelma theodore theresa thomas tiffany tim timothy tina tobias toby todd tom tomas tommy tony tracy
travis ulrich ursula valerie vanessa vera vernon veronica vicente vicki victor victoria vikram viktor vincent viola
virginia vivian vladimir walter wanda warren wayne wei wendell wendy werner wilfred wilhelm will william willie wilma
winifred winston wolfgang wyatt xavier yasmin yoko yolanda yuki yuri yusuf yves yvonne zachary zoe zofia åsa émile
éric óscar łukasz
""".split()
)

AMBIGUOUS_FIRST_NAMES: Final = frozenset(
    """
amber angel april art august austin bill carol chase chuck daisy dale dawn dean don drew earl faith frank gene grace
grant hope iris ivy jack jan jasmine jay jean joy june lance lee lily mark may miles nick pat penny ray rich rob robin
rod rose ruby sandy sky skip stone sue summer ted trip victor violet virginia wade will
""".split()
)
"""First names that are also plain words or places: alone at the beginning of a sentence they tell nothing."""

SURNAMES: Final = frozenset(
    """
adams anderson armstrong bailey baker barnes bennett brooks brown bush butler campbell carter castro chang chapman
clark
clinton collins cooper cox cruz davies davis diaz doyle edwards einstein eisenhower evans fernandez fischer fisher
flores
foster garcia gates gibson gomez gonzales gonzalez gorbachev gore graham greene griffin gupta gutierrez hall hamilton
harris harrison hernandez hill hitler hoffman hoover hughes hussein jackson jefferson jenkins jensen johnson johnston
jones kaufman keller kennedy khan khrushchev kim kimura king klein kowalski kumar larsen lenin lennon lincoln lopez
lindberg marshall martinez mccarthy mcdonald meyer miller mitchell moore morales morgan morris mueller murphy murray
müller nelson nguyen nixon novak obama olsen ortiz oswald owens parker patel patterson perez peterson petrov phillips
powell putin quayle ramirez ramos reagan reed reyes reynolds richardson rivera roberts robertson robinson rodriguez
rogers romero roosevelt ross sanchez sanders sato schmidt schneider schwartz shakespeare sharma silva simmons simpson
singh smith stalin stevens stewart stewart sullivan suzuki tanaka taylor thatcher thompson torres truman trump turner
vasquez wagner walker wallace wang warren washington watanabe watson weber webster weiss wells west wilson wong woods
wright yamamoto yeltsin yilmaz zhang
""".split()
) - {
    "hill",
    "hall",
    "king",
    "west",
    "wells",
    "woods",
    "washington",
    "marshall",
    "baker",
    "cooper",
    "butler",
    "fisher",
    "weber",
}
"""Last names that are hardly anything else."""

TITLES: Final = frozenset(
    """
mr mrs ms miss mx dr prof professor sir dame lord lady rev reverend father sister brother saint pope cardinal bishop
archbishop rabbi imam king queen prince princess emperor duke count archduke president president-elect vice-president
premier chancellor
prime minister ministers secretary sen senator senators rep representative reps congressman congresswoman gov governor
mayor councilman councilwoman ambassador judge justice chief gen general lt col colonel maj major capt captain sgt
sergeant cpl corporal pvt private adm admiral cmdr commander officer detective agent marshal sheriff attorney deputy
chairman chairwoman chairperson director coach actor actress author singer composer playwright comedian spokesman
spokeswoman spokesperson comrade ayatollah sheikh sultan shah commissioner lieutenant composer anatomist first
foreign defense defence interior finance undersecretary editor correspondent reporter dictator speaker
ceo cto cfo coo cio vp
""".split()
)
"""What may stand before a name, capitalised, without being a part of it."""

ROLES: Final = frozenset(
    """
accountant adviser advisor administrator agent ambassador analyst anchor architect archivist artist assistant
astronaut attorney author banker biologist boss broker captain ceo cfo chairman chairperson chairwoman chair chancellor
chemist chief cio cofounder co-founder coach colonel columnist commander commissioner congressman congresswoman
consultant contractor coo coordinator correspondent councilman councilor counsel cto curator dean delegate deputy
designer detective developer diplomat director doctor economist editor educator employee engineer envoy executive
expert fellow founder general governor guard head historian inspector instructor intern investigator journalist judge
lawyer leader lecturer lieutenant lobbyist maintainer manager marshal mayor member minister negotiator nurse
officer official operator organizer owner partner physician physicist pilot planner police-officer premier president
principal producer professor programmer prosecutor psychologist publisher rector reporter representative researcher
salesman scientist secretary-general secretary senator sergeant sheriff solicitor specialist spokesman spokesperson
spokeswoman staffer strategist superintendent supervisor surgeon teacher technician trader treasurer trustee
undersecretary vice-chairman vice-president vp worker lead candidate nominee
""".split()
)
"""What somebody is for an organisation: `the head of`, `GE spokesman`."""

PUBLIC_ROLES: Final = frozenset("president governor gov senator mayor premier chancellor king queen".split())
"""Who holds one of these for a place lives there."""

KIN: Final = frozenset(
    "wife husband brother sister son daughter father mother friend colleague assassin playwright comedian inventor "
    "poet singer humorist composer novelist philosopher guitarist businessman actor actress author".split()
)
"""Who somebody is, before the name: `my sister Mira`."""

SUFFIXES: Final = frozenset("jr sr ii iii iv phd md esq".split())

PARTICLES: Final = frozenset("de del della der den di da dos du van von bin ibn al el la le ben ter zu y".split())

DEMONYMS: Final = frozenset(
    """
afghan african albanian algerian american americans angolan arab arabs argentine armenian asian australian austrian
azerbaijani bangladeshi basque belgian bolivian bosnian brazilian british bulgarian burmese cambodian canadian
catholic chechen chilean chinese christian christians colombian croat croatian croats cuban cypriot czech danish
democrat democratic democrats dutch egyptian english estonian ethiopian european europeans filipino finnish french
georgian german germans ghanaian greek guatemalan haitian hindu honduran hungarian icelandic indian indonesian iranian
iraqi irish islamic israeli israelis italian jamaican japanese jewish jews jordanian kenyan korean kurdish kuwaiti
latin latvian lebanese libyan lithuanian malaysian marxist mexican mongolian moroccan moslem moslems muslim muslims
nazi nepalese nicaraguan nigerian norwegian pakistani palestinian palestinians panamanian persian peruvian philippine
polish portuguese protestant republican republicans romanian russian russians saudi scottish serb serbian serbs
sikh slovak slovenian somali soviet soviets spanish sudanese swedish swiss syrian taiwanese thai tibetan tunisian
turkish turks ugandan ukrainian vietnamese welsh western yemeni zionist
""".split()
)
