"""Replace secrets in stored records: memories, episodes, facts, knowledge and issues.

A secret recognised in one place is replaced everywhere. That holds only for random-looking values, since a short
password may be an ordinary word.

In a redacted episode the offsets of mentions and facts are shifted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from commonplace.erasure.scan import Collector, Needles
from commonplace.graph.names import KEY
from commonplace.graph.redact import GraphCleaner, Moves
from commonplace.graph.runtime import Texts
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import NoVectors
from commonplace.knowledge.maps import digest_of
from commonplace.ledger.erase import cleaned, rewrite
from commonplace.logs import query_hash
from commonplace.redaction import Secret, find_secrets, with_placeholders
from commonplace.redaction.patterns import is_disordered
from commonplace.store.contract import Store
from commonplace.types import Chunk
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Subject
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection

if TYPE_CHECKING:
    from commonplace.store.graph_contract import GraphChange, GraphReading, LedgerReading


class Known:
    """Secrets that were found somewhere, to be found again where nothing else tells them.

    Args:
        kinds: the kind of each.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        telling = {value: kind for value, kind in kinds.items() if is_disordered(value)}
        self._needles = Needles({value.encode("utf-8", "surrogatepass"): kind for value, kind in telling.items()})

    def find(self, text: str) -> Iterator[Secret]:
        """Yield where they stand, in no order, some perhaps in others; a part of a longer word is none of them."""
        if not len(self._needles):
            return
        data = text.encode("utf-8", "surrogatepass")
        for offset, needle in self._needles.places(data):
            start = len(data[:offset].decode("utf-8", "surrogatepass"))
            end = start + len(needle.decode("utf-8", "surrogatepass"))
            if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
                yield Secret(self._needles.kind(needle), start, end)


NOTHING = Known({})


@dataclass(slots=True)
class Cleaner:
    """Cleans texts, and remembers which secrets they had.

    Attributes:
        known: secrets that were found elsewhere.
        kept: secrets that stay, for they are a part of something's name.
        kinds: the kind of each secret that was found.
        parts: what single texts had of a secret that goes from one to the next.
    """

    known: Known = NOTHING
    kept: frozenset[str] = frozenset()
    kinds: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)

    def counts(self) -> dict[str, int]:
        """Return how many different secrets of each kind were found, sorted by kind."""
        return dict(sorted(Counter(self.kinds.values()).items()))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        while secrets := self._find(text):
            text = with_placeholders(text, secrets)
        return text

    def find(self, text: str) -> list[Secret]:
        """Return the secrets in a text, in order, none overlapping another."""
        return self._find(text)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return tags and the like without secrets, each once."""
        return tuple(dict.fromkeys(map(self.text, texts)))

    def passages(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the passages of one text without secrets, also without one that goes from a passage to the next."""
        cleaned = list(chunks)
        while True:
            before = cleaned
            cleaned = [replace(chunk, text=text) for chunk, text in zip(before, self._across(before), strict=True)]
            cleaned = [replace(each, text=self.text(each.text), heading=self.text(each.heading)) for each in cleaned]
            if cleaned == before:
                return cleaned

    def value(self, value: Any, name: str = "") -> Any:
        """Return what JSON holds without secrets, keys included, of which two never become one.

        Args:
            name: the key that it stands under, which may tell that it is a secret.
        """
        if isinstance(value, str):
            return self._named(name, self.text(value))
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if not isinstance(value, dict):
            return value
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            clean = self.text(key)
            names = chain((clean,), (f"{clean} {number}" for number in count(2)))
            free = key if clean == key else next(each for each in names if each not in value and each not in cleaned)
            cleaned[free] = self.value(inner, key)
        return cleaned

    def _find(self, text: str, begin: int = 0) -> list[Secret]:
        """Return the secrets from a character on, in order, none overlapping another; and remember them."""
        found: list[Secret] = []
        if not text:
            return found
        for secret in sorted([*find_secrets(text), *self.known.find(text)], key=lambda each: (each.start, -each.end)):
            is_apart = secret.start >= (found[-1].end if found else begin)
            if is_apart and text[secret.start : secret.end] not in self.kept:
                found.append(secret)
        for secret in found:
            self.kinds.setdefault(text[secret.start : secret.end], secret.kind)
        return found

    def _named(self, name: str, text: str) -> str:
        before = f"{name}: " if name else ""
        while before and (secrets := self._find(before + text, len(before))):
            text = with_placeholders(before + text, secrets)[len(before) :]
        return text

    def _across(self, chunks: Sequence[Chunk]) -> list[str]:
        texts = [chunk.text for chunk in chunks]
        whole, spans = _laid_out(chunks)
        secrets = self._find(whole)
        if not secrets:
            return texts
        for at, (begin, end) in enumerate(spans):
            inside = [
                Secret(secret.kind, max(secret.start, begin) - begin, min(secret.end, end) - begin)
                for secret in secrets
                if secret.start < end and secret.end > begin
            ]
            self.parts.update(texts[at][secret.start : secret.end] for secret in inside)
            texts[at] = with_placeholders(texts[at], inside)
        return texts


def needles_of(found: Iterable[str]) -> Needles:
    """Return what betrays secrets, or parts of them, in a file; those under eight bytes cannot be looked for."""
    collector = Collector()
    for secret in found:
        # Line by line: a page may have indented them. What frames a private key is no secret.
        lines = [line.strip() for line in secret.splitlines()]
        for line in [line for line in lines if is_disordered(line)] if len(lines) > 1 else lines:
            collector.add_content(line)
        collector.add_digest(query_hash(secret))
    return collector.needles()


def _is_word(character: str) -> bool:
    return character.isalnum()


def _laid_out(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text that chunks were cut from, blank lines left out, and where each of them stands in it."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for last, chunk in zip((None, *chunks), chunks, strict=False):
        shared = 0
        if last is not None and chunk.start_line > last.end_line:
            pieces.append("\n")
            end += 1
        elif last is not None:
            shared = _shared(last.text, chunk.text)
        pieces.append(chunk.text[shared:])
        begin, end = end - shared, end - shared + len(chunk.text)
        spans.append((begin, end))
    return "".join(pieces), spans


def _shared(before: str, after: str) -> int:
    """Return how many characters a text has at its end that the next one begins with."""
    first = after[:1]
    for start in range(max(0, len(before) - len(after)), len(before)):
        if before[start] == first and after.startswith(before[start:]):
            return len(before) - start
    return 0


_EVER: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a graph that was looked at: an episode, an entity or a relation.

    Attributes:
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    kind: str
    id: str
    cleaner: Cleaner
    mend: Callable[[], None]


class GraphSecrets:
    """The graph of one namespace.

    Args:
        destination: what makes the texts of entities and facts; asked for when something is written anew.
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, destination: Callable[[], Destination], known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._destination = destination
        self._known = known

    def parts(self) -> Iterator[Part]:
        """Yield every episode, entity and fact, with the secrets that it holds; nothing is written."""
        graph = self._store.graph(self._namespace)
        for episode in graph.list_episodes(_EVER):
            cleaner, clean = self._cleaners()
            clean.episode(episode)
            yield Part("episode", episode.id, cleaner, partial(self._mend_episode, episode.id))
        for entity in graph.list_entities(_EVER):
            cleaner, clean = self._cleaners()
            _cleaned_entity(graph, entity, clean)
            yield Part("entity", entity.id, cleaner, partial(self._mend_entity, entity.id))
        for relation in graph.list_relations(_EVER):
            cleaner, clean = self._cleaners()
            clean.relation(relation)
            clean.happenings(graph.happenings("relation", relation.id))
            yield Part("relation", relation.id, cleaner, partial(self._mend_relation, relation.id))

    def _cleaners(self) -> tuple[Cleaner, GraphCleaner]:
        cleaner = Cleaner(self._known)
        return cleaner, GraphCleaner(cleaner.text, cleaner.value, cleaner.find)

    def _mend_episode(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            for episode in change.graph.episodes([id_]).values():
                cleaned = clean.episode(episode)
                if cleaned != episode:
                    change.graph.put_episode(cleaned)
                move_places(change.graph, episode, clean.moves.get(id_, Moves()))

    def _mend_entity(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            graph, texts = change.graph, self._texts()
            for entity in graph.entities([id_]).values():
                cleaned, aliases, mentions, happenings = _cleaned_entity(graph, entity, clean)
                for alias in graph.aliases([id_]).get(id_, ()):
                    graph.drop_alias(id_, alias.normal)
                for alias in aliases:
                    graph.put_alias(alias)
                graph.drop_mentions(graph.mentions("entity", [id_]).get(id_, []))
                graph.put_mentions(mentions)
                _put_happenings(graph, "entity", id_, happenings)
                names = [alias for alias in aliases if not alias.normal.startswith(KEY)]
                graph.put_entity(cleaned, () if cleaned.merged_into else texts.of_entity(cleaned, names))

    def _mend_relation(self, id_: str) -> None:
        _, clean = self._cleaners()
        with self._store.change_memories(self._namespace) as change:
            graph, texts = change.graph, self._texts()
            for relation in graph.relations([id_]).values():
                cleaned = clean.relation(relation)
                _put_happenings(graph, "relation", id_, clean.happenings(graph.happenings("relation", id_)))
                graph.put_relation(cleaned, texts.of_relation(cleaned))

    def _texts(self) -> Texts:
        """Return what makes texts; inside a transaction, where nobody else can change the store's embedder."""
        return Texts(replace(self._destination(), namespace=self._namespace))


def move_places(graph: GraphChange, episode: Episode, moves: Moves) -> None:
    """Let what a graph under change tells of places in an episode follow its words."""
    if not moves.steps:
        return
    move = GraphCleaner(lambda text: text, lambda value: value, lambda _: (), {episode.id: moves})
    mentions = graph.mentioned([episode.id]).get(episode.id, [])
    graph.drop_mentions(mentions)
    graph.put_mentions(move.mentions(mentions))
    facts = list(dict.fromkeys(mention.subject for mention in mentions if mention.kind == "relation"))
    for id_, relation in graph.relations(facts).items():
        graph.put_relation(move.relation(relation))
        _put_happenings(graph, "relation", id_, move.happenings(graph.happenings("relation", id_)))


def _cleaned_entity(
    graph: GraphReading, entity: Entity, clean: GraphCleaner
) -> tuple[Entity, tuple[Alias, ...], tuple[Mention, ...], tuple[Happening, ...]]:
    cleaned = clean.entity(entity)
    return (
        cleaned,
        clean.aliases(cleaned, graph.aliases([entity.id]).get(entity.id, ())),
        clean.mentions(graph.mentions("entity", [entity.id]).get(entity.id, ())),
        clean.happenings(graph.happenings("entity", entity.id)),
    )


def _put_happenings(graph: GraphChange, kind: Subject, id_: str, happenings: Sequence[Happening]) -> None:
    graph.erase_happenings(kind, id_)
    for each in happenings:
        graph.put_happening(each)


@dataclass(frozen=True, slots=True)
class KnowledgePart:
    """An item or a context that was looked at.

    Attributes:
        what: how people name it, the agent's name left out.
        names: of the agent, and of the item.
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    what: str
    agent: str
    names: tuple[str, ...]
    cleaner: Cleaner
    mend: Callable[[], None]


class KnowledgeSecrets:
    """The knowledge of one namespace.

    Args:
        destination: what makes passages; asked for when something is written anew.
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, destination: Callable[[], Destination], known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._destination = destination
        self._known = known

    def parts(self) -> Iterator[KnowledgePart]:
        """Yield every item, deleted ones too, and every context, with the secrets that it holds; nothing is written."""
        knowledge = self._store.knowledge(self._namespace)
        for item in (*knowledge.items(), *knowledge.items(deleted=True)):
            cleaner = Cleaner(self._known)
            _cleaned(item.record, cleaner)
            names = (item.record.agent, item.owner.id)
            mend = partial(self._mend_item, item.number)
            yield KnowledgePart("an item of knowledge", item.record.agent, names, cleaner, mend)
        for context in knowledge.contexts():
            cleaner = Cleaner(self._known)
            _cleaned_context(context, cleaner)
            mend = partial(self._mend_context, context.name)
            yield KnowledgePart("the context", context.name, (context.name,), cleaner, mend)

    def _mend_item(self, number: int) -> None:
        destination = replace(self._destination(), namespace=self._namespace)
        stamp = destination.embedder.stamp
        with self._store.change_memories(self._namespace, made_by=stamp) as change:
            item = change.knowledge.of_numbers([number]).get(number)
            cleaner = Cleaner(self._known)
            record = None if item is None else _cleaned(item.record, cleaner)
            if item is None or record is None or not cleaner.kinds:
                return
            if not record.embedder:
                destination = replace(destination, embedder=NoVectors(stamp))
            maker = PassageMaker(destination)
            (made,) = maker.complete([maker.prepare(item.owner, normalise(record.content), "text")])
            record = replace(record, embedder=str(stamp.of("knowledge")) if record.embedder else "", vector=b"")
            if item.deleted_at is not None:
                change.knowledge.erase([number])
            change.knowledge.put(
                KnowledgeWrite(item.owner, made.passages, record),
                created_at=item.created_at,
                updated_at=item.updated_at,
                deleted_at=item.deleted_at,
            )

    def _mend_context(self, name: str) -> None:
        with self._store.change_memories(self._namespace) as change:
            context = change.knowledge.context(name)
            if context is not None:
                change.knowledge.put_context(_cleaned_context(context, Cleaner(self._known)))


def _cleaned(record: KnowledgeRecord, cleaner: Cleaner) -> KnowledgeRecord:
    metadata = json.dumps(cleaner.value(json.loads(record.metadata)), sort_keys=True)
    content = cleaner.text(record.content)
    return replace(record, content=content, metadata=metadata, digest=digest_of(record.agent, metadata))


def _cleaned_context(context: ContextRecord, cleaner: Cleaner) -> ContextRecord:
    return replace(context, metadata=json.dumps(cleaner.value(json.loads(context.metadata)), sort_keys=True))


@dataclass(frozen=True, slots=True)
class IssuePart:
    """An issue that was looked at, with what was done on it.

    Attributes:
        names: what names it and others: ids, and who did something.
        cleaner: which secrets were found in it.
        mend: writes it anew without them.
    """

    id: str
    names: tuple[str, ...]
    cleaner: Cleaner
    mend: Callable[[], None]


class LedgerSecrets:
    """The ledger of one namespace.

    Args:
        known: secrets that were found before.
    """

    def __init__(self, store: Store, namespace: str, known: Known) -> None:
        self._store = store
        self._namespace = namespace
        self._known = known

    def parts(self) -> Iterator[IssuePart]:
        """Yield every issue with the secrets that it and its history hold; nothing is written."""
        ledger = self._store.ledger(self._namespace)
        issues = [issue.id for issue in ledger.issues(IssueSelection())]
        # Of an issue that another program keeps, only what was done on it stands here.
        for id_ in dict.fromkeys((*issues, *(event.issue for event in ledger.events()))):
            cleaner = Cleaner(self._known)
            issue, events = _cleaned_issue(ledger, id_, cleaner)
            named = () if issue is None else (*issue.memory_ids, issue.claimed_by)
            names = (id_, *named, *(event.actor for event in events))
            yield IssuePart(id_, names, cleaner, partial(self._mend, id_))

    def _mend(self, id_: str) -> None:
        with self._store.change_memories(self._namespace) as change:
            cleaner = Cleaner(self._known)
            issue, events = _cleaned_issue(change.ledger, id_, cleaner)
            if cleaner.kinds:
                rewrite(change.ledger, id_, issue, events)


def _cleaned_issue(ledger: LedgerReading, id_: str, cleaner: Cleaner) -> tuple[Issue | None, list[IssueEvent]]:
    events = [replace(event, why=cleaner.text(event.why)) for event in ledger.events(id_)]
    issue = ledger.issue(id_)
    if issue is None:
        return None, events
    clean = cleaned(issue, cleaner.text, cleaner.value)
    return replace(clean, labels=tuple(sorted(cleaner.texts(clean.labels)))), events
