"""How each provider wants a conversation and how it answers: documents in, documents out. It sends nothing.

OpenAI's chat completions are what most servers speak; Anthropic's messages are its own. Both were written after the
providers' references: https://platform.openai.com/docs/api-reference/chat and https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from commonplace.errors import ProviderError
from commonplace.models.contract import Generated, Message

Schema = Mapping[str, Any]

PLAIN: Final = "plain"
"""The form that every server has: the schema as an instruction, and nothing else."""

_NAME: Final = "answer"
_MAX_TOKENS: Final = 4096
"""What an answer of Anthropic may have where nothing is said: their API demands a number."""


class Dialect(Protocol):
    """What one provider's API looks like.

    Attributes:
        path: of the request, below the address.
        forms: the ways to ask for JSON, the best first; the last one is `PLAIN`.
    """

    path: str
    forms: tuple[str, ...]

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, form: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the document that asks for an answer."""
        ...

    def spent(self, document: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens that an answer cost, sent and received, 0 where the server does not tell."""
        ...

    def read(self, document: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        """Return the answer in a document.

        Raises:
            ProviderError: there is none, the model refused, or it is cut short and must be whole.
        """
        ...


class OpenAI:
    """Chat completions: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and most gateways."""

    path = "/chat/completions"
    forms: tuple[str, ...] = ("json_schema", "json_object", PLAIN)

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, form: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the document that asks for an answer."""
        document: dict[str, Any] = {"model": model, "messages": []}
        if schema is not None and form == "json_schema":
            asked = {"name": _NAME, "schema": dict(schema), "strict": is_strict(schema)}
            document["response_format"] = {"type": "json_schema", "json_schema": asked}
        elif schema is not None:
            messages = _instructed(messages, instruction(schema))
            if form == "json_object":
                document["response_format"] = {"type": "json_object"}
        document["messages"] = [{"role": each.role, "content": each.content} for each in messages]
        return {**document, **options}

    def read(self, document: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        """Return the answer in a document."""
        choice = _first(document.get("choices"))
        message = _mapping(choice.get("message"))
        if isinstance(message.get("refusal"), str) and message["refusal"]:
            raise _refused(message["refusal"])
        text = _text(message.get("content"))
        _check(text, choice.get("finish_reason"), ("length",), must_be_whole=must_be_whole)
        return Generated(text, _name(document), *self.spent(document))

    def spent(self, document: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens that an answer cost, sent and received."""
        usage = _mapping(document.get("usage"))
        return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


class Anthropic:
    """Anthropic's messages."""

    path = "/messages"
    forms: tuple[str, ...] = ("output_config", "tool", PLAIN)

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, form: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the document that asks for an answer."""
        system = [each.content for each in messages if each.role == "system" and each.content]
        document: dict[str, Any] = {"model": model, "max_tokens": _MAX_TOKENS}
        if schema is not None and form == "output_config":
            document["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        elif schema is not None and form == "tool":
            tool = {"name": _NAME, "description": "Give the answer.", "input_schema": dict(schema)}
            document.update(tools=[tool], tool_choice={"type": "tool", "name": _NAME})
        elif schema is not None:
            system.append(instruction(schema))
        if system:
            document["system"] = "\n\n".join(system)
        document["messages"] = [{"role": m.role, "content": m.content} for m in messages if m.role != "system"]
        return {**document, **_renamed(options)}

    def read(self, document: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        """Return the answer in a document."""
        content = document.get("content")
        blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
        reason = document.get("stop_reason")
        if reason == "refusal":
            raise _refused("for its own reasons")
        tools = [block["input"] for block in blocks if block.get("type") == "tool_use" and "input" in block]
        text = json.dumps(tools[0], ensure_ascii=False) if tools else _text(content)
        _check(text, reason, ("max_tokens", "model_context_window_exceeded"), must_be_whole=must_be_whole)
        return Generated(text, _name(document), *self.spent(document))

    def spent(self, document: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens that an answer cost, sent and received."""
        usage = _mapping(document.get("usage"))
        return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


def is_strict(schema: object) -> bool:
    """Tell whether OpenAI's strict mode takes a schema: objects closed, all their properties required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        names = list(_mapping(schema.get("properties")))
        if schema.get("additionalProperties") is not False or sorted(schema.get("required", ())) != sorted(names):
            return False
    return all(map(is_strict, schema.values()))


def instruction(schema: Schema) -> str:
    """Return the sentence that asks for JSON where the server has no better way."""
    written = json.dumps(schema, ensure_ascii=False)
    return f"Answer with one JSON value that fulfils this JSON schema, and with nothing else: {written}"


def _instructed(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the conversation with a text at the end of its first system message: many servers take that one alone."""
    if messages[0].role != "system":
        return [Message("system", text), *messages]
    return [Message("system", f"{messages[0].content}\n\n{text}"), *messages[1:]]


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by the names that Anthropic has for them."""
    names = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
    found = {names.get(name, name): value for name, value in options.items()}
    if isinstance(found.get("stop_sequences"), str):
        found["stop_sequences"] = [found["stop_sequences"]]
    return found


def _check(text: str, reason: object, cut: tuple[str, ...], *, must_be_whole: bool) -> None:
    if must_be_whole and reason in cut:
        raise ProviderError("the model's answer is cut short", remedy="give it a larger max_tokens, or ask for less")
    if not text.strip():
        why = f", it stopped for {reason!r}" if isinstance(reason, str) else ""
        raise ProviderError(f"the model's answer is empty{why}", remedy="try again, or choose another model")


def _refused(why: str) -> ProviderError:
    return ProviderError(f"the model refused to answer: {why[:200]}", remedy="change what is asked")


def _text(content: object) -> str:
    """Return the text of a content: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
    return "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _first(items: object) -> Mapping[str, Any]:
    return _mapping(items[0]) if isinstance(items, list) and items else {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _name(document: Mapping[str, Any]) -> str:
    name = document.get("model")
    return name if isinstance(name, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
