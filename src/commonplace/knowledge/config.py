"""Configuration of a knowledge service: the contract's MemoryConfig, and adapters for foreign embedders and re-rankers.

A failure of a foreign object is raised as a `ProviderError`.

A re-ranker sets only the order and the scores: it cannot add, change or duplicate a candidate.
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
    """Options of a knowledge service. JSON spells a name `rerankTopK`, as in the contract, or `rerank_top_k`.

    Attributes:
        sqlite_enabled: False keeps everything in this process and nothing on disk.
        sqlite_path: the store's directory, or the `store.db` in it; a name such as `memory.db` means the
            directory `memory` beside it. "" means the engine's own store.
        vector_enabled: False makes and uses no vectors: search matches words alone.
        rerank_enabled: whether a language model re-ranks the hits.
        rerank_model: the model's name; without a provider it is OpenAI's.
        rerank_top_k: number of lines returned by a retrieval without a limit, 1–1000.
        retrieval_factor: number of candidates for re-ranking per line returned, 1–100.
        use_batch_rerank: True makes one call for all candidates instead of one for each.

    Raises:
        ConfigError: a value has the wrong type or is out of range.
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
        for name, limit in _LIMITS.items():
            value = getattr(self, name)
            if not 1 <= value <= limit:
                remedy = f"give a whole number from 1 to {limit:,}"
                raise ConfigError(f"{_camel(name)} is {value}", path=_camel(name), remedy=remedy)
        if "\0" in self.sqlite_path:
            raise ConfigError("sqlitePath holds a null character", path="sqlitePath", remedy="name a directory")
        if self.rerank_enabled and not self.rerank_model.strip():
            raise ConfigError("rerankModel is empty", path="rerankModel", remedy="name a model, or set rerankEnabled")

    @classmethod
    def from_json(cls, document: object) -> MemoryConfig:
        """Return the configuration in a JSON document or in an already parsed mapping.

        Absent and null options take their defaults; false is false. Names may be camelCase or snake_case, and are not
        case-sensitive.

        Raises:
            ConfigError: the document is not a JSON object, or a name is unknown or occurs in two spellings.
        """
        options = document
        if isinstance(options, str | bytes):
            try:
                options = json.loads(options)
            except (ValueError, RecursionError) as error:
                problem = f"the configuration is not JSON: {fault_of(error)}"
                raise ConfigError(problem, path="", remedy="correct it") from error
        if not isinstance(options, Mapping):
            raise ConfigError(f"the configuration is {options!r:.80}", path="", remedy="give an object")
        by_spelling = {_folded(field.name): field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in options.items():
            name = by_spelling.get(_folded(str(key)))
            if name is None:
                names = ", ".join(_camel(field.name) for field in fields(cls))
                raise ConfigError(f"{key!r:.80} is unknown", path=str(key), remedy=f"known are {names}")
            if name in values:
                raise ConfigError(f"{key!r:.80} occurs twice", path=str(key), remedy="give one spelling of it")
            values[name] = value
        return cls(**{name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in the contract's spelling."""
        return {_camel(name): value for name, value in asdict(self).items()}


_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", int: "a whole number"}


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(map(str.capitalize, words))


@dataclass(frozen=True, slots=True)
class KnowledgeRuntime:
    """The store, models and settings of a service.

    Attributes:
        store_path: the path of the store, "" for one in memory.
        stored_embedder: returns the name of the embedder of the store's vectors.
        destination: returns the destination for new passages; called before each write.
        search: answers a request from the store.
        after: called with the number of items written or deleted.
        vectors: vectors of the service's own embedder; None if the store's embedder makes them.
        no_vectors: why the configured embedder cannot be used, or "".
        reranker: opens the re-ranker, or raises a `ProviderError` that says why it cannot. None: no re-ranking.
        reranker_name: the re-ranker's name in status and notices.
    """

    store: Store
    namespace: str
    store_path: str
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
        """The name of the embedder in use now, "" for none."""
        if not self.config.vector_enabled or self.no_vectors:
            return ""
        return self.stored_embedder() if self.vectors is None else self.vectors.name


BATCH_SIZE: Final = 128


class Embedder(Protocol):
    """The contract's embedder. An optional `name` or `model` distinguishes its vectors from others."""

    def embed(self, *texts: str) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""


class Vectors:
    """Vectors of an embedder other than the store's: one of the contract's, or one of ours, which has a stamp.

    Thread-safe if the embedder is.

    Attributes:
        name: the embedder's name; vectors of different names are never compared.
        dimensions: number of dimensions of the vectors returned last, 0 before the first.

    Raises:
        UsageError: the object is not an embedder.
    """

    def __init__(self, embedder: Any, tokenize: Callable[[str], NDArray[np.uint16]]) -> None:
        if not callable(getattr(embedder, "embed", None)):
            raise UsageError(f"the embedder is {embedder!r:.80}", remedy="give an object with `embed(*texts)`")
        stamp, kind = getattr(embedder, "stamp", None), type(embedder)
        names = (getattr(embedder, "name", ""), getattr(embedder, "model", ""))
        given_name = next((name.strip() for name in names if isinstance(name, str) and name.strip()), "")
        self.name = given_name or f"{kind.__module__}.{kind.__qualname__}" if stamp is None else str(stamp)
        self.dimensions = 0
        self._embedder, self._has_stamp, self._tokenize = embedder, stamp is not None, tokenize

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of one or more texts, float32, shape (len(texts), d).

        Raises:
            ProviderError: the embedder failed, or did not return one valid vector for each text.
        """
        rows: list[Sequence[float]] = []
        for begin in range(0, len(texts), BATCH_SIZE):
            batch = texts[begin : begin + BATCH_SIZE]
            try:
                if self._has_stamp:
                    rows += list(self._embedder.embed([TokenizedText(text, self._tokenize(text)) for text in batch]))
                else:
                    rows += list(self._embedder.embed(*batch))
            except CommonplaceError:
                raise
            except Exception as error:  # foreign code may raise anything
                reason = redact(f"{type(error).__name__}: {error}").text
                raise ProviderError(f"the embedder {self.name} failed: {reason}") from error
            if len(rows) != begin + len(batch):
                raise ProviderError(
                    f"the embedder {self.name} returned {len(rows) - begin} vectors for {len(batch)} texts"
                )
        try:
            with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused below
                vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise ProviderError(f"the embedder {self.name} returned something other than a vector: {error}") from error
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            reason = "vectors are not empty, of one length, and of finite numbers"
            raise ProviderError(f"the embedder {self.name} returned something other than a vector: {reason}")
        self.dimensions = vectors.shape[1]
        return vectors


class NoVectors:
    """Stand-in for the store's embedder when nothing is embedded: returns the zero vector for every text."""

    def __init__(self, stamp: Embedding) -> None:
        self.stamp = stamp

    def embed(self, texts: Sequence[contract.TokenizedText]) -> NDArray[np.float32]:
        return np.zeros((len(texts), self.stamp.of("knowledge").dimensions), np.float32)


class Reranker(Protocol):
    """The contract's re-ranker; our own implement it too."""

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> Sequence[Any]:
        """Return results with `content` and `score`, best first; an `index` tells equal contents apart."""


def reranked(reranker: Reranker, query: str, candidates: Sequence[str], top_k: int) -> list[tuple[int, float]]:
    """Return the indices of at most `top_k` candidates with their scores, 0–1, best first, ties in input order.

    Results that match no candidate are ignored; candidates without a result follow with score 0. A score that is not a
    finite number counts as 0. Scores outside 0–1, which some models return, set the order and are then clamped.

    Raises:
        ProviderError: the re-ranker failed, or returned none of the candidates.
    """
    try:
        results = list(reranker.rerank(query, list(candidates), top_k))
    except CommonplaceError:
        raise
    except Exception as error:  # foreign code may raise anything
        raise ProviderError(redact(f"the re-ranker failed: {type(error).__name__}: {error}").text) from error
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, content in enumerate(candidates):
        rows[content].append(row)
    scores: dict[int, float] = {}
    for result in results:
        # The index selects the candidate if several have the result's content.
        value = result.get if isinstance(result, Mapping) else partial(getattr, result)
        content, index, raw_score = (value(name, None) for name in ("content", "index", "score"))
        matches = rows.get(content, ()) if isinstance(content, str) else ()
        free = [match for match in matches if match not in scores]
        if free:
            try:  # accept NumPy and decimal types too
                score = 0.0 if isinstance(raw_score, bool) else float(raw_score)
            except (TypeError, ValueError, OverflowError):
                score = 0.0
            scores[index if index in free else free[0]] = score if math.isfinite(score) else 0.0
    if not scores:
        raise ProviderError("the re-ranker returned none of the candidates")
    order = sorted(range(len(candidates)), key=lambda row: (row not in scores, -scores.get(row, 0.0), row))
    return [(row, min(1.0, max(0.0, scores.get(row, 0.0)))) for row in order[:top_k]]
