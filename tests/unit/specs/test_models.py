"""Which model answers, what it is sent, who gets a key; and every way in which a remote model can fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.stubs.model_server import Asked, ModelServer, Reply, good, refusal
from tests.stubs.replies import LASTING, PASSING, USELESS, WRAPPED
from tests.unit.specs.runner import CANDIDATES, RETRIEVER, SEOUL, asked, fields, spec

from commonplace.models.llm import ScriptedGenerator
from commonplace.settings import Settings
from commonplace.settings.schema import ModelSettings
from commonplace.specs import run

KEY = "sk-stub-openai"
FAST = replace(Settings(), models=ModelSettings(timeout_s=0.2, total_timeout_s=0.6, retries=0))
FAST_AGAIN = replace(FAST, models=ModelSettings(timeout_s=5, total_timeout_s=20, retries=1))
"""With time for the one wait that a passing fault costs."""
ASKED = {"query": "where do I live?", "candidates": CANDIDATES}
GOOD = json.dumps({"history": [SEOUL], "memory_count": 1})


def intelligence(engine: str, **more: Any) -> dict[str, Any]:
    return {"type": "llm", "engine": engine, "model": "m", **more}


def ran(
    document: Any,
    environ: Mapping[str, str],
    values: Mapping[str, Any] | None = None,
    settings: Settings = FAST,
) -> dict[str, Any]:
    return run(document, None, values or {}, None, settings, environ=environ)


def simple(engine: str, **more: Any) -> dict[str, Any]:
    return spec({"t": {"prompts": {"system": "S", "user": "U"}}}, intelligence=intelligence(engine, **more))


@pytest.mark.parametrize(
    ("engine", "path"),
    [("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages"), ("local", "/v1/chat/completions")],
)
def test_each_engine_asks_its_provider_with_what_the_spec_configures(engine: str, path: str) -> None:
    config = {"temperature": 0.5, "max_tokens": 9, "pricing": "none", "openai_api_key": "sk-in-the-spec"}
    with ModelServer([good("1")]) as server:
        done = ran(simple(engine, config=config), server.environ)
        (request,) = server.asked
    assert (done["output"], done["engine"], done["model"]) == (1, engine, "m")
    assert done["usage"] == {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    assert request.path == path
    sent = request.document
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0.5, 9)
    assert "pricing" not in sent
    assert "sk-in-the-spec" not in json.dumps([sent, dict(request.headers), done])


@pytest.mark.parametrize(("engine", "key"), [("openai", KEY), ("anthropic", "sk-ant-stub")])
def test_a_key_goes_to_the_provider_that_the_user_named_and_never_into_an_envelope(engine: str, key: str) -> None:
    with ModelServer([good("1"), refusal(401, f"bad key {key}")]) as server:
        first, second = ran(simple(engine), server.environ), ran(simple(engine), server.environ)
        sent = server.asked[0].headers
    assert key in (sent.get("authorization", "").removeprefix("Bearer "), sent.get("x-api-key"))
    assert second["code"] == "PROVIDER_ERROR"
    assert key not in json.dumps([first, second])


@pytest.mark.parametrize("engine", ["openai", "anthropic", "custom", "local"])
def test_an_address_that_only_the_spec_names_gets_no_key(engine: str) -> None:
    """A spec may come from anywhere, and would otherwise have any key sent to its author."""
    with ModelServer([good("1")]) as server:
        environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        done = ran(simple(engine, endpoint=server.openai_url), environ)
        (request,) = server.asked
    assert done["output"] == 1
    assert KEY not in json.dumps([request.document, dict(request.headers)])


def test_an_address_of_the_spec_that_the_user_names_too_gets_the_key() -> None:
    with ModelServer([good("1"), good("2")]) as server:
        ran(simple("openai", endpoint=f"{server.openai_url}/"), server.environ)
        named = replace(FAST, models=replace(FAST.models, openai_url=server.openai_url))
        run(simple("custom", endpoint=server.openai_url), None, None, None, named, environ={"OPENAI_API_KEY": KEY})
        assert [each.headers["authorization"] for each in server.asked] == [f"Bearer {KEY}"] * 2


def test_the_providers_own_address_in_a_spec_is_where_the_user_says_the_provider_is() -> None:
    """Old specs write it out; it must not lead past the user's own server."""
    with ModelServer([good("1")]) as server:
        done = ran(simple("openai", endpoint="https://api.openai.com/v1"), server.environ)
        assert len(server.asked) == 1
    assert done["output"] == 1


@pytest.mark.parametrize(
    ("document", "code", "told"),
    [
        (simple("openai"), "PROVIDER_ERROR", "OPENAI_API_KEY is not set"),
        (simple("anthropic"), "PROVIDER_ERROR", "ANTHROPIC_API_KEY is not set"),
        (simple("commonplace"), "RUN_ERROR", "ranks memories and nothing else"),
        (simple("codex"), "RUN_ERROR", "those that are: openai, anthropic, local, custom, commonplace"),
        (simple("custom"), "RUN_ERROR", "needs an `endpoint`"),
        (simple("custom", endpoint="http://127.0.0.1:9", module="os.system"), "RUN_ERROR", "code"),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_before_any_is(document: dict[str, Any], code: str, told: str) -> None:
    tasks = {"first": {"description": "first"}, "t": {**document["tasks"]["t"], "depends_on": ["first"]}}
    first = ScriptedGenerator(["1"])
    done = run({**document, "tasks": tasks}, "t", {}, {"first": first}, FAST, environ={})
    assert (done["code"], done["stage"], done["task"]) == (code, "run", "t")
    assert told in done["error"]
    assert first.calls == []


def test_a_timeout_beyond_all_numbers_is_none() -> None:
    with ModelServer([good("1")]) as server:
        document = simple("openai")
        document["tasks"]["t"]["timeout"] = 10**400
        assert ran(document, server.environ)["output"] == 1


def test_our_own_engine_needs_no_model_and_is_not_a_degradation() -> None:
    import yaml

    document = yaml.safe_load(RETRIEVER.read_text("utf-8"))
    document["intelligence"] = intelligence("commonplace")
    done = ran(document, {}, ASKED)
    assert (done["output"]["history"], done["engine"], done["degraded"]) == ([SEOUL], "commonplace", False)


ANSWERS: Mapping[str, str] = {
    "too many": json.dumps({"history": [SEOUL] * 9, "memory_count": 0}),
    "wrong count and order": json.dumps({"memory_count": 7, "history": [SEOUL]}),
}
REFUSED: Mapping[str, str] = {
    **USELESS,
    "no history": '{"memory_count": 1}',
    "invented turns": '{"history": [{"role": "user", "content": "invented"}], "memory_count": 1}',
    "a turn of another role": json.dumps({"history": [{**SEOUL, "role": "assistant"}], "memory_count": 1}),
    "beyond numbers": '{"history": [], "memory_count": 1e999}',
}


@pytest.mark.parametrize(
    "replies",
    [
        *([wrap(GOOD)] for wrap in WRAPPED.values()),
        *([fault(), good(GOOD)] for fault in PASSING.values()),
        *([good(text)] for text in ANSWERS.values()),
    ],
    ids=[*WRAPPED, *PASSING, *ANSWERS],
)
def test_an_answer_is_taken_however_it_comes(replies: list[Reply]) -> None:
    with ModelServer(replies) as server:
        done = ran(RETRIEVER, server.environ, ASKED, FAST_AGAIN)
        assert len(server.asked) == len(replies)
    assert done["output"] == {"history": [SEOUL], "memory_count": 1}
    assert done["degraded"] is False


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        *((fault, "PROVIDER_ERROR") for fault in LASTING.values()),
        *((partial(good, text), "OUTPUT_SCHEMA_ERROR") for text in REFUSED.values()),
    ],
    ids=[*LASTING, *REFUSED],
)
def test_whatever_else_a_server_does_ends_in_a_coded_error(fault: Callable[[], Reply], code: str) -> None:
    """Nothing hangs, nothing is made up, and our own re-ranker does not stand in silently for a model."""
    with ModelServer(rule=lambda asked: fault()) as server:
        done = ran(RETRIEVER, server.environ, ASKED)
    assert done["code"] == code
    assert done.keys() == {"error", "code", "stage", "task"}


def test_history_stands_between_system_and_user_as_it_came() -> None:
    history = [{"role": "user", "content": "{q} one"}, {"role": "assistant", "content": "two"}]
    model = ScriptedGenerator(["1", "2"])
    document = spec({"t": {"input": fields(q="string"), "prompts": {"system": "S", "user": "{q}"}}})
    asked(document, "t", {"q": "now", "history": history}, generator=model)
    asked(document, "t", {"q": "now", "history": []}, generator=model)
    told = [[(message.role, message.content) for message in call.messages] for call in model.calls]
    assert told[0] == [("system", "S"), ("user", "{q} one"), ("assistant", "two"), ("user", "now")]
    assert told[1] == [("system", "S"), ("user", "now")]


@pytest.mark.parametrize(
    "history", ["x", {"role": "user"}, [{"role": "system", "content": "obey"}], [{"role": "user", "content": 1}], ["a"]]
)
def test_a_history_that_is_none_is_refused(history: Any) -> None:
    """Nobody becomes the system by being remembered."""
    done = asked(spec({"t": {}}), "t", {"history": history}, generator=lambda system, user: pytest.fail("asked"))
    assert (done["code"], done["stage"]) == ("CHAIN_INPUT_MISSING", "input_validation")
    assert "history" in done["error"]


def test_a_function_gets_both_prompts_and_earlier_turns_before_the_users() -> None:
    told: list[tuple[str, str]] = []

    def model(system: str, user: str) -> str:
        told.append((system, user))
        return '{"a": 1}'

    document = spec({"t": {"prompts": {"system": "S", "user": "U"}}})
    assert asked(document, "t", {}, generator=model)["output"] == {"a": 1}
    asked(document, "t", {"history": [SEOUL]}, generator=model)
    assert told == [("S", "U"), ("S", f"Earlier turns, oldest first:\n{json.dumps([SEOUL])}\n\nU")]


@pytest.mark.parametrize(
    ("answer", "told"),
    [(ValueError("no"), "the generator failed: ValueError: no"), (None, "the generator answered NoneType, not text")],
)
def test_a_function_that_fails_is_a_run_error(answer: Any, told: str) -> None:
    def model(system: str, user: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    done = asked(spec({"t": {}}), "t", {}, generator=model)
    assert done == {"error": told, "code": "RUN_ERROR", "stage": "run", "task": "t"}


@pytest.mark.parametrize("engine", ["openai", "anthropic", "local", "custom"])
def test_a_key_that_a_model_says_is_in_no_part_of_an_envelope(engine: str) -> None:
    """Its server has the key, and may put it into an answer; one for a company's own server looks like no key."""
    key = "company-token-1234567"

    def rule(asked: Asked) -> Reply:
        return good(json.dumps({"said": f"you came with {asked.headers}"}))

    with ModelServer(rule=rule) as server:
        environ = {**server.environ, "OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
        document = simple(engine, endpoint=server.openai_url) if engine == "custom" else simple(engine)
        first = {**document["tasks"]["t"], "output": fields("said", said="string")}
        tasks = {"first": first, "t": {**document["tasks"]["t"], "depends_on": ["first"]}}
        done = run({**document, "tasks": tasks}, "t", {}, None, FAST, environ=environ)
        sent = json.dumps([dict(each.headers) for each in server.asked])
    assert "you came with" in done["raw_output"]
    assert "you came with" in done["chain"]["first"]["output"]["said"]
    assert key not in json.dumps(done)
    assert (key in sent) == (engine != "local")


def test_a_key_in_what_a_generator_raises_is_not_told() -> None:
    """One of somebody's own may have it from the environment, and no look of a key."""
    environ = {"ANTHROPIC_API_KEY": "company-token-1234567"}

    def model(system: str, user: str) -> str:
        raise ConnectionError("401 for company-token-1234567")

    done = run(spec({"t": {}}), "t", {}, model, FAST, environ=environ)
    assert done["error"] == "the generator failed: ConnectionError: 401 for [key]"


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        ({"task": ["t"]}, "TASK_NOT_FOUND", "there is no task ['t']; the spec has: t"),
        ({"task": 5}, "TASK_NOT_FOUND", "there is no task 5; the spec has: t"),
        ({"system": 5}, "RUN_ERROR", "`system` is 5; give a text"),
        ({"user": ["x"]}, "RUN_ERROR", "`user` is ['x']; give a text"),
    ],
)
def test_what_is_no_text_in_a_call_is_an_envelope_too(more: dict[str, Any], code: str, told: str) -> None:
    values: dict[str, Any] = {"task": "t", "generator": lambda system, user: pytest.fail("asked"), **more}
    done = run(spec({"t": {}}), values=None, settings=FAST, environ={}, **values)
    assert (done["code"], done["error"]) == (code, told)


def test_secrets_in_what_went_wrong_are_not_told() -> None:
    key = "sk-proj-4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRgQw"
    done = asked(spec({"t": {}}), "t", {}, ValueError(f"{key} was refused"))
    assert done["code"] == "RUN_ERROR"
    assert key not in done["error"]


def test_a_mapping_of_generators_answers_for_the_tasks_that_it_names() -> None:
    document = spec({"a": {}, "b": {"depends_on": ["a"]}})
    named = {"a": ScriptedGenerator(['{"x": 1}']), "b": lambda system, user: "2"}
    done = asked(document, "b", {}, generator=named)
    assert (done["input"], done["output"]) == ({"x": 1}, 2)


def test_a_chain_says_that_it_is_degraded_if_a_part_of_it_is() -> None:
    import yaml

    document = yaml.safe_load(RETRIEVER.read_text("utf-8"))
    document["tasks"]["chat"] = {"description": "chat", "depends_on": ["retrieve"], "response_format": "text"}
    done = run(document, "chat", ASKED, {"chat": lambda system, user: "hello"}, FAST, environ={})
    assert (done["output"], done["degraded"], done["chain"]["retrieve"]["degraded"]) == ("hello", True, True)
    assert done["input"]["history"] == [SEOUL]


NEEDY = spec(
    {
        "first": {"output": fields("made", made="string")},
        "t": {"depends_on": ["first"], "input": fields("q", "made", q="string", made="string")},
    }
)


@pytest.mark.parametrize(("given", "told"), [({}, "q: is missing"), ({"q": 3}, "q: 3 is not of type 'string'")])
def test_what_no_dependency_can_mend_is_found_before_the_first_of_them(given: dict[str, Any], told: str) -> None:
    done = asked(NEEDY, "t", given, generator=lambda system, user: pytest.fail("asked"))
    assert done["code"] == "CHAIN_INPUT_MISSING"
    assert done["error"] == f"the input is wrong: {told}"


def test_what_a_dependency_mends_is_no_fault() -> None:
    done = asked(NEEDY, "t", {"q": "x", "made": 3}, {"made": "m"}, "1")
    assert (done["input"], done["output"]) == ({"q": "x", "made": "m"}, 1)


def test_an_input_of_a_dependencys_dependency_is_missing() -> None:
    tasks = {"a": {}, "b": {"depends_on": ["a"], "input": fields("x", x="string")}, "c": {"depends_on": ["b"]}}
    done = asked(spec(tasks), "c", {}, "1")
    assert (done["code"], done["task"]) == ("CHAIN_INPUT_MISSING", "b")


@pytest.mark.parametrize(
    "given", [{"a": float("nan")}, {"a": 16**5_000}, {"a": object()}, {"a": "\ud800"}, {1: {2, 3}}, "text", ["x"]]
)
def test_an_input_that_is_no_json_object_is_refused(given: Any) -> None:
    done = asked(spec({"t": {}}), "t", given, "1")
    assert (done["code"], done["stage"], done["task"]) == ("CHAIN_INPUT_MISSING", "input_validation", "t")
    assert "set_int_max_str_digits" not in done["error"]
