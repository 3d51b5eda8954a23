"""The verbs of the grammar in all their forms."""

from __future__ import annotations

from typing import Final, NamedTuple


class Form(NamedTuple):
    """What a word is as a verb.

    Attributes:
        is_participle: it may stand in the passive.
        is_past: it may be the past tense by itself.
        shape: "base", "s", "ed" (past, participle or both) or "ing".
    """

    lemma: str
    shape: str
    is_past: bool = False
    is_participle: bool = False


_REGULAR: Final = """
rely depend hinge require need import base block couple belong include contain define consist comprise compose result
stem trigger cause resemble work behave look use utilize utilise call wrap query consume adopt employ stay power back
host deploy implement realize realise conform comply join hire start head found cofound chair serve resign retire fire
locate headquarter situate open relocate live reside settle hail prefer like love enjoy favor favour pick select opt
decide agree relate maintain own report manage marry engage talk communicate integrate connect replace supersede
contradict conflict disagree refute happen occur follow precede move switch migrate transition change convert want plan
stop continue cease
"""
_DOUBLED: Final = frozenset("prefer stem wrap stop plan opt refer".split()) - {"opt"}
_IRREGULAR: Final = """
build builds building built built
run runs running ran run
write writes writing wrote written
read reads reading read read
stick sticks sticking stuck stuck
teach teaches teaching taught taught
lead leads leading led led
leave leaves leaving left left
quit quits quitting quit quit
hold holds holding held held
take takes taking took taken
lie lies lying lay lain
sit sits sitting sat sat
bear bears bearing bore born
grow grows growing grew grown
come comes coming came come
choose chooses choosing chose chosen
go goes going went gone
make makes making made made
break breaks breaking broke broken
bring brings bringing brought brought
opt opts opting opted opted
"""


def _inflected(lemma: str) -> tuple[str, str, str]:
    """Return a regular verb with -s, -ing and -ed."""
    if lemma.endswith("e"):
        return lemma + "s", lemma[:-1] + "ing", lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in "aeou":
        return lemma[:-1] + "ies", lemma + "ing", lemma[:-1] + "ied"
    stem = lemma + lemma[-1] if lemma in _DOUBLED else lemma
    return lemma + ("es" if lemma.endswith(("s", "sh", "ch", "x")) else "s"), stem + "ing", stem + "ed"


def _forms() -> dict[str, tuple[Form, ...]]:
    forms: dict[str, list[Form]] = {}

    def add(word: str, form: Form) -> None:
        forms.setdefault(word, []).append(form)

    for lemma in _REGULAR.split():
        s, ing, ed = _inflected(lemma)
        add(lemma, Form(lemma, "base"))
        add(s, Form(lemma, "s"))
        add(ing, Form(lemma, "ing"))
        add(ed, Form(lemma, "ed", is_past=True, is_participle=True))
    for line in _IRREGULAR.strip().splitlines():
        lemma, s, ing, past, participle = line.split()
        add(lemma, Form(lemma, "base"))
        add(s, Form(lemma, "s"))
        add(ing, Form(lemma, "ing"))
        add(past, Form(lemma, "ed", is_past=True, is_participle=past == participle))
        if past != participle:
            add(participle, Form(lemma, "ed", is_participle=True))
    # As a word by itself this is the past of `find`, which states nothing here.
    del forms["found"]
    # `moved back to Oslo` backs nothing.
    del forms["back"]
    return {word: tuple(found) for word, found in forms.items()}


FORMS: Final = _forms()
"""What each word may be as a verb."""
