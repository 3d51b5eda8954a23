"""Verb forms and verb groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from commonplace.dataclasses import dataclass, replace
from commonplace.extract.tokens import Tokens
from commonplace.extract.words import ADVERBS, BE, DETERMINERS, DO, FUTURE, HAVE, MODALS, NEGATIONS
from commonplace.text.words import entries


class Form(NamedTuple):
    """What a word is as a verb.

    Attributes:
        is_participle: it may be used in the passive.
        is_past: it may be the past tense by itself.
        shape: "base", "s", "ed" (past, participle or both) or "ing".
    """

    lemma: str
    shape: str
    is_past: bool = False
    is_participle: bool = False


_DOUBLED: Final = frozenset("prefer stem wrap stop plan opt refer".split()) - {"opt"}


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

    for line in entries(Path(__file__).with_name("verbs.txt")):
        lemma, *irregular = line.split()
        s, ing, past, participle = irregular or (*_inflected(lemma), _inflected(lemma)[2])
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


_STARTING: Final = frozenset("start starts started begin begins began begun".split())
_KEEPING: Final = frozenset("continue continues continued keep keeps kept".split())
_ENDING: Final = frozenset("stop stops stopped quit quits ceased ceases cease".split())
_DECIDING: Final = frozenset("decided agreed chose voted resolved elected opted".split())
_MAX_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb in its sentence.

    Attributes:
        first: the word where it begins, helpers included; the subject ends before it.
        verb: the word of the verb itself.
        voice: "active", "passive" or "be".
        is_end, is_start: `no longer uses`, `stopped using`; `started using`.
        is_decided: `decided to use`, `are going to use`.
        is_bare: without any helper, in its plain form, as an order is given.
        is_reduced: a participle without helper: `the service used by billing`.
        is_progressive: `is using`.
        is_perfect: `has used`, which may go on.
    """

    first: int
    verb: int
    form: Form
    voice: str
    is_negative: bool = False
    is_modal: bool = False
    is_future: bool = False
    is_past: bool = False
    is_end: bool = False
    is_start: bool = False
    is_decided: bool = False
    is_bare: bool = False
    is_reduced: bool = False
    is_progressive: bool = False
    is_perfect: bool = False


def read_group(tokens: Tokens, verb: int) -> VerbGroup | None:
    """Read the group around a word that may be a verb, or return None."""
    lower = tokens.lower[verb]
    if lower in BE and lower not in ("be", "been", "being", "am"):
        return _helped(tokens, VerbGroup(verb, verb, Form("be", "s"), "be", is_past=lower in ("was", "were")))
    forms = FORMS.get(lower)
    if not forms:
        return None
    form = next((form for form in forms if form.is_past), forms[0])
    group = VerbGroup(verb, verb, form, "active", is_past=form.is_past)
    found = _helped(tokens, group)
    is_alone = found is not None and found.first == verb
    if found is None or (is_alone and tokens.at(verb - 1) in DETERMINERS):
        return None
    if found.form.shape == "ing" and not found.is_progressive:
        return None
    is_reduced = form.shape == "ed" and form.is_participle and not (found.is_past and not form.is_past)
    return replace(found, is_bare=is_alone and form.shape == "base", is_reduced=is_alone and is_reduced)


def _helped(tokens: Tokens, group: VerbGroup) -> VerbGroup | None:
    """Add the words before a verb to it, one by one from the right; None if it is no verb with them."""
    place = group.verb - 1
    is_governed = False
    for _ in range(_MAX_LENGTH):
        lower = tokens.at(place)
        if lower == "longer" and tokens.at(place - 1) == "no":
            group, place = replace(group, is_end=True), place - 2
        elif lower == "to" and group.form.shape == "base":
            governed = _governed(tokens, place - 1, group)
            if governed is None:
                return None
            group, place = governed
            is_governed = True
        elif lower in BE and group.form.shape in ("base", "s") and group.voice == "active" and not is_governed:
            # `is like`, `Mira's use`: behind these no plain form is a verb.
            return None
        else:
            helped = _with_helper(group, lower, is_small=place >= 0 and tokens.word[place].islower())
            if helped is None:
                break
            group, place = helped, place - 1
    return replace(group, first=place + 1)


def _with_helper(group: VerbGroup, lower: str, *, is_small: bool) -> VerbGroup | None:
    """Return the group with one more word before it, or None if that does not belong to it."""
    if lower in NEGATIONS:
        return replace(group, is_negative=not group.is_negative or group.is_end)
    if lower in ADVERBS or (is_small and lower.endswith("ly") and len(lower) > 4):
        return group
    if lower in BE:
        is_passive = group.form.is_participle and group.form.shape == "ed" and group.voice == "active"
        return replace(
            group,
            voice="passive" if is_passive else group.voice,
            is_past=lower in ("was", "were"),
            is_progressive=group.form.shape == "ing",
        )
    effect = _EFFECTS.get(lower)
    if effect is not None:
        return effect(group)
    if group.form.shape == "ing" and lower in _STARTING | _KEEPING | _ENDING:
        return replace(_phase(lower, group), form=Form(group.form.lemma, "s"))
    return None


_EFFECTS: Final[dict[str, Callable[[VerbGroup], VerbGroup]]] = {
    **dict.fromkeys(HAVE, lambda group: replace(group, is_past=True, is_perfect=True)),
    **dict.fromkeys(("had", "did"), lambda group: replace(group, is_past=True)),
    **dict.fromkeys(DO - {"did"}, lambda group: group),
    **dict.fromkeys(MODALS, lambda group: replace(group, is_modal=True)),
    **dict.fromkeys(FUTURE, lambda group: replace(group, is_future=True)),
}
"""What each helper makes of a verb."""


def _phase(governor: str, group: VerbGroup) -> VerbGroup:
    if governor in _ENDING:
        return replace(group, is_end=True)
    return replace(group, is_start=governor in _STARTING, is_past=governor.endswith("ed"))


def _governed(tokens: Tokens, place: int, group: VerbGroup) -> tuple[VerbGroup, int] | None:
    """Read the words before `to` and a verb: `used to`, `going to`, `decided not to`, `continues to`."""
    while tokens.at(place) in ADVERBS or tokens.at(place) in NEGATIONS:
        if tokens.at(place) in NEGATIONS:
            group = replace(group, is_negative=True)
        place -= 1
    governor = tokens.at(place)
    if governor == "used":
        return replace(group, is_end=True, is_past=True), place - 1
    if governor == "going":
        return replace(group, is_future=True), place - 1
    if governor in _DECIDING:
        return replace(group, is_decided=True, is_past=True), place - 1
    if governor in _STARTING or governor in _KEEPING:
        return _phase(governor, group), place - 1
    return None
