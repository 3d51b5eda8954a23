"""Agent definitions and the prompts made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import UsageError
from commonplace.formats.yaml import parse_document, read_document
from commonplace.knowledge.maps import checked_name
from commonplace.knowledge.results import KnowledgeReport, RelevantKnowledge, Retrieval
from commonplace.models.contract import Message

if TYPE_CHECKING:
    from commonplace.knowledge.service import KnowledgeService

MAX_AGENT_BYTES: Final = 64 * 1024 * 1024
_WHAT: Final = "an agent's file"
_INSTRUCTIONS: Final = ("system", "prompt")


Given = str | Path | Mapping[str, Any]
"""A file's path, a text of YAML or JSON (it has several lines, or begins with a brace), or what such a text holds."""


def read_agent(given: Given) -> Mapping[str, Any]:
    """Return what an agent's file says: its `name`, and perhaps `knowledge`, checked; the rest as it is written.

    Raises:
        UsageError: it cannot be read, or a value is of the wrong kind.
    """
    document: object = given
    is_text = isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))
    if isinstance(given, str) and is_text:
        document = parse_document(given.encode("utf-8", "surrogatepass"), "the agent", MAX_AGENT_BYTES, _WHAT)
    elif isinstance(given, str | Path):
        document = read_document(Path(given), MAX_AGENT_BYTES, _WHAT)
    if not isinstance(document, Mapping):
        raise UsageError(f"the agent is {document!r:.80}", remedy="give a file, or a map with a `name`")
    checked_name(document.get("name"))
    knowledge = document.get("knowledge")
    if knowledge is not None and not isinstance(knowledge, list | tuple):
        raise UsageError(f"the knowledge of the agent is {knowledge!r:.80}", remedy="give a list of maps")
    for name in ("model", *_INSTRUCTIONS):
        if not isinstance(document.get(name), str | None):
            raise UsageError(f"`{name}` of the agent is {document[name]!r:.80}", remedy="give a text")
    return document


@dataclass(frozen=True, slots=True)
class Prompt:
    """The system prompt of a conversation.

    Attributes:
        text: the agent's instructions, and behind them what was retrieved, fenced and labelled as data.
        knowledge: the lines that were retrieved; nothing else of the agent's knowledge is in the text.
    """

    text: str
    knowledge: RelevantKnowledge


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent whose knowledge is indexed. Made by `KnowledgeService.create_agent`.

    Attributes:
        model: the language model that it talks through, as it is written.
        instructions: the texts under `system` and `prompt`, what the agent's prompt begins with.
        report: what indexing its knowledge did.
    """

    name: str
    model: str
    instructions: str
    report: KnowledgeReport
    service: KnowledgeService

    @classmethod
    def of(cls, document: Mapping[str, Any], report: KnowledgeReport, service: KnowledgeService) -> Agent:
        """Return the agent of a file that `read_agent` has read."""
        model, *instructions = ((document.get(name) or "").strip() for name in ("model", *_INSTRUCTIONS))
        return cls(document["name"], model, "\n\n".join(filter(None, instructions)), report, service)

    def retrieve(
        self, conversation: str | Sequence[Message | Mapping[str, Any]], limit: int | None = None
    ) -> Retrieval:
        """Return what the agent knows about the last message of a conversation.

        Args:
            conversation: messages, the last one last, or that one's text alone.
            limit: how many lines at most; None is the configuration's.
        """
        return self.service.retrieve(self.name, last_text(conversation), limit)

    def prompt(
        self,
        conversation: str | Sequence[Message | Mapping[str, Any]],
        limit: int | None = None,
        *,
        min_score: float = 0.0,
    ) -> Prompt:
        """Return what its model is to be told before a conversation: of what is retrieved all that is not weak.

        Args:
            conversation, limit: as for `retrieve`.
            min_score: 0–1; what the first stage scores lower is left out. With vectors of an embedder of your own,
                of which nobody knows what is weak, this alone keeps out what has nothing to do with the conversation.
        """
        found = self.service.retrieve(self.name, last_text(conversation), limit, min_score=min_score)
        found = replace(found, hits=tuple(hit for hit in found.hits if hit.confidence != "weak"))
        return Prompt("\n\n".join(filter(None, (self.instructions, found.to_text()))), found.lines)


def last_text(conversation: object) -> str:
    """Return the text of the last message of a conversation, or ""."""
    if isinstance(conversation, str):
        return conversation
    if not isinstance(conversation, Sequence):
        raise UsageError(f"the conversation is {conversation!r:.80}", remedy="give a list of messages, or a text")
    if not conversation:
        return ""
    last = conversation[-1]
    content = last.get("content") if isinstance(last, Mapping) else getattr(last, "content", last)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))
