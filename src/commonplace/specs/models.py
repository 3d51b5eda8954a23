"""Choose the model of a task: a given one, the spec's own, or the built-in re-ranker.

An address in a spec gets an API key only if it is the provider's own or in the user's settings, since specs are
untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, ProviderError
from commonplace.models.client import Budget
from commonplace.models.contract import Generated, Generator, Message, Reranker
from commonplace.models.llm import open_generator
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.providers import access
from commonplace.models.static_reranking import StaticReranker
from commonplace.settings.schema import ModelSettings
from commonplace.specs.document import Intelligence, SpecError
from commonplace.specs.plan import Step
from commonplace.specs.retriever import is_retriever

Answerer = Generator | Callable[[str, str], str]
"""A model, or a function of a system prompt and a user prompt."""

OURS: Final = "commonplace"
OURS_MODEL: Final = "minilm"
PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "local": "ollama",
    "custom": "openai",
}
"""What speaks for each engine that a spec can name, besides our own."""

_NO_FIELDS: Final = frozenset({"pricing", "enable_layer3", "enable_onnx", "openai_api_key", "claude_api_key"})
"""What a spec configures that is no field of a request."""
_OPENAI_FIELDS: Final = frozenset({"reasoning_effort", "frequency_penalty", "presence_penalty"})


@dataclass(frozen=True, slots=True)
class Engine:
    """What answers a step.

    Attributes:
        name, model: as the result tells them.
        generator: None where our own re-ranker answers.
        degraded: why our own re-ranker stands in for a model, or "".
    """

    name: str
    model: str
    generator: Generator | None = None
    degraded: str = ""


def open_engine(
    step: Step,
    given: Answerer | Mapping[str, Answerer] | None,
    settings: ModelSettings,
    environ: Mapping[str, str],
    budget: Budget,
) -> Engine:
    """Return what answers a step: what the caller gave, what the spec asks for, or our own re-ranker."""
    asked = step.intelligence
    answerer = given.get(step.name) if isinstance(given, Mapping) else given
    if answerer is not None:
        model = answerer if hasattr(answerer, "generate") else _Called(cast("Callable[[str, str], str]", answerer))
        return Engine(asked.engine, asked.model, cast("Generator", model))
    if asked.engine == OURS and is_retriever(step.task):
        return Engine(OURS, asked.model)
    problem = ""
    if asked.engine == OURS:
        problem = f"engine {OURS!r} ranks memories and nothing else; name a language model for this task"
    elif asked.engine not in PROVIDERS:
        problem = f"engine {asked.engine!r} is not run here; those that are: {', '.join([*PROVIDERS, OURS])}"
    elif asked.module:
        problem = f"module {asked.module!r} is code, which a spec may not bring along; give `generator=` instead"
    elif asked.engine == "custom" and not asked.endpoint:
        problem = "engine 'custom' needs an `endpoint`"
    if problem:
        raise SpecError(problem, "RUN_ERROR", "run", step.name)
    provider, endpoint = PROVIDERS[asked.engine], asked.endpoint or ""
    if step.task.timeout_s is not None:
        settings = replace(settings, total_timeout_s=float(min(settings.total_timeout_s, step.task.timeout_s)))
    try:
        usual = access(provider, sends_key=False, settings=settings, environ=environ).address
        named = access(provider, base_url=endpoint, sends_key=False, settings=settings, environ=environ).address
        if named == access(provider, sends_key=False, environ={}).address:
            endpoint = ""  # where a spec names the provider's own address, the user's word about it holds
        generator = open_generator(
            f"{provider}:{asked.model}",
            base_url=endpoint,
            sends_key=not endpoint or named == usual,
            settings=settings,
            environ=environ,
            budget=budget,
        )
    except ProviderError as error:
        if is_retriever(step.task):
            return Engine(OURS, OURS_MODEL, degraded=str(error))
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except CommonplaceError as error:
        raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
    return Engine(asked.engine, asked.model, generator)


def options(asked: Intelligence) -> dict[str, Any]:
    """Return what a spec configures for every request to its model."""
    left_out = _NO_FIELDS | (_OPENAI_FIELDS if asked.engine == "anthropic" else frozenset())
    return {name: value for name, value in asked.config.items() if name not in left_out}


def open_reranker() -> Reranker:
    """Return our own re-ranker, which asks nobody: what turns mean is judged by the transformer that ships."""
    return StaticReranker(embedder=MinilmEmbedder.load())


class _Called:
    name = "function"

    def __init__(self, function: Callable[[str, str], str]) -> None:
        self._function = function

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - a function is asked in words alone
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
        total_s: float | None = None,  # noqa: ARG002
    ) -> Generated:
        """Call the function; earlier turns, for which it has no place, stand as JSON before the user's prompt."""
        system = "".join(message.content for message in messages[:1] if message.role == "system")
        turns = [{"role": each.role, "content": each.content} for each in messages[:-1] if each.role != "system"]
        user = messages[-1].content
        if turns:
            user = f"Earlier turns, oldest first:\n{json.dumps(turns, ensure_ascii=False)}\n\n{user}"
        return Generated(self._function(system, user))
