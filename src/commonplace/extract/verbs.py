"""Verb forms and verb groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from commonplace.dataclasses import dataclass, replace
from commonplace.extract import words as lists
from commonplace.extract.tokens import Tokens
from commonplace.text.words import entries


class Form(NamedTuple):
    """One reading of a word as a verb form.

    Attributes:
        shape: "base", "s", "ed" (past, participle or both) or "ing".
        is_past, is_participle: it may be a past tense without a helper, and form the passive.
    """

    lemma: str
    shape: str
    is_past: bool = False
    is_participle: bool = False


def _forms() -> dict[str, tuple[Form, ...]]:
    """Read the verbs: a regular one alone, an irregular one with its -s, -ing, past and participle forms."""
    forms: dict[str, list[Form]] = {}
    for line in entries(Path(__file__).with_name("verbs.txt")):
        lemma, *irregular = line.split()
        if irregular:
            s, ing, past, _ = irregular
        elif lemma.endswith("e"):
            s, ing, past = lemma + "s", lemma[:-1] + "ing", lemma + "d"
        elif lemma.endswith("y") and lemma[-2] not in "aeou":
            s, ing, past = lemma[:-1] + "ies", lemma + "ing", lemma[:-1] + "ied"
        else:
            stem = lemma + lemma[-1] if lemma in lists.DOUBLED else lemma
            s, ing, past = lemma + ("es" if lemma.endswith(("s", "sh", "ch", "x")) else "s"), stem + "ing", stem + "ed"
        participle = irregular[-1] if irregular else past
        forms.setdefault(lemma, []).append(Form(lemma, "base"))
        forms.setdefault(s, []).append(Form(lemma, "s"))
        forms.setdefault(ing, []).append(Form(lemma, "ing"))
        forms.setdefault(past, []).append(Form(lemma, "ed", is_past=True, is_participle=past == participle))
        if past != participle:
            forms.setdefault(participle, []).append(Form(lemma, "ed", is_participle=True))
    # `found` is mostly the past of `find`, which states nothing here; `back` in `moved back to Oslo` is no verb.
    del forms["found"], forms["back"]
    return {word: tuple(readings) for word, readings in forms.items()}


FORMS: Final = _forms()
"""The verb forms that a word may be, by word."""


_MAX_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb in its sentence.

    Attributes:
        first: index of its first word, helpers included; the subject ends before it.
        verb: index of the verb itself.
        voice: "active", "passive" or "be".
        is_end, is_start: `no longer uses`, `stopped using`; `started using`.
        is_decided: `decided to use`, `are going to use`.
        is_bare: in its base form without a helper, like an imperative.
        is_reduced: a participle without a helper: `the service used by billing`.
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
    """Return the group of a word that may be a verb, None if it is none."""
    lower = tokens.lower[verb]
    if lower in lists.BE and lower not in ("be", "been", "being", "am"):
        return _helped(tokens, VerbGroup(verb, verb, Form("be", "s"), "be", is_past=lower in ("was", "were")))
    forms = FORMS.get(lower)
    if not forms:
        return None
    form = next((form for form in forms if form.is_past), forms[0])
    group = VerbGroup(verb, verb, form, "active", is_past=form.is_past)
    helped = _helped(tokens, group)
    is_alone = helped is not None and helped.first == verb
    if helped is None or (is_alone and tokens.at(verb - 1) in lists.DETERMINERS):
        return None
    if helped.form.shape == "ing" and not helped.is_progressive:
        return None
    is_reduced = form.shape == "ed" and form.is_participle and not (helped.is_past and not form.is_past)
    return replace(helped, is_bare=is_alone and form.shape == "base", is_reduced=is_alone and is_reduced)


_EFFECTS: Final[dict[str, Mapping[str, Any]]] = {
    **{word: {"is_past": True, "is_perfect": True} for word in lists.HAVE},
    **{word: {"is_past": True} for word in ("had", "did")},
    **{word: {} for word in lists.DO - {"did"}},
    **{word: {"is_modal": True} for word in lists.MODALS},
    **{word: {"is_future": True} for word in lists.FUTURE},
}
"""What a helper says of its verb, as fields of `VerbGroup`."""


def _helped(tokens: Tokens, group: VerbGroup) -> VerbGroup | None:
    """Extend a group by the words before it, from right to left; return None if they show that it is no verb."""
    index = group.verb - 1
    is_governed = False
    for _ in range(_MAX_LENGTH):
        lower, shape = tokens.at(index), group.form.shape
        is_small = index >= 0 and tokens.word[index].islower()
        if lower == "longer" and tokens.at(index - 1) == "no":
            group, index = replace(group, is_end=True), index - 1
        elif lower == "to" and shape == "base":
            governed = _governed(tokens, index - 1, group)
            if governed is None:
                return None
            (group, index), is_governed = governed, True
        elif lower in lists.BE and shape in ("base", "s") and group.voice == "active" and not is_governed:
            # `is like`, `Mira's use`: after these a base form is no verb.
            return None
        elif lower in lists.NEGATIONS:
            group = replace(group, is_negative=not group.is_negative or group.is_end)
        elif lower in lists.BE:
            is_passive = group.form.is_participle and shape == "ed" and group.voice == "active"
            voice, is_past = "passive" if is_passive else group.voice, lower in ("was", "were")
            group = replace(group, voice=voice, is_past=is_past, is_progressive=shape == "ing")
        elif lower in _EFFECTS:
            group = replace(group, **_EFFECTS[lower])
        elif shape == "ing" and lower in lists.STARTING | lists.KEEPING | lists.ENDING:
            group = replace(_phase(lower, group), form=Form(group.form.lemma, "s"))
        elif not (lower in lists.ADVERBS or (is_small and lower.endswith("ly") and len(lower) > 4)):
            break
        index -= 1
    return replace(group, first=index + 1)


def _phase(governor: str, group: VerbGroup) -> VerbGroup:
    if governor in lists.ENDING:
        return replace(group, is_end=True)
    return replace(group, is_start=governor in lists.STARTING, is_past=governor.endswith("ed"))


def _governed(tokens: Tokens, index: int, group: VerbGroup) -> tuple[VerbGroup, int] | None:
    """Read `used to`, `going to` or `decided not to` before a verb; return the group and the index of the first."""
    while tokens.at(index) in lists.ADVERBS or tokens.at(index) in lists.NEGATIONS:
        if tokens.at(index) in lists.NEGATIONS:
            group = replace(group, is_negative=True)
        index -= 1
    governor = tokens.at(index)
    if governor == "used":
        return replace(group, is_end=True, is_past=True), index
    if governor == "going":
        return replace(group, is_future=True), index
    if governor in lists.DECIDING:
        return replace(group, is_decided=True, is_past=True), index
    return (_phase(governor, group), index) if governor in lists.STARTING | lists.KEEPING else None
