"""`engine.graph`: the temporal knowledge graph of a namespace. It parses and passes on; the rules are in `graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from commonplace.engine.finding import Finding
from commonplace.engine.graph_asking import Surroundings
from commonplace.engine.graph_giving import checked_episode, checked_fact
from commonplace.engine.graph_migrating import GraphMigrating
from commonplace.engine.graph_showing import GraphShowing
from commonplace.memories.intake import labels, refuse_unfit_id, short_text
from commonplace.memories.times import Moment
from commonplace.redaction import redact
from commonplace.search.request import Request
from commonplace.types import Filter

if TYPE_CHECKING:
    from commonplace.graph.finding import TextHits
    from commonplace.graph.keeping import GraphKeeper
    from commonplace.graph.kinds import Kinds
    from commonplace.graph.views import Addition, Deletion, Merging, Settlement, Splitting
    from commonplace.search.result import SearchResult

_LEAST_SCORE: Final = 0.3
"""What is found with less has nothing to do with the question; texts of the graph are short, so few reach much."""


class Graph(GraphShowing, GraphMigrating):
    """Episodes, entities and facts through time. Made by an engine; safe to call from several threads."""

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
    ) -> Addition:
        """Keep what was said or happened, and take the entities and facts from it; durable when it returns.

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
            UsageError: a value is of the wrong kind, empty, too large or out of its range. Nothing was stored.
        """
        from commonplace.graph.ground import made_id
        from commonplace.graph.model_reading import Said, read
        from commonplace.types.graph import Episode

        now = self._around.now()
        given = checked_episode(
            content,
            now,
            self._around.max_bytes,
            name=name,
            source_description=source_description,
            reference_time=reference_time,
            source=source,
            group_id=group_id,
            origin=origin,
            trust=trust,
            uuid=uuid,
            speaker=speaker,
        )
        self._around.before()
        known = self._around.ground(False).graph.episodes([given.uuid]).get(given.uuid) if given.uuid else None
        told = given.reference_time
        if told is None:
            # The same episode given again without a time is the same episode.
            told = known.reference_time if known is not None and known.content == given.content else now
        episode = Episode(
            id=given.uuid or made_id(),
            content=given.content,
            reference_time=told,
            created_at=now,
            name=given.name,
            source=given.source,
            source_description=given.source_description,
            origin=given.origin,
            trust=given.trust,
            group=given.group,
        )
        is_known = known is not None and replace(known, created_at=now) == episode
        said = Said(episode.content, episode.source, told, given.speaker)
        understood = read(said, self._kinds, None if is_known else self._around.open_reader)
        added = self._keeper.add_episode(episode, understood, notices=given.notices)
        self._around.after()
        return added

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
    ) -> Addition:
        """Keep a fact that is given as such; it may end or dispute others, as one that an episode says may.

        Args:
            source, target: names, or ids of entities; a name that is not known makes an entity.
            relation_type: one of the types that there are, or of the setting graph.relation_types.
            fact: a sentence that says it; None makes one of the names.
            source_type, target_type: of entities that are made; None follows from the relation.
            valid_from: since when it holds; None is from now on, or unknown where it has ended by now.
            valid_to: up to when; None is open. Of a month or words the beginning is meant, as for `add_episode`.
            reason: why, for `history`.

        Raises:
            NotFoundError: an id is not there.
            UsageError: source and target are one, it ends before it begins, or a value is out of its range.
        """
        now = self._around.now()
        given = checked_fact(
            source,
            relation_type,
            target,
            now,
            self._kinds,
            fact=fact,
            source_type=source_type,
            target_type=target_type,
            valid_from=valid_from,
            valid_to=valid_to,
            group_id=group_id,
            reason=reason,
        )
        self._around.before()
        added = self._keeper.add_fact(given, self._around.now())
        self._around.after()
        return added

    def delete_episode(self, uuid: str) -> Deletion:
        """Delete an episode with what only it supported: facts, entities, names.

        What other episodes say stays; facts that had ended, or were disputed, only because of it, hold again.

        Raises:
            NotFoundError: there is none of that id.
        """
        refuse_unfit_id(uuid)
        self._around.before()
        gone = self._keeper.delete_episode(uuid)
        self._around.after()
        return gone

    def merge(self, keep: str, other: str, *, reason: str = "") -> Merging:
        """Make two entities one: the other's names and facts are the first one's from now on; `split` undoes it.

        Args:
            keep, other: ids or names.

        Raises:
            NotFoundError: there is no such entity, or the name may mean several.
            UsageError: both are one.
        """
        refuse_unfit_id(keep)
        refuse_unfit_id(other)
        told = redact(short_text("reason", reason)).text
        self._around.before()
        merged = self._keeper.merge(keep, other, told)
        self._around.after()
        return merged

    def split(self, entity: str, *, names: Sequence[str] = (), reason: str = "") -> Splitting:
        """Make an entity several again.

        Args:
            entity: its id or one of its names.
            names: of those that were merged into it and are to be themselves again, exactly as they were; an empty list
                is all of them. Names that were never another's make a new entity, with the mentions and facts of the
                episodes that used only these.

        Raises:
            NotFoundError: there is no such entity.
            UsageError: nothing was merged into it and no names are given, or it has not these names, or no others.
        """
        refuse_unfit_id(entity)
        chosen = labels("names", names)
        told = redact(short_text("reason", reason)).text
        self._around.before()
        parted = self._keeper.split(entity, chosen, told)
        self._around.after()
        return parted

    def settle(self, relation_uuid: str, *, reason: str = "") -> Settlement:
        """Say that this one of the facts that dispute each other is right; a dispute's own uuid lists them.

        Others end where this one began; those that did not begin before it are retracted.

        Raises:
            NotFoundError: there is no such fact.
            UsageError: it is not disputed, or is a dispute about several facts, which the error names.
        """
        refuse_unfit_id(relation_uuid)
        told = redact(short_text("reason", reason)).text
        self._around.before()
        settled = self._keeper.settle(relation_uuid, told)
        self._around.after()
        return settled

    @property
    def _keeper(self) -> GraphKeeper:
        from commonplace.graph.keeping import GraphKeeper

        return GraphKeeper(self._around.ground(True))

    @cached_property
    def _kinds(self) -> Kinds:
        return self._around.ground(False).kinds


class Graphing(Finding):
    """The part of `Engine` that has the graph."""

    @cached_property
    def graph(self) -> Graph:
        """The temporal knowledge graph of this namespace.

        Raises:
            UsageError: the settings name Graphiti as its backend, but no server.
        """
        reader = self.settings.graph.extractor
        around = Surroundings(
            before=self._before,
            after=self._after_graph,
            now=self._now,
            ground=self._graph_ground,
            search=self._search_graph,
            snapshot=self._store.snapshot,
            count_tokens=self._tokens.count_tokens,
            words_of=self._words_of,
            max_bytes=self.settings.memory.max_bytes,
            directory=self.directory,
            open_reader=None if reader == "rules" else lambda: self._models.generator(reader),
        )
        chosen = self.settings.graph
        if chosen.backend == "local":
            return Graph(around)
        from commonplace.engine.graphiti import GraphitiGraph, backend_of

        backend = backend_of(self._store, self.directory, self.namespace, chosen, around)
        return GraphitiGraph(around, backend, self._tokens)

    def close(self) -> None:
        """Give back what the graph holds, then everything else; calling twice is harmless."""
        made: Graph | None = self.__dict__.get("graph")
        if made is not None:
            made.close()
        super().close()

    def _after_graph(self) -> None:
        """Embed what was said at once, for it is asked for next, unless more waits."""
        self._backlog.catch_up()
        self._after()

    def _search_graph(self, namespace: str, query: str, limit: int) -> TextHits:
        from commonplace.graph.finding import TextHits
        from commonplace.search.candidates import LEXICAL

        request = Request(
            query=query,
            namespace=namespace,
            limit=limit,
            method="two-stage",
            wanted=Filter(),
            min_score=0.0,
            stage1_limit=max(limit, self.settings.search.stage1_limit),
        )
        found = self._search_store(request)
        worded = frozenset(hit.owner_id for hit in found.hits if hit.signals.get(LEXICAL, 0.0) > 0.0)
        scores = _judged_alone(found, self._embedder.stamp.of("entity").name)
        told = {id_: score for id_, score in scores.items() if score >= _LEAST_SCORE}
        return TextHits(told, found.degraded, found.notices, worded)

    def _words_of(self, memory: str, version: int) -> str:
        if not memory:
            return ""
        found = self._store.versions(self.namespace, memory)
        return next((each.record.content for each in found if each.record.version == version), "")


def _judged_alone(found: SearchResult, embedder: str) -> dict[str, float]:
    """Return the score of each text by itself, never below what follows, by the ids of their owners.

    What a graph holds is short and often alike: no text of it may be less likely for that another is as near.
    """
    import numpy as np

    from commonplace.ranking.calibration import text_scale_of
    from commonplace.search.candidates import COVERAGE, DENSE, WORDS

    coverage, words, dense = (
        np.array([hit.signals[name] for hit in found.hits], np.float32) for name in (COVERAGE, WORDS, DENSE)
    )
    scores = text_scale_of(embedder if dense.any() else "")(coverage, words, dense, found.trace.passages)
    lifted = np.maximum.accumulate(scores[::-1])[::-1].tolist()
    return {hit.owner_id: score for hit, score in zip(found.hits, lifted, strict=True)}
