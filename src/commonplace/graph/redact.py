"""Replace secrets in the values of a graph.

The span of a mention is its place in the text that was read, before a secret in it was found.
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
"""What in the detail of a happening is the id of an entity."""


@dataclass(slots=True)
class Cleaner:
    """Cleans texts and records; of a graph entities before facts, whose history names them.

    Attributes:
        kinds: the kind of each secret that was found.
        forms: the normal forms of names that had one, and those of what replaced them.
    """

    kinds: dict[str, str] = field(default_factory=dict, kw_only=True)
    forms: dict[str, str] = field(default_factory=dict, kw_only=True)

    def find(self, text: str) -> Sequence[Secret]:
        """Return the secrets in a text, in order, none overlapping another; and remember them."""
        found = self.secrets(text)
        for secret in found:
            self.kinds.setdefault(text[secret.start : secret.end], secret.kind)
        return found

    def secrets(self, text: str) -> Sequence[Secret]:
        return find_secrets(text)

    def text(self, text: str) -> str:
        """Return a text without secrets; it is searched until nothing is found."""
        while secrets := self.find(text):
            text = with_placeholders(text, secrets)
        return text

    def value(self, value: Any) -> Any:
        """Return what JSON holds without secrets, keys included, of which two never become one."""
        return cleaned_json(value, self.text)

    def record(self, record: T) -> T:
        return rows.cleaned(record, self.text, self.value)

    def taken(self) -> tuple[str, ...]:
        """Return the kinds of the secrets that were replaced since the last time."""
        kinds = tuple(self.kinds.values())
        self.kinds.clear()
        return kinds

    def of_graph(self, record: T) -> T:
        """Return an entity or a fact without secrets; what is ours of its attributes stays."""
        return rows.cleaned(record, self.text, self._attributes)

    def aliases(self, entity: Entity, aliases: Iterable[Alias]) -> tuple[Alias, ...]:
        """Return the names of an entity without secrets, and keys that fit them; of two that become one, the first."""
        given = tuple(aliases)
        names = names_among(given)
        clean = [replace(each, name=self.text(each.name)) for each in names]
        if clean == names:
            return given
        kept: dict[str, Alias] = {}
        for old, new in zip(names, clean, strict=True):
            form = old.normal if new.name == old.name else normal(new.name)
            if form != old.normal:
                self.forms[old.normal] = form
            kept.setdefault(form, replace(new, normal=form))
        wanted = sorted({key for each in clean for key in stored_keys(each.name, entity.type)})
        return (*kept.values(), *(Alias(entity.id, "", key, entity.created_at) for key in wanted))

    def mentions(self, mentions: Iterable[Mention]) -> tuple[Mention, ...]:
        """Return mentions without secrets; two that become one come once."""
        return tuple(dict.fromkeys(replace(each, name=self.text(each.name)) for each in mentions))

    def happenings(self, happenings: Iterable[Happening]) -> tuple[Happening, ...]:
        """Return what happened without secrets; ids stay, and forms of names are those that the names have now."""
        clean = []
        for found in happenings:
            said, kept = assertion_of(found), found
            if said is None:
                kept = replace(found, detail=self._json(found.detail, self._detail))
            else:
                texts: dict[str, Any] = {name: self.text(getattr(said, name)) for name in ("text", "group", "reason")}
                new = replace(said, **texts, attributes=self._json(said.attributes, self._attributes))
                if new != said:
                    kept = happening(found.what, found.subject, new, found.reason)
            clean.append(replace(kept, what=self.text(kept.what), reason=self.text(kept.reason)))
        return tuple(clean)

    def _json(self, text: str, clean: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
        value = json.loads(text)
        cleaned = clean(value)
        return text if cleaned == value else json.dumps(cleaned, sort_keys=True)

    def _attributes(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return attributes without secrets; what is ours of them keeps its ids."""
        cleaned: dict[str, Any] = self.value({name: value for name, value in given.items() if name != OWN})
        return {**cleaned, OWN: given[OWN]} if OWN in given else cleaned

    def _detail(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a detail without secrets; ids stay, and forms of names are those that the names have now."""
        kept: dict[str, Any] = {name: given[name] for name in _IDS if name in given}
        names = given.get("names")
        if isinstance(names, list):
            kept["names"] = [self.forms.get(each, each) if isinstance(each, str) else each for each in names]
        cleaned: dict[str, Any] = self.value({name: value for name, value in given.items() if name not in kept})
        return {**cleaned, **kept}


def refuse_many_names(aliases: Iterable[Alias]) -> None:
    """Refuse the names of an entity that are more than one may have.

    Raises:
        UsageError: naming how many, and the limit.
    """
    names = {each.normal for each in names_among(aliases)}
    if len(names) > MAX_ALIASES:
        raise UsageError(
            f"an entity has {len(names):,} names, the limit is {MAX_ALIASES}",
            remedy="leave out names that are not used",
        )


def refuse_odd_detail(found: Happening) -> None:
    """Refuse what happened to a fact that cannot be used.

    Raises:
        TypeError, ValueError, AttributeError: it is none.
    """
    said = assertion_of(found)
    if said is None:
        return
    for each in fields(Assertion):
        value, type_ = getattr(said, each.name), str(each.type)
        if type_ in ("str", "Saying"):
            is_fit = isinstance(value, str) and (type_ == "str" or value in get_args(Saying))
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
            is_fit = is_number or (value is None and type_.endswith("None"))
        if not is_fit:
            raise TypeError(f"{each.name} is {value!r:.60}")
    json.loads(said.attributes).items()
