"""Configuration of a knowledge service: the contract's MemoryConfig, and adapters for foreign embedders and re-rankers.

What a foreign object does wrong arrives as a `ProviderError`.

Whatever a re-ranker returns, no candidate is added, changed or counted twice: only the order and the scores are its.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import asdict, dataclass, fields
from commonplace.errors import CommonplaceError, ConfigError, ProviderError, UsageError
from commonplace.formats.yaml import fault_of
from commonplace.ingest.passages import Destination
from commonplace.models import contract
from commonplace.models.contract import TokenizedText
from commonplace.redaction import redact
from commonplace.search.request import Request
from commonplace.search.result import SearchResult
from commonplace.store.store import Store
from commonplace.types import Embedding, Progress

MAX_TOP_K: Final = 1000
MAX_FACTOR: Final = 100
_LIMITS: Final = {"rerank_top_k": MAX_TOP_K, "retrieval_factor": MAX_FACTOR}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """What a knowledge service uses. In JSON a name is written `rerankTopK`, as in the contract, or `rerank_top_k`.

    Attributes:
        sqlite_enabled: False keeps everything in this process, and nothing on disk.
        sqlite_path: the store's directory, or the `store.db` in it; a name such as `memory.db` is the
            directory `memory` beside it. "" is the engine's own store.
        vector_enabled: False makes and uses no vectors: what is indexed is found by its words.
        rerank_enabled: whether a language model puts what was found into a better order.
        rerank_model: its name; without a provider it is OpenAI's.
        rerank_top_k: how many lines a retrieval returns that names no limit, 1–1000.
        retrieval_factor: number of candidates for re-ranking per line returned, 1–100.
        use_batch_rerank: one call for all candidates, in place of one for each.

    Raises:
        ConfigError: a value is of the wrong kind or out of its range.
    """

    sqlite_enabled: bool = True
    sqlite_path: str = ""
    vector_enabled: bool = True
    rerank_enabled: bool = True
    rerank_model: str = "gpt-4o-mini"
    rerank_top_k: int = 10
    retrieval_factor: int = 3
    use_batch_rerank: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not type(field.default):
                remedy = f"give {_KINDS[type(field.default)]}"
                raise ConfigError(f"{_camel(field.name)} is {value!r:.80}", path=_camel(field.name), remedy=remedy)
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if not 1 <= value <= most:
                remedy = f"give a whole number from 1 to {most:,}"
                raise ConfigError(f"{_camel(name)} is {value}", path=_camel(name), remedy=remedy)
        if "\0" in self.sqlite_path:
            raise ConfigError("sqlitePath holds a null character", path="sqlitePath", remedy="name a directory")
        if self.rerank_enabled and not self.rerank_model.strip():
            raise ConfigError("rerankModel is empty", path="rerankModel", remedy="name a model, or set rerankEnabled")

    @classmethod
    def from_json(cls, document: object) -> MemoryConfig:
        """Return the configuration in a JSON object, or in one that was parsed already.

        Absent and null options have their defaults; false is false. Names are taken in camelCase and snake_case,
        in any case of letters.

        Raises:
            ConfigError: it is no JSON object, or a name is unknown or occurs in two spellings.
        """
        given = document
        if isinstance(given, str | bytes):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError) as error:
                told = f"the configuration is not JSON: {fault_of(error)}"
                raise ConfigError(told, path="", remedy="correct it") from error
        if not isinstance(given, Mapping):
            raise ConfigError(f"the configuration is {given!r:.80}", path="", remedy="give an object")
        known = {_plain(field.name): field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for written, value in given.items():
            name = known.get(_plain(str(written)))
            if name is None:
                names = ", ".join(_camel(field.name) for field in fields(cls))
                raise ConfigError(f"{written!r:.80} is unknown", path=str(written), remedy=f"known are {names}")
            if name in values:
                raise ConfigError(f"{written!r:.80} occurs twice", path=str(written), remedy="give one spelling of it")
            values[name] = value
        return cls(**{name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in the contract's spelling."""
        return {_camel(name): value for name, value in asdict(self).items()}


_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", int: "a whole number"}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


@dataclass(frozen=True, slots=True)
class KnowledgeRuntime:
    """The store, models and settings of a service.

    Attributes:
        place: the path of the store, "" for one in memory.
        stored_embedder: returns the name of what makes the store's vectors.
        destination: makes passages; called before each write.
        search: answers a request from the store.
        after: called with how many items were written or deleted.
        vectors: of an embedder of its own, None if the store's makes them.
        no_vectors: why the named embedder cannot be used, or "".
        reranker: opens the re-ranker; a `ProviderError` says why it cannot. None: no re-ranking.
        reranker_name: its name in status and notices.
    """

    store: Store
    namespace: str
    place: str
    stored_embedder: Callable[[], str]
    destination: Callable[[], Destination]
    search: Callable[[Request], SearchResult]
    now: Callable[[], float]
    after: Callable[[int], None]
    progress: Progress | None
    config: MemoryConfig
    vectors: Vectors | None = None
    no_vectors: str = ""
    reranker: Callable[[], Reranker] | None = None
    reranker_name: str = ""

    @property
    def embedder(self) -> str:
        """The name of what makes the vectors now, "" for nothing."""
        if not self.config.vector_enabled or self.no_vectors:
            return ""
        return self.stored_embedder() if self.vectors is None else self.vectors.name


AT_ONCE: Final = 128


class Embedder(Protocol):
    """The contract's embedder. It may have a `name` or a `model` that distinguishes its vectors from others."""

    def embed(self, *texts: str) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""


class Vectors:
    """Vectors of one embedder that is not the store's: one of the contract's, or one of ours, with a stamp.

    Safe for threads if the embedder is.

    Attributes:
        name: of the embedder; vectors of different names are never compared.
        dimensions: of the vectors that it returned last, 0 before the first.

    Raises:
        UsageError: it is no embedder.
    """

    def __init__(self, embedder: Any, tokenize: Callable[[str], NDArray[np.uint16]]) -> None:
        if not callable(getattr(embedder, "embed", None)):
            raise UsageError(f"the embedder is {embedder!r:.80}", remedy="give an object with `embed(*texts)`")
        stamp, kind = getattr(embedder, "stamp", None), type(embedder)
        names = (getattr(embedder, "name", ""), getattr(embedder, "model", ""))
        own = next((each.strip() for each in names if isinstance(each, str) and each.strip()), "")
        self.name = own or f"{kind.__module__}.{kind.__qualname__}" if stamp is None else str(stamp)
        self.dimensions = 0
        self._embedder, self._has_stamp, self._tokenize = embedder, stamp is not None, tokenize

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), d), of at least one text.

        Raises:
            ProviderError: the embedder failed, or returned something other than one vector for each text.
        """
        found: list[Sequence[float]] = []
        for begin in range(0, len(texts), AT_ONCE):
            part = texts[begin : begin + AT_ONCE]
            try:
                if self._has_stamp:
                    found += list(self._embedder.embed([TokenizedText(text, self._tokenize(text)) for text in part]))
                else:
                    found += list(self._embedder.embed(*part))
            except CommonplaceError:
                raise
            except Exception as error:  # it is somebody else's, and may raise anything
                told = redact(f"{type(error).__name__}: {error}").text
                raise ProviderError(f"the embedder {self.name} failed: {told}") from error
            if len(found) != begin + len(part):
                raise ProviderError(
                    f"the embedder {self.name} returned {len(found) - begin} vectors for {len(part)} texts"
                )
        try:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
                vectors = np.array(found, dtype=np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise ProviderError(f"the embedder {self.name} returned something other than a vector: {error}") from error
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            told = "vectors are not empty, of one length, and of finite numbers"
            raise ProviderError(f"the embedder {self.name} returned something other than a vector: {told}")
        self.dimensions = vectors.shape[1]
        return vectors


class NoVectors:
    """Replaces a store's embedder if nothing is to be embedded: every text has the vector zero."""

    def __init__(self, stamp: Embedding) -> None:
        self.stamp = stamp

    def embed(self, texts: Sequence[contract.TokenizedText]) -> NDArray[np.float32]:
        return np.zeros((len(texts), self.stamp.of("knowledge").dimensions), np.float32)


class Reranker(Protocol):
    """The contract's re-ranker; ours are of this kind too."""

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> Sequence[Any]:
        """Return results with `content` and `score`, best first; an `index` distinguishes equal contents."""


def reranked(reranker: Reranker, query: str, candidates: Sequence[str], top_k: int) -> list[tuple[int, float]]:
    """Return at most `top_k` places of candidates with scores, best first, ties in the order given.

    A result that is no candidate is passed over; candidates that have none follow with score 0, which a score that is
    no finite number is too. One beyond 0–1, as some models give them, counts for the order, and is told as the nearer
    end.

    Raises:
        ProviderError: the re-ranker failed, or returned no results.
    """
    try:
        results = list(reranker.rerank(query, list(candidates), top_k))
    except CommonplaceError:
        raise
    except Exception as error:  # it may be somebody else's, and raise anything
        raise ProviderError(redact(f"the re-ranker failed: {type(error).__name__}: {error}").text) from error
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, content in enumerate(candidates):
        places[content].append(place)
    scores: dict[int, float] = {}
    for result in results:
        # A result names a candidate by its index where several have its content.
        value = result.get if isinstance(result, Mapping) else partial(getattr, result)
        content, index, given = (value(name, None) for name in ("content", "index", "score"))
        named = places.get(content, ()) if isinstance(content, str) else ()
        free = [each for each in named if each not in scores]
        if free:
            try:  # NumPy's and decimal types too
                score = 0.0 if isinstance(given, bool) else float(given)
            except (TypeError, ValueError, OverflowError):
                score = 0.0
            scores[index if index in free else free[0]] = score if math.isfinite(score) else 0.0
    if not scores:
        raise ProviderError("the re-ranker returned none of the candidates")
    order = sorted(range(len(candidates)), key=lambda place: (place not in scores, -scores.get(place, 0.0), place))
    return [(place, min(1.0, max(0.0, scores.get(place, 0.0)))) for place in order[:top_k]]
