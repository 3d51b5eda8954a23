"""Replace secrets in the values of a graph.

The span of a mention refers to the text that was read, before its secrets were replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any, Final, TypeVar, get_args

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.errors import UsageError
from commonplace.graph.entities import MAX_ALIASES
from commonplace.graph.facts import OWN, Assertion, Saying, assertion_of, happening
from commonplace.graph.names import names_among, normal, stored_keys
from commonplace.redaction import Secret, cleaned_json, find_secrets, with_placeholders
from commonplace.store import rows
from commonplace.types.graph import Alias, Entity, Happening, Mention

T = TypeVar("T")

_IDS: Final = ("into", "from")
"""Keys in the detail of a happening whose values are ids of entities."""


@dataclass(slots=True)
class Cleaner:
    """Replaces secrets in texts and records. Clean entities before facts, whose history refers to their names.

    Attributes:
        kinds: the kind of each secret found, by its text.
        forms: the new normal forms of names that had a secret, by the old ones.
    """

    kinds: dict[str, str] = field(default_factory=dict, kw_only=True)
    forms: dict[str, str] = field(default_factory=dict, kw_only=True)

    def find(self, text: str) -> Sequence[Secret]:
        """Return the secrets in a text, in order, without overlaps, and record their kinds."""
        secrets = self.secrets(text)
        for secret in secrets:
            self.kinds.setdefault(text[secret.start : secret.end], secret.kind)
        return secrets

    def secrets(self, text: str) -> Sequence[Secret]:
        return find_secrets(text)

    def text(self, text: str) -> str:
        """Return a text without secrets; search it until none is found."""
        while secrets := self.find(text):
            text = with_placeholders(text, secrets)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets in its strings and keys; keys stay distinct."""
        return cleaned_json(value, self.text)

    def record(self, record: T) -> T:
        return rows.cleaned(record, self.text, self.value)

    def take_kinds(self) -> tuple[str, ...]:
        """Return the kinds of the secrets replaced since the last call."""
        kinds = tuple(self.kinds.values())
        self.kinds.clear()
        return kinds

    def of_graph(self, record: T) -> T:
        """Return an entity or a fact without secrets; its internal attributes stay."""
        return rows.cleaned(record, self.text, self._attributes)

    def aliases(self, entity: Entity, aliases: Iterable[Alias]) -> tuple[Alias, ...]:
        """Return the names of an entity without secrets, with lookup keys; of names that become equal, the first."""
        stored = tuple(aliases)
        names = names_among(stored)
        clean = [replace(alias, name=self.text(alias.name)) for alias in names]
        if clean == names:
            return stored
        by_form: dict[str, Alias] = {}
        for old, new in zip(names, clean, strict=True):
            form = old.normal if new.name == old.name else normal(new.name)
            if form != old.normal:
                self.forms[old.normal] = form
            by_form.setdefault(form, replace(new, normal=form))
        keys = sorted({key for alias in clean for key in stored_keys(alias.name, entity.type)})
        return (*by_form.values(), *(Alias(entity.id, "", key, entity.created_at) for key in keys))

    def mentions(self, mentions: Iterable[Mention]) -> tuple[Mention, ...]:
        """Return mentions without secrets and without duplicates."""
        return tuple(dict.fromkeys(replace(mention, name=self.text(mention.name)) for mention in mentions))

    def happenings(self, happenings: Iterable[Happening]) -> tuple[Happening, ...]:
        """Return happenings without secrets; ids stay, and the forms of names are updated."""
        clean = []
        for event in happenings:
            old, clean_event = assertion_of(event), event
            if old is None:
                clean_event = replace(event, detail=self._json(event.detail, self._detail))
            else:
                texts: dict[str, Any] = {name: self.text(getattr(old, name)) for name in ("text", "group", "reason")}
                new = replace(old, **texts, attributes=self._json(old.attributes, self._attributes))
                if new != old:
                    clean_event = happening(event.what, event.subject, new, event.reason)
            clean.append(replace(clean_event, what=self.text(clean_event.what), reason=self.text(clean_event.reason)))
        return tuple(clean)

    def _json(self, text: str, clean: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
        value = json.loads(text)
        cleaned = clean(value)
        return text if cleaned == value else json.dumps(cleaned, sort_keys=True)

    def _attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return attributes without secrets; the internal ones stay."""
        cleaned: dict[str, Any] = self.value({name: value for name, value in attributes.items() if name != OWN})
        return {**cleaned, OWN: attributes[OWN]} if OWN in attributes else cleaned

    def _detail(self, detail: dict[str, Any]) -> dict[str, Any]:
        """Return a detail without secrets; ids stay, and the forms of names are updated."""
        preserved: dict[str, Any] = {name: detail[name] for name in _IDS if name in detail}
        names = detail.get("names")
        if isinstance(names, list):
            preserved["names"] = [self.forms.get(form, form) if isinstance(form, str) else form for form in names]
        cleaned: dict[str, Any] = self.value({name: value for name, value in detail.items() if name not in preserved})
        return {**cleaned, **preserved}


def refuse_many_names(aliases: Iterable[Alias]) -> None:
    """Raise a `UsageError` if an entity has more names than `MAX_ALIASES`."""
    names = {alias.normal for alias in names_among(aliases)}
    if len(names) > MAX_ALIASES:
        problem = f"an entity has {len(names):,} names, the limit is {MAX_ALIASES}"
        raise UsageError(problem, remedy="leave out names that are not used")


def refuse_odd_detail(event: Happening) -> None:
    """Raise a `TypeError`, `ValueError` or `AttributeError` if the assertion in a happening of a fact is malformed."""
    assertion = assertion_of(event)
    if assertion is None:
        return
    for attribute in fields(Assertion):
        value, type_ = getattr(assertion, attribute.name), str(attribute.type)
        if type_ in ("str", "Saying"):
            is_fit = isinstance(value, str) and (type_ == "str" or value in get_args(Saying))
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
            is_fit = is_number or (value is None and type_.endswith("None"))
        if not is_fit:
            raise TypeError(f"{attribute.name} is {value!r:.60}")
    json.loads(assertion.attributes).items()
