"""The plain words of English that the grammar knows by their job: what ends a name, what ends a phrase."""

from __future__ import annotations

from typing import Final

DETERMINERS: Final = frozenset(
    "a an the this that these those our my his her its their your both some such one".split()
)
PREPOSITIONS: Final = frozenset(
    """
about above across after against along among around as at before behind below beneath beside besides between beyond by
despite down during except for from in inside into like near of off on onto opposite out outside over past per since
than through throughout till to toward towards under unlike until up upon via with within without because
""".split()
)
CONJUNCTIONS: Final = frozenset(
    "and or but nor so yet if unless although though while whereas whether when whenever where wherever because that "
    "which who whom whose what how why then".split()
)
PRONOUNS: Final = frozenset(
    "i me we us you he him she her it they them this that these those myself ourselves himself herself itself "
    "themselves mine yours hers theirs everyone everybody someone somebody anyone anybody nobody nothing something "
    "anything everything none there here".split()
)
BE: Final = frozenset("be am is are was were been being 's 're 'm".split())
HAVE: Final = frozenset("have has had having 've".split())
DO: Final = frozenset("do does did".split())
MODALS: Final = frozenset("would could might may should can shall must ought 'd ca cannot".split())
FUTURE: Final = frozenset("will 'll wo".split())
AUXILIARIES: Final = BE | HAVE | DO | MODALS | FUTURE

NEGATIONS: Final = frozenset(
    "not n't never hardly barely rarely seldom scarcely neither nor cannot almost nearly".split()
)
ADVERBS: Final = frozenset(
    """
also now still already just always often usually only mainly then later once even really both all today soon ever
never
not n't however therefore thus instead again too almost quite rather very currently sometimes yet first finally
eventually recently anymore somewhat simply either since further together back apart
""".split()
)
VERBS: Final = frozenset(
    """
say says said tell tells told make makes made get gets got go goes went gone give gives gave given see sees saw seen
know knows knew known think thinks thought want wants wanted seem seems seemed become becomes became let lets feel
feels
felt find finds found keep keeps kept start starts started stop stops stopped begin begins began try tries tried ask
asks asked mean meant happen happens happened discuss discussed mention mentioned notice noticed learn learned
learnt showed shown believe believes believed hope hopes hoped wish wishes wished hear hears heard add adds
added announce announces announced confirm confirms confirmed explain explained agree agrees agreed
decide
decides decided planned looks looked turned turns seems fixed deployed handles
handled allow allows allowed let provide provides provided supported broke
returned fail fails failed
""".split()
)
SAYING: Final = frozenset(
    """
say says said tell tells told know knows knew known think thinks thought find finds found mention mentioned notice
noticed learn learned learnt mean shown believe believes believed hear hears heard add added announce announces
announced confirm confirms confirmed explain explained agree agrees agreed decide decides decided show showed
""".split()
)
"""Verbs behind which a new clause may begin without `that`."""

STOPS: Final = (
    PREPOSITIONS
    | CONJUNCTIONS
    | PRONOUNS
    | AUXILIARIES
    | ADVERBS
    | VERBS
    | DETERMINERS
    | frozenset("to no any each every another least most more less longer 's ' please yes ok okay".split())
)
"""No noun phrase has one of these inside."""

BREAKERS: Final = (
    (PREPOSITIONS | CONJUNCTIONS | PRONOUNS | AUXILIARIES | DETERMINERS | ADVERBS | VERBS)
    - frozenset("may will us past down like let down said kept back".split())
) | frozenset(
    """
the no yes ok okay please thanks hello hi hey dear also many most much more several few two three four five six seven
eight nine ten last next each every any all other another earlier according including meanwhile police people
officials
sources oh wow yeah yep yup nah cool haha lol sounds congrats sure sorry absolutely definitely wonderful amazing great
nice
good awesome exactly true right well bye yay aww hmm alright woah whoa nope gosh hm ahh ooh ooo ugh huh heh hehe hahaha
phew geez jeez yikes oops ouch welp wowza okie yea omg lmao gotcha howdy greetings goodbye goodnight congratulations thx
hooray woohoo aha ahem eek mmm mhm uh-huh anyway anyways certainly totally indeed
user users assistant former ex neither
nor note todo fixme warning decision decisions preference preferences summary text article
photo
""".split()
)
"""No name has one of these inside, however it is written."""

OPENERS: Final = frozenset(
    """
ha yo aw ah uh um ya dude cheers sup alas damn dang darn afternoon noted understood lovely perfect fantastic brilliant
""".split()
)
"""Words of some names, `Ha Long Bay`, that call to somebody at the beginning of a sentence: `Ha Sam, that is funny`."""

CALENDAR: Final = frozenset(
    """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december mondays tuesdays wednesdays thursdays fridays saturdays sundays jan feb mar apr jun jul aug
sept sep oct nov dec mon tue tues wed thu thurs fri sat sun
spring summer autumn winter christmas easter thanksgiving today yesterday tomorrow
""".split()
)

NOUNS_IN_LY: Final = frozenset(
    "reply family assembly supply nightly daily weekly monthly yearly hourly early fly ally".split()
)
"""Words in -ly that are no adverbs in a name: `the nightly job`."""

NOUNS_IN_ING: Final = frozenset(
    """
billing routing caching logging testing training streaming indexing pricing onboarding processing scheduling rendering
building meeting parsing monitoring tracing hashing sharding batching typing styling messaging networking clustering
embedding encoding setting warning string spring thing rating ranking reporting shipping marketing engineering hosting
failing missing running existing remaining pending incoming outgoing floating landing linting tracking signing banking
accounting planning polling pairing mapping queueing queuing staging hiking running reading writing cooking swimming
gaming painting dancing singing coding fishing camping climbing cycling
""".split()
)
"""Words in -ing that name a thing, or tell which one."""

VAGUE: Final = frozenset(
    """
thing things stuff way ways lot lots one ones time times number numbers kind kinds sort sorts bit part parts case
cases
day days fact facts place places year years week weeks month months reason reasons rest result results point points
example examples side sides end ends people person something anything change changes others percent others same such
following best better it more less most least well much many few little everything kinds type types
""".split()
)
"""Nouns that name nothing by themselves."""
