"""Which given names English speakers shorten to which: a table of common knowledge. It knows no entity.

Left out are short forms that are mostly names of their own by now (Jack, Lisa, Nancy, Sally), since a wrong "the same"
joins two lives.
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
abigail: abby abbie gail
abraham: abe
adelaide: addie
agatha: aggie
albert: al bert bertie
alexander: alex alec sandy sasha xander lex
alexandra: alex sandra sasha lexi lexie alexa
alfred: al alf alfie fred freddie
alison: ali allie
allison: ali allie
amanda: mandy mandi
andrea: andie
andrew: andy drew
angela: angie
anthony: tony ant
antonio: tony
antonia: toni
archibald: archie
arthur: art artie
augustus: gus
barbara: barb barbie babs
bartholomew: bart
beatrice: bea trixie
benedict: ben
benjamin: ben benny benji
bernadette: bernie
bernard: bernie
bradley: brad
calvin: cal
cameron: cam
caroline: caro carrie carol
carolyn: caro carrie
cassandra: cass cassie
catherine: cath cathy kate katie kit kitty cat
katherine: kath kathy kate katie kit kitty kat
kathryn: kath kathy kate katie
kathleen: kath kathy katie
charles: charlie chuck chas chaz
charlotte: charlie lottie char
christina: chris chrissy tina christie
christine: chris chrissy tina christie
christopher: chris kit topher
clarence: clancy
clifford: cliff
clinton: clint
constance: connie
cornelius: neil
curtis: curt
cynthia: cindy
daniel: dan danny
danielle: dani
david: dave davy davey
deborah: deb debbie debby
debra: deb debbie
delores: dee
dennis: denny
diana: di
dominic: dom nic
donald: don donnie
dorothy: dot dottie dolly
douglas: doug
edgar: ed eddie
edmund: ed eddie ned
edward: ed eddie ted teddy ned
edwin: ed eddie
eleanor: ellie nell nora
elizabeth: liz lizzie lizzy beth betty betsy eliza libby bess bessie
emily: em emmy
ernest: ernie
eugene: gene
evelyn: evie
ezekiel: zeke
florence: flo flossie
frances: fran frankie
francesca: fran
francis: frank frankie
francisco: paco pancho
franklin: frank
frederick: fred freddie freddy
gabriel: gabe
gabriella: gabby gabi
gabrielle: gabby gabi
geoffrey: geoff
gerald: gerry jerry
gertrude: gertie trudy
gilbert: gil
gregory: greg
gwendolyn: gwen
harold: hal harry
harriet: hattie
henry: hank harry hal
herbert: herb herbie
howard: howie
irene: rene
isaac: ike
isabel: izzy bella belle
isabella: izzy bella
isabelle: izzy
jacob: jake
jacqueline: jackie
james: jim jimmy jamie jem
janet: jan
jeffrey: jeff
jennifer: jen jenny jenn
jeremiah: jerry
jeremy: jem
jerome: jerry
jessica: jess jessie
joan: joanie
joanna: jo joey
joanne: jo
john: johnny jon
jonathan: jon jonny nathan
jose: pepe
joseph: joe joey
josephine: jo josie
joshua: josh
judith: judy jude
julia: jules julie
julian: jules
kenneth: ken kenny
kimberly: kim
kristen: kris
kristina: kris kristi tina
lawrence: larry laurie
leonard: len lenny leo
leonardo: leo
leopold: leo
lillian: lil lily lilly
lincoln: linc
louis: lou louie
louise: lou
lucas: luke
lucille: lucy
madeline: maddie maddy
madeleine: maddie maddy
madison: maddie
malcolm: mal
marcus: marc
margaret: maggie meg peggy marge margie greta daisy madge mags
martha: marty
martin: marty
matthew: matt matty
maximilian: max
maxwell: max
megan: meg
melanie: mel
melissa: mel missy lissa
melvin: mel
michael: mike mick micky mickey mikey
michelle: shelly chelle
mitchell: mitch
miranda: mandy randi
mildred: millie
millicent: millie
natalie: nat
nathan: nate nat
nathaniel: nate nat
nicholas: nick nicky nico
nicole: nicky nikki
oliver: ollie
olivia: liv livvy
oscar: ozzy
oswald: ozzy oz
pamela: pam
patricia: pat patty patti trish tricia
patrick: pat paddy
penelope: penny
peter: pete
philip: phil pip
phillip: phil
priscilla: cilla
prudence: prue
rachel: rach
randall: randy
raymond: ray
rebecca: becky becca beck
reginald: reg reggie
richard: rick ricky rich richie dick
robert: rob robbie bob bobby bert
roberta: bobbie
roderick: rod
rodney: rod
roger: rodge
ronald: ron ronnie
rosemary: rosie
russell: russ
samantha: sam sammy
samuel: sam sammy
sandra: sandy
sebastian: seb bas
shirley: shirl
sidney: sid
simon: si
solomon: sol
stanley: stan
stephanie: steph
stephen: steve stevie
steven: steve stevie
stuart: stu
stewart: stew stu
susan: sue susie suzie
susanna: sue susie
suzanne: sue suzie
sylvia: sylvie
tabitha: tabby
teresa: terry tess tessa
theresa: terry tess tessa
terence: terry
theodore: theo ted teddy
theodora: theo dora
thomas: tom tommy
timothy: tim timmy
tobias: toby
valerie: val
vanessa: nessa
veronica: ronnie roni
victor: vic
victoria: vicky vicki tori
vincent: vince vinnie
virginia: ginny ginger
vivian: viv
walter: walt wally
wendell: dell
wilfred: wilf
william: will bill billy willie willy liam
winifred: winnie
winston: winnie
yolanda: yoli
zachary: zach zack zac
"""

_FEWEST: Final = 3
"""So many letters has a short form that may begin another one: Liz and Lizzie, but not Al and Alf."""


def _read() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    short = {full: frozenset(forms.split()) for full, _, forms in (line.partition(":") for line in _TABLE.split("\n"))}
    short.pop("", None)
    whole: dict[str, set[str]] = {}
    for full, forms in short.items():
        for form in forms:
            whole.setdefault(form, set()).add(full)
    return short, {form: frozenset(names) for form, names in whole.items()}


SHORT_OF, WHOLE_OF = _read()
"""The short forms of a given name, and the given names of a short form; all in small letters."""


def related(name: str) -> frozenset[str]:
    """Return the given names that somebody of this one may also go by, in small letters; itself is not among them."""
    others = set(SHORT_OF.get(name, ())) | WHOLE_OF.get(name, frozenset())
    for whole in WHOLE_OF.get(name, ()):
        others |= {form for form in SHORT_OF[whole] if _is_beginning(form, name) or _is_beginning(name, form)}
    return frozenset(others - {name})


def _is_beginning(one: str, other: str) -> bool:
    return len(one) >= _FEWEST and other.startswith(one)
