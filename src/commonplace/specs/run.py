"""Run a task of a spec: plan, choose a model, validate input, call the model, validate output.

Specs are untrusted: an address in a spec gets an API key only if it is the provider's own or in the user's settings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.json_values import read_json, subpath
from commonplace.formats.yaml import fault_of
from commonplace.models.client import Budget
from commonplace.models.contract import Generated, Generator, Message, Reranker
from commonplace.models.llm import json_of, open_generator
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.providers import access, without_keys
from commonplace.models.static_reranking import StaticReranker
from commonplace.redaction import redact
from commonplace.settings import Settings
from commonplace.settings.schema import ModelSettings
from commonplace.specs import retriever
from commonplace.specs.check import Fault, faults_of
from commonplace.specs.document import SpecError, Task, check_plain, parse_spec, read_spec
from commonplace.specs.plan import Planner, SpecSource, Step, source_of

Answerer = Generator | Callable[[str, str], str]
"""A model, or a function of a system prompt and a user prompt."""

OWN_ENGINE: Final = "commonplace"
OWN_MODEL: Final = "minilm"
PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "local": "ollama",
    "custom": "openai",
}
"""Engine of a spec → provider of its model, besides our own."""

_UNSENT_OPTIONS: Final = frozenset({"pricing", "enable_layer3", "enable_onnx", "openai_api_key", "claude_api_key"})
"""Options in a spec's `config` that are not fields of a request."""
_OPENAI_OPTIONS: Final = frozenset({"reasoning_effort", "frequency_penalty", "presence_penalty"})


@dataclass(frozen=True, slots=True)
class StepEngine:
    """The engine that answers a step.

    Attributes:
        name, model: their names in the result.
        generator: None if our own re-ranker answers.
        degraded: why our own re-ranker replaces a model, or "".
    """

    name: str
    model: str
    generator: Generator | None = None
    degraded: str = ""


def engine_for(
    step: Step,
    answerers: Answerer | Mapping[str, Answerer] | None,
    settings: ModelSettings,
    environ: Mapping[str, str],
    budget: Budget,
) -> StepEngine:
    """Return the engine of a step: the caller's generator, the spec's model, or our own re-ranker."""
    requested = step.intelligence
    answerer = answerers.get(step.name) if isinstance(answerers, Mapping) else answerers
    if answerer is not None:
        model = answerer if hasattr(answerer, "generate") else _FunctionGenerator(answerer)
        return StepEngine(requested.engine, requested.model, cast("Generator", model))
    if requested.engine == OWN_ENGINE and retriever.is_retriever(step.task):
        return StepEngine(OWN_ENGINE, requested.model)
    problem = ""
    if requested.engine == OWN_ENGINE:
        problem = f"engine {OWN_ENGINE!r} ranks memories and nothing else; name a language model for this task"
    elif requested.engine not in PROVIDERS:
        problem = f"engine {requested.engine!r} is not run here; those that are: {', '.join([*PROVIDERS, OWN_ENGINE])}"
    elif requested.module:
        problem = f"module {requested.module!r} is code, which a spec may not bring along; give `generator=` instead"
    elif requested.engine == "custom" and not requested.endpoint:
        problem = "engine 'custom' needs an `endpoint`"
    if problem:
        raise SpecError(problem, "RUN_ERROR", "run", step.name)
    provider, endpoint = PROVIDERS[requested.engine], requested.endpoint or ""
    if step.task.timeout_s is not None:
        settings = replace(settings, total_timeout_s=float(min(settings.total_timeout_s, step.task.timeout_s)))
    try:
        default_address = access(provider, sends_key=False, settings=settings, environ=environ).address
        spec_address = access(provider, base_url=endpoint, sends_key=False, settings=settings, environ=environ).address
        if spec_address == access(provider, sends_key=False, environ={}).address:
            endpoint = ""  # for the provider's own address, the user's settings apply
        generator = open_generator(
            f"{provider}:{requested.model}",
            base_url=endpoint,
            sends_key=not endpoint or spec_address == default_address,
            settings=settings,
            environ=environ,
            budget=budget,
        )
    except ProviderError as error:
        if retriever.is_retriever(step.task):
            return StepEngine(OWN_ENGINE, OWN_MODEL, degraded=str(error))
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except CommonplaceError as error:
        raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
    return StepEngine(requested.engine, requested.model, generator)


def open_reranker() -> Reranker:
    """Return our own re-ranker: local, with the bundled transformer as embedder."""
    return StaticReranker(embedder=MinilmEmbedder.load())


class _FunctionGenerator:
    name = "function"

    def __init__(self, function: Callable[[str, str], str]) -> None:
        self._function = function

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - a function takes only prompts
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
        total_s: float | None = None,  # noqa: ARG002
    ) -> Generated:
        """Call the function; earlier turns, for which it has no parameter, precede the user's prompt as JSON."""
        system = "".join(message.content for message in messages[:1] if message.role == "system")
        turns = [{"role": turn.role, "content": turn.content} for turn in messages[:-1] if turn.role != "system"]
        user = messages[-1].content
        if turns:
            user = f"Earlier turns, oldest first:\n{json.dumps(turns, ensure_ascii=False)}\n\n{user}"
        return Generated(self._function(system, user))


HISTORY = "history"
"""Name of the input that becomes turns of the conversation instead of text in the prompt."""

_TURNS: Mapping[str, Any] = {"type": ["array", "null"], "items": retriever.TURN}


def copy_input(values: object, task: str) -> dict[str, Any]:
    """Return a deep copy of an input; refuse one that is not a JSON object."""
    if not isinstance(values, Mapping):
        raise _unfit(f"the input must be an object, not {type(values).__name__}", task)
    try:
        text = json.dumps(dict(values), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise _unfit("the input holds half a character, which no encoding has", task) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _unfit(f"the input is not JSON: {fault_of(error)}", task) from None
    copy: dict[str, Any] = json.loads(text)
    return copy


def with_defaults(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the defaults of missing inputs added."""
    defaults = {
        name: field["default"]
        for name, field in task.input.get("properties", {}).items()
        if isinstance(field, Mapping) and "default" in field
    }
    if retriever.is_retriever(task):
        defaults.setdefault("top_k", retriever.DEFAULT_TOP_K)
    return {**values, **{name: value for name, value in defaults.items() if name not in values}}


def _describe(faults: Sequence[Fault]) -> str:
    return f"the input is wrong: {'; '.join(map(str, faults[:3]))}"


def _unfit(message: str, task: str) -> SpecError:
    return SpecError(message, "CHAIN_INPUT_MISSING", "input_validation", task)


_FENCED: Final = re.compile(r"```[^\n`]*\n(.*)```", re.DOTALL)


def output_of(task: Task, text: str) -> object:
    """Return a task's output: the text itself if that is its format, else the JSON value that the text is or contains.

    Without an output schema, a value cannot be told from an aside: only a reply that is one value, bare or in a code
    fence, is parsed, and any other reply is the output unchanged.
    """
    if task.is_text:
        return text
    if task.output:
        try:
            return json_of(text)
        except ProviderError:
            problem = f"holds no JSON; it begins {text.strip()[:60]!r}" if text.strip() else "is empty"
            raise _broken(task, f"the answer {problem}") from None
    fenced = _FENCED.fullmatch(text.strip())
    try:
        return read_json(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text


def check_output(task: Task, output: object) -> None:
    """Check an output by the task's schema and contract; text is not checked."""
    if task.is_text:
        return
    faults = faults_of(output, {"type": "object", **task.output}) if task.output else []
    if faults:
        raise _broken(task, f"the answer breaks the output schema: {faults[0]}")
    if not isinstance(output, Mapping):
        return
    rules: Any = task.contract.get("response_contract", {}).get("output_format", {})
    missing = [name for name in rules.get("required_fields", ()) if name not in output]
    if missing:
        message = f"the output lacks {', '.join(map(repr, missing))}, which the behavioural contract requires"
        raise SpecError(message, "CONTRACT_VIOLATION", "contract", task.name)


def _broken(task: Task, message: str) -> SpecError:
    return SpecError(message, "OUTPUT_SCHEMA_ERROR", "output_validation", task.name)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Replace `{k}`, `{{ k }}` and `{{ input.k }}` for every key of the values, in one pass.

    Replaced text is never scanned again, so that text from outside cannot insert another value. All other braces stay,
    such as those of JSON in a prompt.
    """
    if not values:
        return template
    # The longest name first: one key may be the start of another.
    names = "|".join(re.escape(name) for name in sorted(values, key=lambda name: (-len(name), name)))
    placeholder = re.compile(rf"\{{\{{ (?:input\.)?({names}) \}}\}}|\{{({names})\}}")
    return placeholder.sub(lambda match: prompt_text(values[match[1] if match[1] is not None else match[2]]), template)


def prompt_text(value: object) -> str:
    """Return a value as text for a prompt: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def run(  # noqa: PLR0913 - the arguments of `commonplace.run_spec`, and what tests replace
    spec: str | Path | Mapping[str, Any],
    task: str | None,
    values: Mapping[str, Any] | None,
    generator: Answerer | Mapping[str, Answerer] | None,
    settings: Settings,
    *,
    system: str | None = None,
    user: str | None = None,
    environ: Mapping[str, str] | None = None,
    reranker: Callable[[], Reranker] = open_reranker,
) -> dict[str, Any]:
    """Run a task and return the envelope of its result, or of its error, which has a `code`.

    Args:
        spec: a file, or a parsed document, which has no directory for local references.
        task: None for the first that can be run.
        values: the input.
        generator: replaces every model; a mapping replaces those of the tasks it names.
        system, user: prompts to replace the task's.
        environ: None for the process's own.
    """
    environment = os.environ if environ is None else environ
    try:
        if isinstance(spec, str | Path):
            file = Path(spec)
            document, source = parse_spec(read_spec(file), str(file)), source_of(file)
        else:
            document, source = parse_spec(check_plain(spec, "the spec"), "the spec"), SpecSource("the spec")
        planner = Planner(settings.specs.registry, network=settings.specs.network == "on")
        step = planner.plan(document, source, task)
        values = copy_input({} if values is None else values, step.name)
        _check_early(step, values, system, user)
        budget = Budget(settings.models.max_calls, settings.models.max_tokens)
        # Open all before any is called; by identity, since two steps may have the same name.
        engines = {id(node): engine_for(node, generator, settings.models, environment, budget) for node in step}
        chain: dict[str, Any] = {}
        for before in step.before:
            chain[before.name] = result = _result(before, engines[id(before)], values, None, None, reranker)
            if isinstance(result["output"], dict):
                values.update(copy_input(result["output"], before.name))
        envelope = _result(step, engines[id(step)], values, system, user, reranker)
        if chain:
            envelope["chain"] = chain
            if any(link.get("degraded") for link in chain.values()):
                envelope["degraded"] = True
    except SpecError as fault:
        error = redact(without_keys(str(fault), environment)).text
        envelope = {"error": error, "code": fault.code, "stage": fault.stage}
        if fault.task is not None:
            envelope["task"] = fault.task
    return envelope


def _check_early(step: Step, inputs: Mapping[str, Any], system: object, user: object) -> None:
    """Refuse what no model or dependency can repair, before the first call costs anything."""
    for part, prompt in (("system", system), ("user", user)):
        if prompt is not None and not isinstance(prompt, str):
            raise SpecError(f"`{part}` is {prompt!r:.80}; give a text", "RUN_ERROR", "run", step.name)
    for node in step:
        if node.refusal:
            raise SpecError(f"the task cannot be run here: {node.refusal}", "RUN_ERROR", "run", node.name)
    if not step.before:
        return
    outputs = [{} if before.task.is_text else before.task.output.get("properties", {}) for before in step.before]
    supplied = {name for properties in outputs for name in properties}
    values = {name: value for name, value in with_defaults(step.task, dict(inputs)).items() if name not in supplied}
    # A dependency without declared outputs may supply any input.
    required = [name for name in step.task.input.get("required", ()) if name not in supplied] if all(outputs) else []
    if faults := faults_of(values, {**step.task.input, "required": required}):
        raise _unfit(_describe(faults), step.name)


def _result(
    step: Step,
    engine: StepEngine,
    inputs: Mapping[str, Any],
    system: str | None,
    user: str | None,
    reranker: Callable[[], Reranker],
) -> dict[str, Any]:
    task = step.task
    is_retriever = retriever.is_retriever(task)
    values = with_defaults(task, copy_input(inputs, step.name))
    faults = faults_of(values, task.input)
    if HISTORY in values:
        faults += [Fault(subpath(HISTORY, fault.path), fault.message) for fault in faults_of(values[HISTORY], _TURNS)]
    if is_retriever and not faults:
        faults = faults_of(values, retriever.INPUT)
    if faults:
        raise _unfit(_describe(faults), step.name)
    system = (task.system or "") if system is None else system
    template = user if user is not None else task.user
    prompt = prompt_text(values) if template is None else render(template, values)
    envelope: dict[str, Any] = {
        "task": step.name,
        "output": None,
        "input": values,
        "prompt": f"{system}\n\n{prompt}".strip(),
        "engine": engine.name,
        "model": engine.model,
        "raw_output": "",
    }
    if step.delegated_to is not None:
        envelope["delegated_to"] = step.delegated_to
    if is_retriever:
        envelope["degraded"] = False
    if not is_retriever or (engine.generator is not None and not retriever.needs_no_call(values)):
        _ask(engine, step, system, prompt, envelope)
        return envelope
    try:
        needs_no_call = retriever.needs_no_call(values)
        output = retriever.retriever_output(()) if needs_no_call else retriever.rank(reranker(), values)
    except CommonplaceError as error:
        raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
    if engine.degraded and not needs_no_call:
        envelope.update(degraded=True, degraded_reason=engine.degraded)
    envelope.update(output=output, raw_output=json.dumps(output, ensure_ascii=False))
    check_output(task, output)
    return envelope


def _ask(engine: StepEngine, step: Step, system: str, prompt: str, envelope: dict[str, Any]) -> None:
    assert engine.generator is not None
    task, values = step.task, envelope["input"]
    messages = [Message("system", system)] if system else []
    messages += [Message(turn["role"], turn["content"]) for turn in values.get(HISTORY) or ()]
    messages.append(Message("user", prompt))
    schema = None if task.is_text or not task.output else {"type": "object", **task.output}
    intelligence = step.intelligence
    excluded = _UNSENT_OPTIONS | (_OPENAI_OPTIONS if intelligence.engine == "anthropic" else frozenset())
    options = {name: value for name, value in intelligence.config.items() if name not in excluded}
    try:
        answer = engine.generator.generate(messages, schema=schema, options=options)
        text: object = answer.text
    except ProviderError as error:
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except Exception as error:  # the caller's own generator may fail in any way
        description = f"{type(error).__name__}: {error}".rstrip(": ")
        message = str(error) if isinstance(error, CommonplaceError) else f"the generator failed: {description}"
        raise SpecError(message, "RUN_ERROR", "run", step.name) from None
    if not isinstance(text, str):
        message = f"the generator answered {type(text).__name__}, not text"
        raise SpecError(message, "RUN_ERROR", "run", step.name)
    envelope["raw_output"] = text
    output = output_of(task, text)
    if retriever.is_retriever(task):
        output = retriever.repair(task, output, values)
    check_output(task, output)
    envelope["output"] = output
    if answer.input_tokens or answer.output_tokens:
        envelope["usage"] = {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
