"""`engine.graph`: the temporal knowledge graph of a namespace; the rules are in `graph`.

With the Graphiti backend, additions are stored here and sent there, and Graphiti is queried first. The local graph
stays complete: it answers when Graphiti does not, and what Graphiti's tools cannot.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import numpy as np

from commonplace.dataclasses import replace
from commonplace.dates.time import Moment, moment_in_words, moment_of
from commonplace.engine.runtime import Runtime, abbreviated, made_once
from commonplace.errors import AdmissionError, NotFoundError, UsageError
from commonplace.formats.fence import unfence
from commonplace.graph import views
from commonplace.graph.episodes import itself
from commonplace.graph.facts import Assertion
from commonplace.graph.graphiti.outbox import Delivery, Outbox, waiting_for
from commonplace.graph.names import checked, normal
from commonplace.graph.query import GraphReader, TextHits
from commonplace.graph.redact import Cleaner
from commonplace.graph.runtime import made_id
from commonplace.graph.service import GraphService
from commonplace.memory import validate
from commonplace.ranking.calibration import text_scores
from commonplace.redaction import redact
from commonplace.search.request import Request
from commonplace.search.signals import COVERAGE, DENSE, LEXICAL, WORDS
from commonplace.text.characters import MENDED, storable
from commonplace.types import ORIGINS, Filter, Selection, StoredMemory
from commonplace.types.graph import Episode, GraphCounts, GraphFilter

if TYPE_CHECKING:
    # The Graphiti backend loads an HTTP client, and few stores migrate a graph.
    from commonplace.graph.graphiti.backend import Backend, Removal
    from commonplace.graph.graphiti.document import Migration
    from commonplace.settings.schema import GraphSettings
    from commonplace.store.store import Store

T = TypeVar("T")

MAX_RESULTS: Final = 200
MAX_FACTS: Final = 1_000
MAX_DEPTH, MAX_PATH = 4, 12
MAX_NEIGHBOURS: Final = 500
MAX_LISTED: Final = 10_000
MIN_TOKENS, MAX_TOKENS = 64, 1_000_000
DEFAULT_TOKENS: Final = 2_500
READABLE: Final = 40
"""Default maximum of entities in a drawing: as many as a person can still take in."""
_LEAST_SCORE: Final = 0.3
"""Score below which a text is unrelated to the question; texts of the graph are short, so few score high."""
VERDICTS: Final = ("right", "both", "ended")
SOURCES: Final = ("text", "message", "json")
LOCK: Final = "graphiti.lock"
_QUEUED: Final = "Graphiti reads it later: what it finds there is not counted here"


class Graph:
    """Episodes, entities and facts through time. Safe for threads.

    Entities and centres are given by id or by one of their names. Every call raises a `NotFoundError` if an entity, a
    fact, an episode or a centre does not exist or a name is ambiguous, and a `UsageError` if a value is of the wrong
    type or out of range; in both cases nothing has changed. `as_of`, `valid_at`, `include_past`, the groups and the
    centre mean the same everywhere; see `search_edges`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._backend: Backend | None = None
        settings, namespace = runtime.settings.graph, runtime.namespace
        if settings.backend != "local":  # nothing is sent or started yet
            from commonplace.graph.graphiti.backend import Backend, session_of
            from commonplace.graph.graphiti.client import group_of

            tools, outbox = session_of(settings, os.environ, namespace), Outbox(self._store, namespace, runtime.now)
            lock, graph = self._store.lock(runtime.directory / LOCK), partial(self._store.graph, namespace)
            group = partial(group_of, namespace, default=settings.group)
            self._backend = Backend(tools, outbox, lock, graph, self._memory_text, runtime.now, group)

    def add_episode(  # noqa: PLR0913 - the options of a facade
        self,
        content: str | Mapping[str, Any] | Sequence[Any],
        *,
        name: str = "",
        source_description: str = "",
        reference_time: Moment | None = None,
        source: str = "text",
        group_id: str = "",
        origin: str = "agent",
        trust: float | None = None,
        uuid: str | None = None,
        speaker: str = "",
    ) -> views.Addition:
        """Store what was said or happened, with the entities and facts that it states.

        Everything is written in one transaction. Secrets are replaced by placeholders, and recalled blocks are cut out.
        The language model of the setting graph.extractor, if any, is called before that transaction; if it is of no
        use, the rules read the text, and the result is `degraded`.
        A known `uuid` with other content replaces that episode and everything that it added; with the same content
        nothing changes.

        Args:
            content: at most 1 MiB of UTF-8 (setting memory.max_bytes), or a JSON value if `source` is "json".
            reference_time: when it was said or happened: an ISO 8601 text, a datetime, seconds, or words such as "last
                March" (its beginning); default: now. Dates in the content are relative to it.
            source: "text", "message" (lines of `speaker: text`) or "json".
            group_id: a label within the namespace; facts of all groups are one graph.
            origin: "user", "agent", "tool", "document" or "web".
            trust: 0–1; default: by origin. A fact that is trusted less never ends one that is trusted more.
            speaker: who says it, if the content does not tell: who `I` is.

        Raises:
            AdmissionError: the content holds only recalled blocks.
        """
        from commonplace.graph.model_extraction import Text, read

        runtime, now = self._runtime, self._runtime.now()
        kind = validate.one_of("source", source, SOURCES)
        body, notices = _content(content, runtime.settings.memory.max_bytes, is_json=kind == "json")
        if uuid is not None:
            validate.reject_invalid_id(uuid)
        author = validate.one_of("origin", origin, ORIGINS)
        start = _time("reference_time", reference_time, now, is_start=True)
        episode = Episode(
            id=uuid or made_id(),
            content=body,
            reference_time=now if start is None else start,
            created_at=now,
            name=_redacted("name", name),
            source=kind,  # type: ignore[arg-type] # one of the choices
            source_description=_redacted("source_description", source_description),
            origin=author,  # type: ignore[arg-type] # likewise
            trust=validate.TRUST[author] if trust is None else validate.fraction("trust", trust),  # type: ignore[index] # one of the origins
            group=validate.short_text("group_id", group_id),
        )
        speaker_name = _redacted("speaker", speaker)
        self._before()
        stored = runtime.graph_runtime(False).graph.episodes([uuid]).get(uuid) if uuid else None
        if start is None and stored is not None and stored.content == body:
            # The same episode given again without a time is the same episode.
            episode = replace(episode, reference_time=stored.reference_time)
        # A known episode is not written again, so no model need be paid for reading it.
        is_stored = stored is not None and replace(stored, created_at=now) == episode
        text = Text(body, episode.reference_time, runtime.kinds, speaker_name)
        model = runtime.settings.graph.extractor
        by_rules = is_stored or model == "rules"
        extraction = read(text, episode.source, None if by_rules else lambda: runtime.generator(model))
        added = self._service.add_episode(episode, extraction, notices=notices)
        self._after()
        return self._delivered(added)

    def add_triplet(  # noqa: PLR0913 - the options of a facade
        self,
        source: str,
        relation_type: str,
        target: str,
        *,
        fact: str | None = None,
        source_type: str | None = None,
        target_type: str | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        group_id: str = "",
        reason: str = "",
    ) -> views.Addition:
        """Store a fact; it may end or dispute others, like one that an episode states.

        Args:
            source, target: names or ids of entities; an unknown name makes an entity.
            relation_type: a built-in type, or one of the setting graph.relation_types.
            fact: a sentence that states it; default: one made from the names.
            source_type, target_type: types of new entities; default: by the relation.
            valid_from: since when it holds; default: now, or unknown if it has already ended.
            valid_to: until when it holds; default: open. A month or words mean its beginning, as in `add_episode`.
            reason: why, for `history`.

        Raises:
            UsageError: source and target are the same, it ends before it begins, or a value is out of range.
        """
        now, kinds = self._runtime.now(), self._runtime.kinds
        type_ = kinds.relation("relation_type", relation_type)
        ends = [redact(checked(name, value)).text for name, value in (("source", source), ("target", target))]
        if normal(ends[0]) == normal(ends[1]):
            raise itself(ends[0])
        types = (("source_type", source_type), ("target_type", target_type))
        of_source, of_target = ("" if value is None else kinds.entity(name, value) for name, value in types)
        times = (("valid_from", valid_from), ("valid_to", valid_to))
        start, end = (_time(name, moment, now, is_start=True) for name, moment in times)
        if start is not None and end is not None and end <= start:
            problem = f"valid_to {valid_to!r} is not after valid_from {valid_from!r}"
            raise UsageError(problem, remedy="give the later", parameters=("valid_to", "valid_from"))
        assertion = Assertion(
            "",
            ends[0],
            ends[1],
            "said",
            "" if fact is None else _redacted("fact", fact).strip(),
            now,
            now,
            valid_from=start,
            valid_to=end,
            trust=validate.TRUST["agent"],
            group=validate.short_text("group_id", group_id),
            reason=_redacted("reason", reason),
            type=type_,
        )
        added = self._write(lambda service: service.add_fact(assertion, (of_source, of_target)))
        return self._delivered(added)

    def delete_episode(self, uuid: str) -> views.Deletion:
        """Delete an episode with the facts, entities and names that only it supports.

        What other episodes say stays; facts that had ended, or were disputed, only because of it, hold again.
        """
        deletion = self._write(lambda service: service.delete_episode(uuid), uuid)
        if self._backend is None:
            return deletion
        delivery = self._backend.deliver()
        return replace(deletion, degraded=bool(delivery.waiting), notices=_notices(delivery))

    def merge(self, keep: str, other: str, *, reason: str = "") -> views.Merging:
        """Merge one entity into another; `split` undoes it.

        Raises:
            UsageError: both are the same entity.
        """
        checked_reason = _redacted("reason", reason)
        return self._write(lambda service: service.merge(keep, other, checked_reason), keep, other)

    def split(self, entity: str, *, names: Sequence[str] = (), reason: str = "") -> views.Splitting:
        """Undo merges of an entity, or split off some of its names.

        Args:
            names: names of entities that were merged into it and are restored exactly as they were; an empty list
                restores all of them. Names that were never another entity's make a new entity, with the mentions and
                facts of the episodes that used only these.

        Raises:
            UsageError: nothing was merged into it and no names are given, or it lacks these names or has no others.
        """
        checked_names = validate.labels("names", names)
        checked_reason = _redacted("reason", reason)
        return self._write(lambda service: service.split(entity, checked_names, checked_reason), entity)

    def settle(self, relation_uuid: str, *, reason: str = "", verdict: str = "right") -> views.Settlement:
        """Resolve a dispute in favour of this fact.

        Others end where this one began; those that did not begin before it are retracted.

        Args:
            verdict: "right"; "both": all facts of its dispute hold beside each other; "ended": it has ended, as was
                said but not believed.

        Raises:
            UsageError: it is not disputed.
        """
        checked_reason = _redacted("reason", reason)
        kind = validate.one_of("verdict", verdict, VERDICTS)
        return self._write(lambda service: service.settle(relation_uuid, checked_reason, kind), relation_uuid)

    def search_entities(
        self,
        query: str,
        num_results: int = 10,
        *,
        group_ids: Sequence[str] | None = None,
        entity_types: Sequence[str] | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        center_node_uuid: str | None = None,
    ) -> views.FoundEntities:
        """Find entities by their names and facts, best first.

        Args:
            num_results: maximum number, 1–200.
            valid_at: by the facts that were true in the world at that time; an entity is always found by its name.
        """
        limit, text = validate.int_in("num_results", num_results, 1, MAX_RESULTS), _query(query)
        kind = self._runtime.kinds.entity
        types = [kind("entity_types", name) for name in validate.labels("entity_types", entity_types or ())]
        scope = self._scope(as_of, valid_at, groups=group_ids or (), types=types)
        return self._near(center_node_uuid, scope).search_entities(text, limit)

    def search_edges(
        self,
        query: str,
        num_results: int = 10,
        *,
        group_ids: Sequence[str] | None = None,
        relation_types: Sequence[str] | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
        center_node_uuid: str | None = None,
    ) -> views.FoundRelations:
        """Find facts, best first: those that hold now or will, or held at the given time.

        Args:
            num_results: maximum number, 1–200.
            as_of: as the graph was known at that time; an ISO 8601 text, a datetime, seconds, or words.
            valid_at: what was true in the world at that time, as it is known now, or was known at `as_of`.
            include_past: also facts that have ended or were retracted.
            center_node_uuid: an entity; results near it come first.
        """
        limit, text = validate.int_in("num_results", num_results, 1, MAX_RESULTS), _query(query)
        kind = self._runtime.kinds.relation
        types = [kind("relation_types", name) for name in validate.labels("relation_types", relation_types or ())]
        scope = self._scope(as_of, valid_at, include_past, group_ids or (), types)
        return self._near(center_node_uuid, scope).search_relations(text, limit)

    def build_context(
        self,
        entity_names: Sequence[str] = (),
        max_facts: int = 20,
        center_node_uuid: str | None = None,
        *,
        query: str = "",
        max_tokens: int | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
    ) -> views.GraphContext:
        """Return what is known about some entities as fenced, labelled text for a model.

        Facts carry the time in which they hold, and `disputed` if they are. Those that answer the query come first,
        then the nearest.

        Args:
            entity_names: names or ids; those that no entity has are listed in `missing`.
            max_facts: 1–1,000.
            center_node_uuid: one more entity.
            query: what it is for, in words.
            max_tokens: 64–1,000,000, counted by the default embedder's vocabulary; default: 2,500.
        """
        names = validate.labels("entity_names", entity_names)
        tokens = DEFAULT_TOKENS if max_tokens is None else max_tokens
        budget = validate.int_in("max_tokens", tokens, MIN_TOKENS, MAX_TOKENS)
        validate.text("query", query)
        if not names and center_node_uuid is None and not query.strip():
            raise UsageError("nothing is asked for", remedy="name entities, a centre or a query")
        validate.int_in("max_facts", max_facts, 1, MAX_FACTS)
        reader, count = self._near(center_node_uuid, self._scope(as_of, valid_at)), self._runtime.tokens.count_tokens
        return reader.context(names, query, max_facts=max_facts, max_tokens=budget, count=count)

    def entity(self, name: str, *, as_of: Moment | None = None) -> views.EntityView:
        """Return an entity by id or name."""
        return self._read(lambda reader: reader.entity(name), name, as_of=as_of)

    def relation(self, uuid: str, *, as_of: Moment | None = None) -> views.RelationView:
        """Return a fact by id."""
        return self._read(lambda reader: reader.relation(uuid), uuid, as_of=as_of)

    def episode(self, uuid: str) -> views.EpisodeView:
        """Return an episode by id."""
        return self._read(lambda reader: reader.episode(uuid), uuid)

    def facts_of_memory(self, id: str) -> list[views.RelationView]:  # noqa: A002 - the name of the field
        """Return the facts found in a memory, in any version, in the order of the text."""
        return self._read(lambda reader: reader.facts_of_memory(id), id)

    def neighbourhood(
        self,
        entity: str,
        depth: int = 2,
        limit: int = 50,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
    ) -> views.Subgraph:
        """Return the entities around one, nearest first, and the facts between them.

        Args:
            depth: how many facts away, 1–4.
            limit: maximum number of entities, 1–500. Of a hub only the newest 100 facts are followed.
        """
        validate.int_in("depth", depth, 1, MAX_DEPTH)
        validate.int_in("limit", limit, 1, MAX_NEIGHBOURS)
        filters = {"as_of": as_of, "valid_at": valid_at, "include_past": include_past}
        return self._read(lambda reader: reader.neighbourhood(entity, depth, limit), entity, **filters)

    def path(
        self,
        source: str,
        target: str,
        *,
        max_depth: int = 6,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
    ) -> views.GraphPath:
        """Return a shortest path of at most `max_depth` facts, 1–12, in either direction; empty if there is none."""
        validate.int_in("max_depth", max_depth, 1, MAX_PATH)
        when = {"as_of": as_of, "valid_at": valid_at}
        return self._read(lambda reader: reader.path(source, target, max_depth), source, target, **when)

    def timeline(self, entity: str, *, limit: int = 1_000, as_of: Moment | None = None) -> views.Timeline:
        """Return what began and ended for an entity, oldest first, past facts included."""
        validate.int_in("limit", limit, 1, MAX_LISTED)
        return self._read(lambda reader: reader.timeline(entity, limit), entity, as_of=as_of, include_past=True)

    def resolve_id(self, abbreviation: str) -> str:
        """Return the id of the fact, entity or episode that begins with these at least 4 characters.

        A whole id, an entity's name, and what begins no id are returned unchanged.

        Raises:
            UsageError: several begin so.
        """

        def find(reader: GraphReader) -> str:
            graph, every = self._store.graph(self._runtime.namespace), GraphFilter(with_past=True)
            if graph.episodes([abbreviation]):
                return abbreviation  # also if it is the name of an entity: callers choose the ids of episodes
            with suppress(NotFoundError):
                return reader.history(abbreviation).uuid
            ids = [fact.id for fact in graph.list_relations(every)]
            ids += [entity.id for entity in graph.list_entities(every)]
            ids += [episode.id for episode in graph.list_episodes(every)]
            return abbreviated(abbreviation, ids, "items of the graph")

        return self._read(find, abbreviation)

    def history(self, uuid: str) -> views.History:
        """Return what happened to an entity or fact: when it was added, ended, was disputed, and why."""
        return self._read(lambda reader: reader.history(uuid), uuid)

    def episodes(
        self, limit: int = 50, group_ids: Sequence[str] | None = None, *, as_of: Moment | None = None
    ) -> list[views.EpisodeView]:
        """Return episodes, newest first by reference time."""
        validate.int_in("limit", limit, 1, MAX_LISTED)
        return self._read(lambda reader: list(reader.episodes(limit)), as_of=as_of, groups=group_ids or ())

    def communities(self, limit: int = 20, *, as_of: Moment | None = None) -> list[views.Community]:
        """Return groups of closely related entities, largest first."""
        validate.int_in("limit", limit, 1, MAX_FACTS)
        return self._read(lambda reader: list(reader.communities(limit)), as_of=as_of)

    def disputes(self) -> list[views.Dispute]:
        """Return facts that contradict each other, oldest dispute first."""
        return self._read(lambda reader: list(reader.disputes()))

    def counts(self) -> GraphCounts:
        """Count episodes, entities, facts and disputed facts."""
        self._before()
        return self._runtime.graph_runtime(False).graph.counts()

    def show(
        self,
        entity: str,
        depth: int = 2,
        limit: int = READABLE,
        *,
        form: str = "mermaid",
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
    ) -> views.Drawing:
        """Draw the entities and facts around an entity.

        Args:
            depth, limit: as for `neighbourhood`; an SVG has at most 40 entities.
            form: "svg", "graphml", "dot" or "mermaid".
            include_past: also facts that have ended, drawn as such.
        """
        from commonplace.graph.drawing import DRAWINGS, draw

        validate.one_of("form", form, tuple(DRAWINGS))
        scope = self._scope(as_of, valid_at)
        part = self.neighbourhood(entity, depth, limit, as_of=as_of, valid_at=valid_at, include_past=include_past)
        moment = scope.as_of if scope.valid_at is None else scope.valid_at
        seen_at = None if moment is None else moment_of(moment)
        text = draw(part, form, seen_at=seen_at or moment_of(scope.now), as_of=seen_at)
        name = next((node.name for node in part.entities if node.uuid == part.centre), "")
        return views.Drawing(name, form, len(part.entities), len(part.relations), part.is_capped, text)

    def export_graphiti(self, target: str | Path | TextIO) -> Migration:
        """Write the graph of this namespace, past facts included, as Graphiti's nodes and edges.

        Graphiti has no field for other names, trust, disputes, merges and history: `commonplace export` keeps all.

        Args:
            target: a new file, which appears only when complete, or a text stream.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.export import new_file
        from commonplace.graph.graphiti.document import write_graphiti

        path = None if callable(getattr(target, "write", None)) else validate.path_value("target", target)
        scope = self._scope()
        self._before()
        with self._store.snapshot():
            graph = self._runtime.graph_runtime(False).graph
            if path is None:
                assert not isinstance(target, str | Path)
                stream_write = target.write
                return write_graphiti(graph, scope, self._memory_text, lambda chunk: stream_write(chunk.decode()))
            path = path.expanduser().absolute()
            with new_file(path, self._runtime.directory) as write:
                return replace(write_graphiti(graph, scope, self._memory_text, write), path=path)

    def import_graphiti(self, path: str | Path, *, dry_run: bool = False) -> Migration:
        """Import a document of Graphiti's nodes and edges in one transaction; ids are kept.

        An item that exists here under the same id stays as it is; a second import changes nothing. Types keep their
        names there, even if no setting names them. Secrets are replaced by placeholders.

        Args:
            dry_run: check everything and count, but write nothing.

        Raises:
            ConfigError: a value is missing or wrong; the message and `path` say where. Nothing was written.
        """
        from commonplace.graph.graphiti.document import import_document, read_graphiti

        is_dry = validate.boolean("dry_run", dry_run)
        document = read_graphiti(validate.path_value("path", path), self._runtime.now())
        self._before()
        migration = import_document(self._runtime.graph_runtime(not is_dry), document, is_dry_run=is_dry)
        if not is_dry:
            self._after()
        return migration

    def sync(self) -> Delivery:
        """Send queued episodes to the external backend (setting graph.backend)."""
        if self._backend is None:
            return Delivery("local")
        self._runtime.before_call()
        return self._backend.deliver(is_asked=True)

    def close(self) -> None:
        """Disconnect from an external backend."""
        if self._backend is not None:
            self._backend.close()

    def _before(self) -> None:
        self._runtime.before_call()
        if self._backend is not None and not self._store.is_read_only:  # what was sent is noted in the store
            self._backend.deliver()

    def _after(self) -> None:
        """Embed what was added at once, since it is likely to be asked for next, unless much more is pending."""
        self._runtime.backlog.catch_up()
        self._runtime.after_write()

    def _delivered(self, added: views.Addition) -> views.Addition:
        """Send what was added here to Graphiti, if it is the backend; what cannot be sent waits in a queue."""
        if self._backend is None:
            return added
        hint = () if added.outcome == "unchanged" else (_QUEUED,)
        return replace(added, degraded=True, notices=(*added.notices, *hint, *_notices(self._backend.deliver())))

    def _read(self, ask: Callable[[GraphReader], T], *ids: str, **filters: Any) -> T:
        """Validate ids, run `_before`, and ask a reader of one snapshot of the store; for `filters` see `_scope`."""
        for id_ in ids:
            validate.reject_invalid_id(id_)
        scope = self._scope(**filters)
        self._before()
        with self._store.snapshot():
            return ask(self._reader(scope))

    def _write(self, change: Callable[[GraphService], T], *ids: str) -> T:
        for id_ in ids:
            validate.reject_invalid_id(id_)
        self._before()
        changed = change(self._service)
        self._after()
        return changed

    @made_once
    def _scores(self) -> Callable[[str, Sequence[str]], Iterable[float]]:
        from commonplace.models.static_reranking import StaticReranker

        return StaticReranker(self._runtime.tokens).scores

    def _reader(self, scope: views.QueryFilters) -> GraphReader:
        runtime = self._runtime.graph_runtime(False)
        inputs = runtime, self._search_graph, self._memory_text, scope, self._successors
        if self._backend is None:
            return GraphReader(*inputs)
        from commonplace.graph.graphiti.query import GraphitiReader

        return GraphitiReader(*inputs, self._backend, self._scores)

    def _successors(self, ids: Sequence[str]) -> dict[str, StoredMemory]:
        """Return the newest live memory that may have replaced each of these, by a link that searches follow."""
        store, namespace = self._store, self._runtime.namespace

        def live(memory_ids: Iterable[str]) -> list[StoredMemory]:
            selection = Selection(ids=tuple(memory_ids), statuses=("active", "promoted"))
            return store.memories(namespace, selection) if selection.ids else []

        statements = store.statements(namespace, [memory.number for memory in live(ids)])
        linked = {statement.id: statement.overtaken_by | statement.judged.keys() for statement in statements.values()}
        newest_first = live(set().union(*linked.values()))
        newer = {id_: [row for row in newest_first if row.owner.id in links] for id_, links in linked.items()}
        return {id_: rows[0] for id_, rows in newer.items() if rows}

    def _scope(
        self,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
        groups: Sequence[str] = (),
        types: Sequence[str] = (),
    ) -> views.QueryFilters:
        now = self._runtime.now()
        times = _time("as_of", as_of, now), _time("valid_at", valid_at, now)
        past, labels = validate.boolean("include_past", include_past), validate.texts("group_ids", groups)
        return views.QueryFilters(now, *times, past, labels, tuple(types))

    def _near(self, centre: str | None, scope: views.QueryFilters) -> GraphReader:
        """Run `_before`, and return a reader that ranks results near an entity first; None or "" for no centre."""
        self._before()
        if not centre:
            return self._reader(scope)
        validate.reject_invalid_id(centre)
        try:
            id_ = self._reader(self._scope()).entity(centre).uuid
        except NotFoundError:
            if self._backend is None:
                raise
            from commonplace.graph.graphiti.query import is_id

            if not is_id(centre):
                raise
            id_ = centre  # an id of Graphiti's own: its searches take it, though no tool looks it up
        return self._reader(replace(scope, centre=id_))

    @property
    def _service(self) -> GraphService:
        outbox = None if self._backend is None else self._backend.outbox
        return GraphService(self._runtime.graph_runtime(True), outbox)

    def _search_graph(self, namespace: str, query: str, limit: int) -> TextHits:
        """Find texts of the graph, each scored independently of the others.

        Texts of a graph are short and often alike, and none may be less likely because another is as near. So each has
        its own score, raised where a lower-ranked text scores higher.
        """
        depth = max(limit, self._runtime.settings.search.stage1_limit)
        request = Request(query, namespace, limit, "two-stage", Filter(), min_score=0.0, stage1_limit=depth)
        result = self._runtime.search(request)
        signals, names = [hit.signals for hit in result.hits], (COVERAGE, WORDS, DENSE)
        coverage, words, dense = (np.array([each[name] for each in signals], np.float32) for name in names)
        embedder = self._runtime.embedder.stamp.of("entity").name if dense.any() else ""
        alone = text_scores(embedder, coverage, words, dense, result.trace.passages)
        lifted = np.maximum.accumulate(alone[::-1])[::-1].tolist()
        scores = {hit.owner_id: score for hit, score in zip(result.hits, lifted, strict=True) if score >= _LEAST_SCORE}
        worded = frozenset(hit.owner_id for hit in result.hits if hit.signals.get(LEXICAL, 0.0) > 0.0)
        return TextHits(scores, result.degraded, result.notices, worded)

    def _memory_text(self, memory: str, version: int) -> str:
        if not memory:
            return ""
        versions = self._store.versions(self._runtime.namespace, memory)
        return next((stored.record.content for stored in versions if stored.record.version == version), "")


def _query(query: object) -> str:
    if not isinstance(query, str) or not query.strip():
        raise UsageError("the query is empty", remedy="say in a few words what you look for")
    return query


def leave_graphiti(store: Store, settings: GraphSettings, namespace: str, sent_ids: Set[str], dry_run: bool) -> Removal:
    """Delete a namespace of the store, and what has these ids, from Graphiti; a dry run only reports the groups."""
    from commonplace.graph.graphiti import backend
    from commonplace.graph.graphiti.client import group_of

    outbox = Outbox(store, namespace, time.time)
    groups = {group_of(namespace, label, settings.group): label for label in ("", *outbox.labels())}
    if dry_run:
        names = backend.named_groups(groups)
        return backend.Removal(outside=(f"data of this namespace sent to Graphiti, in {names}: deletion is queued",))
    try:
        session = backend.session_of(settings, os.environ, namespace)
    except UsageError as error:
        return backend.Removal(outside=(backend.unreached(groups, str(error)),))
    unsent = {item.id for item in outbox.items() if item.what != "delete" and item.sent_at is None}
    with closing(session) as tools:
        return backend.leave(tools, store.graph(namespace), groups, sent_ids - unsent)


def _notices(delivery: Delivery) -> tuple[str, ...]:
    if not delivery.waiting:
        return delivery.notices
    return (*delivery.notices, f"{waiting_for(delivery.waiting)}; `commonplace graph sync` sends everything")


def _redacted(name: str, text: str) -> str:
    return redact(validate.short_text(name, text)).text


def _time(name: str, moment: Moment | None, now: float, *, is_start: bool = False) -> float | None:
    return None if moment is None else moment_in_words(name, moment, now, is_start=is_start)


def _content(content: object, max_bytes: int, *, is_json: bool) -> tuple[str, tuple[str, ...]]:
    notices, cleaner = list[str](), Cleaner()
    if is_json:
        try:
            value = json.loads(content) if isinstance(content, str) else content
            cleaned = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the content is not JSON: {error}", remedy="give JSON, or keep it as text") from error
        validate.reject_invalid(cleaned, max_bytes=max_bytes)
        text = json.dumps(cleaner.value(json.loads(cleaned)), ensure_ascii=False)
    else:
        validate.reject_invalid(content, max_bytes=max_bytes)
        assert isinstance(content, str)
        cleaned = storable(content)
        notices += [MENDED] * (cleaned != content)
        unfenced = unfence(cleaned)
        if unfenced.recalled:
            if not unfenced.text.strip():
                raise AdmissionError("the content is nothing but what was recalled", remedy="say what is new")
            notices.append(f"what was recalled from memory was skipped: {len(unfenced.recalled)}")
        text = cleaner.text(unfenced.text)
    if kinds := cleaner.take_kinds():
        notices.append(f"what looks like a secret was replaced: {', '.join(dict.fromkeys(kinds))}")
    return text, tuple(notices)
