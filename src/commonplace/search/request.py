"""Search requests: validation, defaults and query analysis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import EmbedderMismatchError, MissingExtraError, ModelError, ProviderError, UsageError
from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.registry import by_space
from commonplace.ranking.arrays import distinct
from commonplace.retention import RetentionPolicy
from commonplace.settings.agents import DEFAULT_AGENT, Strategy, agent_name
from commonplace.store.schema import is_reserved
from commonplace.text.query import analyse_query, terms_of_words
from commonplace.text.tokens import without_other_scripts, without_unspaced
from commonplace.types import ARTIFACT_TYPES, GRAPH_KINDS, KINDS, METHODS, SEARCH_FIELDS, Filter, Method

_PUNCTUATION = re.compile(r"[^\w\s]")
MAX_LIMIT = 1000
MAX_STAGE1_LIMIT = 10_000
MAX_QUERY_CHARACTERS = 100_000
MAX_PHRASINGS = 4
"""Maximum number of further phrasings of a query; each costs about as much as the first."""
MAX_RETENTION_WEIGHT = 10.0
MAX_NAME_CHARACTERS = 100
"""Maximum length of an agent's name, as in the settings."""
STAND_INS: Final[Mapping[str, tuple[str, ...]]] = {
    "requirement": ("documentation", "code"),
    "architecture": ("documentation", "code"),
}
"""Types that stand in for a type of which a project has no files, the nearest first."""
_RANGES: Final[Sequence[tuple[str, float, float, Any]]] = (
    ("limit", 1, MAX_LIMIT, int),
    ("stage1_limit", 1, MAX_STAGE1_LIMIT, int),
    ("per_owner", 1, MAX_LIMIT, int),
    ("min_score", 0.0, 1.0, (int, float)),
    ("retention_weight", 0.0, MAX_RETENTION_WEIGHT, (int, float)),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A validated search request.

    Attributes:
        limit: maximum number of hits, 1–1000.
        min_score: 0–1; hits below it are held back.
        stage1_limit: maximum number of candidates of lexical and of dense recall, 1–10,000.
        is_bounded: `stage1_limit` is strict; else recall adds what `limit` needs of other owners.
        per_owner: maximum number of hits of one owner.
        now: when it is asked, seconds since the epoch; dates in the query are resolved against it, unless the filter
            has an `as_of`. None leaves dates unread.
        first_floor: 0–1; all hits are held back if the best one is below it.
        by_words: the query is not embedded, so it never leaves this machine.
        fields: the fields of a passage that lexical recall reads, some of `SEARCH_FIELDS`.
        also: further phrasings of the query, at most `MAX_PHRASINGS`; see `phrasings`.
        retention_weight: weight of the retention of memories in their order, beside weights of about 1; 0–10.
        policy: how retention is computed.
    """

    query: str
    namespace: str
    limit: int
    method: Method
    wanted: Filter
    min_score: float
    stage1_limit: int
    per_owner: int = 1
    now: float | None = None
    retention_weight: float = 0.0
    policy: RetentionPolicy = field(default=RetentionPolicy(), compare=False)
    by_words: bool = False
    first_floor: float = 0.0
    also: tuple[str, ...] = ()
    is_bounded: bool = False
    fields: tuple[str, ...] = SEARCH_FIELDS

    def __post_init__(self) -> None:
        _check_text("the query", self.query)
        for name, low, high, kind in _RANGES:
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool) or not low <= value <= high:
                remedy = f"give it {'a whole' if kind is int else 'a'} number from {low:g} to {high:g}"
                raise UsageError(f"{name} is {value!r}", remedy=remedy, parameters=(name,))
        if self.retention_weight and self.now is None:
            raise UsageError("retention weighs in the order, but `now` is not given", remedy="give the time")
        is_graph = is_reserved(self.namespace)  # its entities and relations may have types of the user's
        choices: list[tuple[str, Sequence[str], Collection[str]]] = [
            ("field", self.fields, SEARCH_FIELDS),
            ("method", (self.method,), METHODS),
            ("kind", self.wanted.kinds, GRAPH_KINDS if is_graph else KINDS),
            ("type", () if is_graph else self.wanted.types, ARTIFACT_TYPES),
        ]
        for name, values, allowed in choices:
            for value in values:
                if value not in allowed:
                    raise UsageError(f"{name} {value!r} is unknown", remedy=f"use one of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query as the index reads it.

    Attributes:
        terms: the terms of the words for BM25, in order; see `QueryWords.terms`.
        words: the terms of each word, one for each language whose stem differs; a repeated word appears twice.
        token_ids: those of the query's words, without punctuation and without scripts that are written without spaces;
            uint16, shape (q,), each once.
        spelled: for each token, the terms of the words of which it is a piece; none for a stop word.
        vectors: one for each space of the store, of unit length, or zero if none was made; float32, shape (s, d).
        unspaced: the share of the query in such scripts and in others than Latin, 0–1: the token model sees their
            characters, not their words, so only terms carry their meaning.
        fault: why a vector could not be made; "" if none failed.
        embedders: names of the embedders of the vectors, "" if none was made; last "", for passages without a vector.
    """

    terms: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    token_ids: NDArray[np.uint16]
    vectors: NDArray[np.float32]
    unspaced: float
    fault: str = ""
    embedders: tuple[str, ...] = ("",)
    spelled: tuple[tuple[tuple[str, ...], ...], ...] = ()

    @property
    def embedder(self) -> str:
        """The name of the embedder of the first vector that was made, "" without any."""
        return next(filter(None, self.embedders), "")


def prepare(
    query: str,
    tokenize: Callable[[str], NDArray[np.uint16]],
    embedder: Embedder,
    spaces: Collection[int],
    languages: Iterable[str] = (),
) -> PreparedQuery:
    """Analyse, tokenize and embed a query. If an embedder is missing or fails, the query lacks its vector.

    Args:
        spaces: codes of the spaces whose embedders are asked.
        languages: those of the passages that are searched, besides English.
    """
    fault, stamps = "", embedder.stamp.spaces
    vectors = np.zeros((len(stamps), max(stamp.dimensions for stamp in stamps)), np.float32)
    names = [""] * len(stamps)
    for code, model in enumerate(by_space(embedder)):
        if code in spaces:
            try:
                (vector,) = model.embed([TokenizedText(query, tokenize(query))])
                vectors[code, : len(vector)], names[code] = vector, model.stamp.name
            except (ProviderError, MissingExtraError, ModelError, EmbedderMismatchError) as error:
                fault = str(error)
    analysis = analyse_query(query, languages)
    # Every text has punctuation, and the token model knows scripts without spaces only by their characters.
    words, characters = without_unspaced(_PUNCTUATION.sub(" ", normalize("NFKC", query)))
    words, other_characters = without_other_scripts(words)
    token_ids = tokenize(words)
    characters += other_characters
    spelled: dict[int, list[tuple[str, ...]]] = {token: [] for token in distinct(token_ids).tolist()}
    for word, terms in terms_of_words(words, languages).items():
        for token in distinct(tokenize(word)).tolist() if terms else ():
            spelled[token].append(terms)
    return PreparedQuery(
        terms=analysis.terms,
        words=analysis.words,
        token_ids=distinct(token_ids),
        vectors=vectors,
        unspaced=characters / max(1, characters + len(token_ids)),
        fault=fault,
        embedders=(*names, ""),
        spelled=tuple(map(tuple, spelled.values())),
    )


def phrasings(query: str, also: Sequence[str] | None) -> tuple[str, ...]:
    """Return the further phrasings of a query, each once.

    Raises:
        UsageError: it is not a list, is empty or too long, or holds a value that is empty, too long or not a string.
    """
    if also is None:
        return ()
    if isinstance(also, str) or not isinstance(also, Iterable):
        raise UsageError(f"also is {also!r:.80}, not a list", remedy="give a list of further phrasings of the query")
    further = list(also)
    if not 1 <= len(further) <= MAX_PHRASINGS:
        raise UsageError(
            f"also holds {len(further)} phrasings, it takes 1 to {MAX_PHRASINGS}",
            remedy="give the best of them" if further else "leave it out",
        )
    for phrasing in further:
        _check_text("a phrasing in also", phrasing)
    return tuple(phrasing for phrasing in dict.fromkeys(further) if phrasing != query)


def _check_text(subject: str, text: object) -> None:
    if not isinstance(text, str):
        raise UsageError(f"{subject} is {text!r:.80}", remedy="give a text")
    if not text.strip():
        raise UsageError(f"{subject} is empty", remedy="say in a few words what you look for")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise UsageError(
            f"{subject} has {len(text)} characters, the limit is {MAX_QUERY_CHARACTERS}",
            remedy="shorten it to the passage that matters",
        )


def chosen(name: str, values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the values of a filter.

    Raises:
        UsageError: it is a single string, which would be read letter by letter, or holds an empty value or no string.
    """
    if isinstance(values, str):
        raise UsageError(f"{name} is the string {values!r}", remedy=f"give a list: [{values!r}]")
    if values is not None and not isinstance(values, Iterable):
        raise UsageError(f"{name} is {values!r}", remedy="give a list of strings")
    filter_values = tuple(values or ())
    for value in filter_values:
        if not isinstance(value, str) or not value:
            raise UsageError(f"{name} holds {value!r}", remedy="give strings that are not empty")
    return filter_values


def kinds_of(filter_: Filter) -> set[str]:
    """Return the kinds that may pass a filter."""
    kinds: set[str] = set(filter_.kinds or KINDS)
    if filter_.types or filter_.paths:
        kinds &= {"artifact"}
    if filter_.tiers or filter_.sessions or filter_.sources or filter_.valid_at is not None:
        kinds &= {"memory"}
    return kinds


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """What an agent's strategy asks of a search; None leaves it to the settings or, for a filter, restricts nothing.

    Attributes:
        agent: the agent whose strategy it is, in the spelling of settings; "" without one.
        overridden: the names of the arguments that the call gave itself.
        notices: for people.
    """

    limit: int | None = None
    min_score: float | None = None
    types: Sequence[str] | None = None
    phases: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    untagged_types: Sequence[str] = ()
    agent: str = ""
    overridden: frozenset[str] = field(default=frozenset(), compare=False)
    notices: tuple[str, ...] = ()

    def under(self, **arguments: Any) -> SearchDefaults:
        """Return these defaults overridden by the arguments of a call; an empty list lifts a filter."""
        overrides = {name: value for name, value in arguments.items() if value is not None}
        return replace(self, overridden=frozenset(overrides), **overrides)

    def fitted(self, has_tags: Mapping[str, bool]) -> SearchDefaults:
        """Return these defaults without filters that an index cannot meet, with a notice for each that changed.

        If no file has a requested type, files of its nearest stand-in are found too. Tags are not required of types
        whose files have none: most often that is source code, which has no place for tags.

        Args:
            has_tags: the types of the existing artifacts, and whether any artifact of the type has tags.
        """
        defaults = self
        lacking = [type_ for type_ in self.types or () if type_ in STAND_INS and type_ not in has_tags]
        nearest = (next((stand_in for stand_in in STAND_INS[type_] if stand_in in has_tags), "") for type_ in lacking)
        added = [name for name in dict.fromkeys(nearest) if name and name not in (self.types or ())]
        # A filter that the call itself gave is not widened: whoever gave it meant it.
        if added and "types" not in self.overridden:
            notice = f"no {' and no '.join(lacking)} is indexed, so agent {self.agent} finds {' and '.join(added)} too"
            defaults = replace(defaults, types=(*(defaults.types or ()), *added), notices=(*defaults.notices, notice))
        untagged = [type_ for type_ in defaults.types or has_tags if has_tags.get(type_) is False]
        if defaults.tags and untagged and "tags" not in self.overridden:
            notice = f"no {' and no '.join(untagged)} has a tag, so agent {self.agent} finds what has none"
            defaults = replace(defaults, untagged_types=untagged, notices=(*defaults.notices, notice))
        return defaults

    @property
    def limits(self) -> str:
        """What the strategy restricts hits to, for a notice; "" for nothing."""
        limits = (
            self.types and f"of the types {', '.join(self.types)}",
            self.phases and f"of the phases {', '.join(self.phases)} or of none",
            self.tags and f"with one of the tags {', '.join(self.tags)}",
            self.min_score and f"scored {self.min_score:.2f} or more",
        )
        return ", ".join(str(limit) for limit in limits if limit)


def defaults_of(agent: str | None, strategies: Mapping[str, Strategy]) -> SearchDefaults:
    """Return the defaults of an agent's strategy; an agent without one has that of `default`, and a notice says so.

    Args:
        agent: in either spelling, `test_engineer` or `test-engineer`; None for no agent.

    Raises:
        UsageError: it is not a name, or too long.
    """
    if agent is None:
        return SearchDefaults()
    if not isinstance(agent, str) or not agent.strip() or len(agent) > MAX_NAME_CHARACTERS:
        raise UsageError(
            f"agent is {agent!r:.80}",
            remedy=f"name one, in 1 to {MAX_NAME_CHARACTERS} characters: {', '.join(strategies)}",
        )
    name, notices = agent_name(agent), tuple[str, ...]()
    if name not in strategies:
        listing = f"there are: {', '.join(strategies)}"
        notices = (f"there is no strategy for agent {name!r:.80}, so {DEFAULT_AGENT!r} is used; {listing}",)
        name = DEFAULT_AGENT
    strategy = strategies[name]
    return SearchDefaults(
        limit=strategy.top_k,
        min_score=strategy.threshold,
        types=strategy.context_types,
        phases=strategy.phase_filter,
        tags=strategy.tag_filter,
        agent=name,
        notices=notices,
    )
