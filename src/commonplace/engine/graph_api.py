"""`engine.graph`: the temporal knowledge graph of a namespace; the rules are in `graph`.

Where Graphiti is its backend, what is added is kept here and sent there, and Graphiti is asked first. The local graph
stays whole: it answers where Graphiti does not, and what Graphiti's tools cannot.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import numpy as np

from commonplace.dataclasses import replace
from commonplace.dates.time import Moment, moment_in_words, moment_of
from commonplace.engine.runtime import Runtime, made_once
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
from commonplace.types.graph import Episode, GraphCounts

if TYPE_CHECKING:
    # What asks Graphiti loads an HTTP client, and few stores move a graph.
    from commonplace.graph.graphiti.backend import Backend, Left
    from commonplace.graph.graphiti.document import Migration
    from commonplace.settings.schema import GraphSettings
    from commonplace.store.store import Store

MAX_RESULTS: Final = 200
MAX_FACTS: Final = 1_000
MAX_DEPTH, MAX_PATH = 4, 12
MAX_NEIGHBOURS: Final = 500
MAX_LISTED: Final = 10_000
MIN_TOKENS, MAX_TOKENS = 64, 1_000_000
DEFAULT_TOKENS: Final = 2_500
READABLE: Final = 40
"""So many entities a person can still take in."""
_LEAST_SCORE: Final = 0.3
"""What is found with less has nothing to do with the question; texts of the graph are short, so few reach much."""
VERDICTS: Final = ("right", "both", "ended")
SOURCES: Final = ("text", "message", "json")
LOCK: Final = "graphiti.lock"
_ITS_OWN: Final = "Graphiti reads it later: what it finds there is not counted here"


class Graph:
    """Episodes, entities and facts through time. Safe for threads.

    Entities are given by id or by one of their names. Every call raises a `NotFoundError` where an entity, a fact, an
    episode or a centre is not there, or a name may mean several entities, and a `UsageError` where a value is of the
    wrong kind or out of its range; then nothing was changed.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._backend: Backend | None = None
        settings, namespace = runtime.settings.graph, runtime.namespace
        if settings.backend != "local":  # nothing is sent or started yet
            from commonplace.graph.graphiti.backend import Backend, session_of

            tools = session_of(settings, os.environ, time.monotonic, namespace)
            self._backend = Backend(
                tools,
                Outbox(runtime.store, namespace, runtime.now),
                runtime.store.lock(runtime.directory / LOCK),
                partial(runtime.store.graph, namespace),
                self._words_of,
                runtime.now,
                namespace,
                settings.group,
            )

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

        All of it is one transaction. Secrets are replaced by placeholders, and blocks that were recalled are cut out.
        The language model of the setting graph.extractor, if any, is asked before that transaction; where it is of no
        use, the rules read the text, and the answer is `degraded`.
        A known `uuid` with another content replaces that episode and all that it had brought; with the same content
        nothing changes.

        Args:
            content: at most 1 MiB of UTF-8, by the setting memory.max_bytes. JSON may be given as such.
            reference_time: when it was said or happened; None is now. Dates in it are read as seen from then. Times are
                given as for questions; of a month, or of words such as "last March", the beginning is meant.
            source: "text", "message" (lines of `speaker: text`) or "json".
            group_id: a label within the namespace; facts of all groups are one graph.
            origin: "user", "agent", "tool", "document" or "web".
            trust: 0–1; None follows from the origin. What is trusted less never ends what is trusted more.
            speaker: who says it, where the content does not tell: who `I` is.

        Raises:
            AdmissionError: the content is nothing but what was recalled.
        """
        from commonplace.graph.model_extraction import Text, read

        runtime, now = self._runtime, self._runtime.now()
        kind = validate.one_of("source", source, SOURCES)
        said, notices = _content(content, runtime.settings.memory.max_bytes, is_json=kind == "json")
        if uuid is not None:
            validate.reject_invalid_id(uuid)
        by, when = validate.one_of("origin", origin, ORIGINS), _beginning("reference_time", reference_time, now)
        episode = Episode(
            id=uuid or made_id(),
            content=said,
            reference_time=now if when is None else when,
            created_at=now,
            name=_redacted("name", name),
            source=kind,  # type: ignore[arg-type] # one of the choices
            source_description=_redacted("source_description", source_description),
            origin=by,  # type: ignore[arg-type] # likewise
            trust=validate.TRUST[by] if trust is None else validate.fraction("trust", trust),  # type: ignore[index] # one of the origins
            group=validate.short_text("group_id", group_id),
        )
        by_whom = _redacted("speaker", speaker)
        self._before()
        known = runtime.graph_runtime(False).graph.episodes([uuid]).get(uuid) if uuid else None
        if when is None and known is not None and known.content == said:
            # The same episode given again without a time is the same episode.
            episode = replace(episode, reference_time=known.reference_time)
        # Of what is known nothing is written, so no model need be paid for reading it.
        is_known = known is not None and replace(known, created_at=now) == episode
        text = Text(said, episode.reference_time, runtime.kinds, by_whom)
        model = runtime.settings.graph.extractor
        by_rules = is_known or model == "rules"
        understood = read(text, episode.source, None if by_rules else lambda: runtime.generator(model))
        added = self._service.add_episode(episode, understood, notices=notices)
        self._after()
        return self._sent(added)

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
            source, target: names, or ids of entities; a name that is not known makes an entity.
            relation_type: one of the types that there are, or of the setting graph.relation_types.
            fact: a sentence that says it; None makes one of the names.
            source_type, target_type: of entities that are made; None follows from the relation.
            valid_from: since when it holds; None is from now on, or unknown where it has ended by now.
            valid_to: up to when; None is open. Of a month or words the beginning is meant, as for `add_episode`.
            reason: why, for `history`.

        Raises:
            UsageError: source and target are one, it ends before it begins, or a value is out of its range.
        """
        now, kinds = self._runtime.now(), self._runtime.kinds
        type_ = kinds.relation("relation_type", relation_type)
        ends = [redact(checked(name, value)).text for name, value in (("source", source), ("target", target))]
        if normal(ends[0]) == normal(ends[1]):
            raise itself(ends[0])
        types = (("source_type", source_type), ("target_type", target_type))
        of_source, of_target = ("" if value is None else kinds.entity(name, value) for name, value in types)
        begins, stops = _beginning("valid_from", valid_from, now), _beginning("valid_to", valid_to, now)
        if begins is not None and stops is not None and stops <= begins:
            raise UsageError(
                f"valid_to {valid_to!r} is not after valid_from {valid_from!r}",
                remedy="give the later",
                parameters=("valid_to", "valid_from"),
            )
        given = Assertion(
            "",
            ends[0],
            ends[1],
            "said",
            "" if fact is None else _redacted("fact", fact).strip(),
            now,
            now,
            valid_from=begins,
            valid_to=stops,
            trust=validate.TRUST["agent"],
            group=validate.short_text("group_id", group_id),
            reason=_redacted("reason", reason),
            type=type_,
        )
        with self._writing() as service:
            added = service.add_fact(given, (of_source, of_target))
        return self._sent(added)

    def delete_episode(self, uuid: str) -> views.Deletion:
        """Delete an episode with the facts, entities and names that only it supports.

        What other episodes say stays; facts that had ended, or were disputed, only because of it, hold again.
        """
        with self._writing(uuid) as service:
            gone = service.delete_episode(uuid)
        if self._backend is None:
            return gone
        delivery = self._backend.deliver()
        return replace(gone, degraded=bool(delivery.waiting), notices=_notices(delivery))

    def merge(self, keep: str, other: str, *, reason: str = "") -> views.Merging:
        """Merge one entity into another; `split` undoes it.

        Args:
            keep, other: ids or names.

        Raises:
            UsageError: both are one.
        """
        why = _redacted("reason", reason)
        with self._writing(keep, other) as service:
            return service.merge(keep, other, why)

    def split(self, entity: str, *, names: Sequence[str] = (), reason: str = "") -> views.Splitting:
        """Undo merges of an entity, or split off some of its names.

        Args:
            entity: its id or one of its names.
            names: of those that were merged into it and are to be themselves again, exactly as they were; an empty list
                is all of them. Names that were never another's make a new entity, with the mentions and facts of the
                episodes that used only these.

        Raises:
            UsageError: nothing was merged into it and no names are given, or it has not these names, or no others.
        """
        chosen = validate.labels("names", names)
        why = _redacted("reason", reason)
        with self._writing(entity) as service:
            return service.split(entity, chosen, why)

    def settle(self, relation_uuid: str, *, reason: str = "", verdict: str = "right") -> views.Settlement:
        """Resolve a dispute in favour of this fact.

        Others end where this one began; those that did not begin before it are retracted.

        Args:
            verdict: "right"; "both" where all facts of its dispute hold beside each other; "ended" where it has ended
                as was said, and not believed.

        Raises:
            UsageError: it is not disputed.
        """
        why = _redacted("reason", reason)
        with self._writing(relation_uuid) as service:
            return service.settle(relation_uuid, why, validate.one_of("verdict", verdict, VERDICTS))

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
            num_results: how many at most, 1–200.
            group_ids: only entities of these groups.
            entity_types: only entities of these types.
            as_of: as the graph was known at that time; an ISO 8601 text, a datetime, seconds, or words.
            valid_at: by the facts that were true in the world at that time; what is found by its name is found always.
            center_node_uuid: the id or name of an entity; what is near to it comes first.
        """
        limit, asked = validate.int_in("num_results", num_results, 1, MAX_RESULTS), _query(query)
        kind = self._runtime.kinds.entity
        types = [kind("entity_types", each) for each in validate.labels("entity_types", entity_types or ())]
        wanted = self._wanted(as_of, valid_at, groups=group_ids or (), types=types)
        return self._around(center_node_uuid, wanted).search_entities(asked, limit)

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
        """Find facts, best first: those that hold now, or at the given time.

        Args:
            num_results: how many at most, 1–200.
            group_ids: only facts of these groups.
            relation_types: only facts of these types.
            as_of: as the graph was known at that time.
            valid_at: what was true in the world at that time, as it is known now, or was known at `as_of`.
            include_past: also facts that have ended or were retracted.
            center_node_uuid: the id or name of an entity; what is near to it comes first.
        """
        limit, asked = validate.int_in("num_results", num_results, 1, MAX_RESULTS), _query(query)
        kind = self._runtime.kinds.relation
        types = [kind("relation_types", each) for each in validate.labels("relation_types", relation_types or ())]
        wanted = self._wanted(as_of, valid_at, include_past, group_ids or (), types)
        return self._around(center_node_uuid, wanted).search_relations(asked, limit)

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

        Facts carry the time in which they hold, and `disputed` where they are. Those that answer the query come first,
        then the nearest.

        Args:
            entity_names: names or ids; those that no entity has are told in `missing`.
            max_facts: 1–1,000.
            center_node_uuid: the id or name of one more entity.
            query: what it is for, in words.
            max_tokens: 64–1,000,000, counted by the default embedder's vocabulary; None is 2,500.
            as_of, valid_at: as for `search_edges`.
        """
        names = validate.labels("entity_names", entity_names)
        budget = validate.int_in(
            "max_tokens", DEFAULT_TOKENS if max_tokens is None else max_tokens, MIN_TOKENS, MAX_TOKENS
        )
        validate.text("query", query)
        if not names and center_node_uuid is None and not query.strip():
            raise UsageError("nothing is asked for", remedy="name entities, a centre or a query")
        validate.int_in("max_facts", max_facts, 1, MAX_FACTS)
        reader, count = self._around(center_node_uuid, self._wanted(as_of, valid_at)), self._runtime.tokens.count_tokens
        return reader.context(names, query, max_facts=max_facts, max_tokens=budget, count=count)

    def entity(self, name: str, *, as_of: Moment | None = None) -> views.EntityView:
        """Return an entity by id or name."""
        with self._reading(name, as_of=as_of) as reader:
            return reader.entity(name)

    def relation(self, uuid: str, *, as_of: Moment | None = None) -> views.RelationView:
        """Return a fact by id."""
        with self._reading(uuid, as_of=as_of) as reader:
            return reader.relation(uuid)

    def episode(self, uuid: str) -> views.EpisodeView:
        """Return an episode by id."""
        with self._reading(uuid) as reader:
            return reader.episode(uuid)

    def facts_of_memory(self, id: str) -> list[views.RelationView]:  # noqa: A002 - the name of the field
        """Return the facts found in a memory, in any version, in the order of the text."""
        with self._reading(id) as reader:
            return reader.facts_of_memory(id)

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
            entity: its id or one of its names.
            depth: how many facts away, 1–4.
            limit: how many entities at most, 1–500. Of a hub the newest 100 facts are followed.
            as_of, valid_at, include_past: as for `search_edges`.
        """
        validate.int_in("depth", depth, 1, MAX_DEPTH)
        validate.int_in("limit", limit, 1, MAX_NEIGHBOURS)
        with self._reading(entity, as_of=as_of, valid_at=valid_at, include_past=include_past) as reader:
            return reader.neighbourhood(entity, depth, limit)

    def path(
        self,
        source: str,
        target: str,
        *,
        max_depth: int = 6,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
    ) -> views.GraphPath:
        """Return a shortest path of facts between two entities, in either direction; empty if there is none.

        Args:
            source, target: ids or names.
            max_depth: how many facts it may have, 1–12.
            as_of, valid_at: as for `search_edges`.
        """
        validate.int_in("max_depth", max_depth, 1, MAX_PATH)
        with self._reading(source, target, as_of=as_of, valid_at=valid_at) as reader:
            return reader.path(source, target, max_depth)

    def timeline(self, entity: str, *, limit: int = 1_000, as_of: Moment | None = None) -> views.Timeline:
        """Return what began and ended for an entity, oldest first, past facts included."""
        validate.int_in("limit", limit, 1, MAX_LISTED)
        with self._reading(entity, as_of=as_of, include_past=True) as reader:
            return reader.timeline(entity, limit)

    def history(self, uuid: str) -> views.History:
        """Return what happened to an entity or fact: when it came, ended, was disputed, and why."""
        with self._reading(uuid) as reader:
            return reader.history(uuid)

    def episodes(
        self, limit: int = 50, group_ids: Sequence[str] | None = None, *, as_of: Moment | None = None
    ) -> list[views.EpisodeView]:
        """Return episodes, newest first by reference time."""
        validate.int_in("limit", limit, 1, MAX_LISTED)
        with self._reading(as_of=as_of, groups=group_ids or ()) as reader:
            return list(reader.episodes(limit))

    def communities(self, limit: int = 20, *, as_of: Moment | None = None) -> list[views.Community]:
        """Return groups of closely related entities, largest first."""
        validate.int_in("limit", limit, 1, MAX_FACTS)
        with self._reading(as_of=as_of) as reader:
            return list(reader.communities(limit))

    def disputes(self) -> list[views.Dispute]:
        """Return facts that contradict each other, oldest dispute first."""
        with self._reading() as reader:
            return list(reader.disputes())

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
        """Draw what lies about an entity.

        Args:
            entity: its id or one of its names.
            depth, limit: as for `neighbourhood`; an SVG has at most 40 entities.
            form: "svg", "graphml", "dot" or "mermaid".
            as_of, valid_at: as for `search_edges`.
            include_past: also facts that have ended, drawn as such.
        """
        from commonplace.graph.drawing import DRAWINGS, draw

        validate.one_of("form", form, tuple(DRAWINGS))
        wanted = self._wanted(as_of, valid_at)
        found = self.neighbourhood(entity, depth, limit, as_of=as_of, valid_at=valid_at, include_past=include_past)
        asked = wanted.as_of if wanted.valid_at is None else wanted.valid_at
        at = None if asked is None else moment_of(asked)
        text = draw(found, form, seen_at=at or moment_of(wanted.now), as_of=at)
        name = next((each.name for each in found.entities if each.uuid == found.centre), "")
        return views.Drawing(name, form, len(found.entities), len(found.relations), found.is_capped, text)

    def export_graphiti(self, target: str | Path | TextIO) -> Migration:
        """Write the graph of this namespace, past facts included, as Graphiti's nodes and edges.

        Graphiti has no field for other names, trust, disputes, merges, history: `commonplace export` brings over all.

        Args:
            target: a file that does not exist yet and is there only when it is complete, or a stream of text.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.export import new_file
        from commonplace.graph.graphiti.document import write_graphiti

        path = None if callable(getattr(target, "write", None)) else validate.path_value("target", target)
        wanted = self._wanted()
        self._before()
        with self._store.snapshot():
            graph = self._runtime.graph_runtime(False).graph
            if path is None:
                assert not isinstance(target, str | Path)
                written = target.write
                return write_graphiti(graph, wanted, self._words_of, lambda some: written(some.decode()))
            path = path.expanduser().absolute()
            with new_file(path, self._runtime.directory) as write:
                return replace(write_graphiti(graph, wanted, self._words_of, write), path=path)

    def import_graphiti(self, path: str | Path, *, dry_run: bool = False) -> Migration:
        """Import a document of Graphiti's nodes and edges in one transaction; ids are kept.

        What is here already under the same id stays as it is; a second import changes nothing. Types are kept as they
        are called there, also those that no setting names. Secrets are replaced by placeholders.

        Args:
            dry_run: check everything and count, but write nothing.

        Raises:
            ConfigError: a value is missing or wrong; the message and `path` say where. Nothing was written.
        """
        from commonplace.graph.graphiti.document import import_document, read_graphiti

        is_dry = validate.boolean("dry_run", dry_run)
        document = read_graphiti(validate.path_value("path", path), self._runtime.now())
        self._before()
        done = import_document(self._runtime.graph_runtime(not is_dry), document, is_dry_run=is_dry)
        if not is_dry:
            self._after()
        return done

    def sync(self) -> Delivery:
        """Send queued episodes to the external backend (setting graph.backend)."""
        if self._backend is None:
            return Delivery("local")
        self._runtime.before()
        return self._backend.deliver(is_asked=True)

    def close(self) -> None:
        """Disconnect from an external backend."""
        if self._backend is not None:
            self._backend.close()

    def _before(self) -> None:
        self._runtime.before()
        if self._backend is not None and not self._store.is_read_only:  # what was sent is noted in the store
            self._backend.deliver()

    def _after(self) -> None:
        """Embed what was said at once, for it is asked for next, unless more waits."""
        self._runtime.backlog.catch_up()
        self._runtime.after()

    def _sent(self, added: views.Addition) -> views.Addition:
        """Tell Graphiti of what was added here, if it is the backend; what cannot be sent waits in a queue."""
        if self._backend is None:
            return added
        own = () if added.outcome == "unchanged" else (_ITS_OWN,)
        return replace(added, degraded=True, notices=(*added.notices, *own, *_notices(self._backend.deliver())))

    @contextmanager
    def _reading(self, *ids: str, **asked: Any) -> Iterator[GraphReader]:
        """Give what reads from one state of the store, with what happens before a call; `asked`: see `_wanted`."""
        for each in ids:
            validate.reject_invalid_id(each)
        wanted = self._wanted(**asked)
        self._before()
        with self._store.snapshot():
            yield self._reader(wanted)

    @contextmanager
    def _writing(self, *ids: str) -> Iterator[GraphService]:
        for each in ids:
            validate.reject_invalid_id(each)
        self._before()
        yield self._service
        self._after()

    @made_once
    def _scores(self) -> Callable[[str, Sequence[str]], Iterable[float]]:
        from commonplace.models.static_reranking import StaticReranker

        return StaticReranker(self._runtime.tokens).scores

    def _reader(self, wanted: views.Wanted) -> GraphReader:
        runtime = self._runtime.graph_runtime(False)
        given = runtime, self._search_graph, self._words_of, wanted, self._newer
        if self._backend is None:
            return GraphReader(*given)
        from commonplace.graph.graphiti.query import GraphitiReader

        return GraphitiReader(*given, self._backend, self._scores)

    def _newer(self, ids: Sequence[str]) -> dict[str, StoredMemory]:
        """Return the newest live memory that may have replaced each of these, by a link that searches follow."""
        store, namespace = self._store, self._runtime.namespace

        def live(some: Iterable[str]) -> list[StoredMemory]:
            chosen = Selection(ids=tuple(some), statuses=("active", "promoted"))
            return store.memories(namespace, chosen) if chosen.ids else []

        known = store.statements(namespace, [each.number for each in live(ids)])
        linked = {each.id: each.overtaken_by | each.judged for each in known.values()}
        newest_first = live(set().union(*linked.values()))
        found = {id_: [each for each in newest_first if each.owner.id in some] for id_, some in linked.items()}
        return {id_: some[0] for id_, some in found.items() if some}

    def _wanted(
        self,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
        groups: Sequence[str] = (),
        types: Sequence[str] = (),
    ) -> views.Wanted:
        now = self._runtime.now()
        return views.Wanted(
            now,
            None if as_of is None else moment_in_words("as_of", as_of, now),
            None if valid_at is None else moment_in_words("valid_at", valid_at, now),
            validate.boolean("include_past", include_past),
            validate.texts("group_ids", groups),
            tuple(types),
        )

    def _around(self, centre: str | None, wanted: views.Wanted) -> GraphReader:
        """Return what searches near an entity, by its id or name; what happens before a call has happened then."""
        self._before()
        if not centre:
            return self._reader(wanted)
        validate.reject_invalid_id(centre)
        try:
            id_ = self._reader(self._wanted()).entity(centre).uuid
        except NotFoundError:
            if self._backend is None:
                raise
            from commonplace.graph.graphiti.query import is_id

            if not is_id(centre):
                raise
            id_ = centre  # Graphiti's own, which its searches take; none of its tools would find it
        return self._reader(replace(wanted, centre=id_))

    @property
    def _service(self) -> GraphService:
        outbox = None if self._backend is None else self._backend.outbox
        return GraphService(self._runtime.graph_runtime(True), outbox)

    def _search_graph(self, namespace: str, query: str, limit: int) -> TextHits:
        """Find texts of the graph, with the score of each by itself.

        What a graph holds is short and often alike: no text of it may be less likely because another is as near. So
        each has its own score, which is never below what follows it.
        """
        request = Request(
            query=query,
            namespace=namespace,
            limit=limit,
            method="two-stage",
            wanted=Filter(),
            min_score=0.0,
            stage1_limit=max(limit, self._runtime.settings.search.stage1_limit),
        )
        found = self._runtime.search(request)
        coverage, words, dense = (
            np.array([hit.signals[name] for hit in found.hits], np.float32) for name in (COVERAGE, WORDS, DENSE)
        )
        embedder = self._runtime.embedder.stamp.of("entity").name if dense.any() else ""
        alone = text_scores(embedder, coverage, words, dense, found.trace.passages)
        lifted = np.maximum.accumulate(alone[::-1])[::-1].tolist()
        scores = {hit.owner_id: score for hit, score in zip(found.hits, lifted, strict=True) if score >= _LEAST_SCORE}
        worded = frozenset(hit.owner_id for hit in found.hits if hit.signals.get(LEXICAL, 0.0) > 0.0)
        return TextHits(scores, found.degraded, found.notices, worded)

    def _words_of(self, memory: str, version: int) -> str:
        if not memory:
            return ""
        found = self._store.versions(self._runtime.namespace, memory)
        return next((each.record.content for each in found if each.record.version == version), "")


def _query(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise UsageError("the query is empty", remedy="say in a few words what you look for")
    return given


def leave_graphiti(store: Store, settings: GraphSettings, namespace: str, known: Set[str], is_rehearsal: bool) -> Left:
    """Take a namespace of the store, with what has these ids, away from Graphiti, or only say that it would be."""
    from commonplace.graph.graphiti import backend
    from commonplace.graph.graphiti.client import group_of

    outbox = Outbox(store, namespace, time.time)
    groups = {group_of(namespace, label, settings.group): label for label in ("", *outbox.labels())}
    if is_rehearsal:
        where = backend.named_groups(groups)
        return backend.Left(outside=(f"data of this namespace sent to Graphiti, in {where}: deletion is queued",))
    try:
        session = backend.session_of(settings, os.environ, time.monotonic, namespace)
    except UsageError as error:
        return backend.Left(outside=(backend.unreached(groups, str(error)),))
    unsent = {each.id for each in outbox.errands() if each.what != "delete" and each.sent_at is None}
    with closing(session) as tools:
        return backend.leave(tools, store.graph(namespace), groups, known - unsent)


def _notices(delivery: Delivery) -> tuple[str, ...]:
    if not delivery.waiting:
        return delivery.notices
    return (*delivery.notices, f"{waiting_for(delivery.waiting)}; `commonplace graph sync` sends everything")


def _redacted(name: str, given: str) -> str:
    return redact(validate.short_text(name, given)).text


def _beginning(name: str, given: Moment | None, now: float) -> float | None:
    return None if given is None else moment_in_words(name, given, now, is_start=True)


def _content(given: object, max_bytes: int, *, is_json: bool) -> tuple[str, tuple[str, ...]]:
    notices, cleaner = list[str](), Cleaner()
    if is_json:
        try:
            value = json.loads(given) if isinstance(given, str) else given
            written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the content is not JSON: {error}", remedy="give JSON, or keep it as text") from error
        validate.reject_invalid(written, max_bytes=max_bytes)
        text = json.dumps(cleaner.value(json.loads(written)), ensure_ascii=False)
    else:
        validate.reject_invalid(given, max_bytes=max_bytes)
        assert isinstance(given, str)
        written = storable(given)
        if written != given:
            notices.append(MENDED)
        opened = unfence(written)
        if opened.recalled:
            if not opened.text.strip():
                raise AdmissionError("the content is nothing but what was recalled", remedy="say what is new")
            notices.append(f"what was recalled from memory was skipped: {len(opened.recalled)}")
        text = cleaner.text(opened.text)
    if kinds := cleaner.taken():
        notices.append(f"what looks like a secret was replaced: {', '.join(dict.fromkeys(kinds))}")
    return text, tuple(notices)
