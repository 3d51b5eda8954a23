"""What every generator promises, run on each provider against a server that behaves well and badly."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.stubs.model_server import (
    Asked,
    ModelServer,
    Reply,
    bad_json,
    broken,
    busy,
    drip,
    dropped,
    dropped_half_way,
    empty,
    good,
    hang,
    huge,
    refusal,
    truncated,
)
from tests.stubs.replies import LASTING, PASSING, WRAPPED

from commonplace.errors import ProviderError, UsageError
from commonplace.models.client import Budget, Timing
from commonplace.models.contract import Generated, Generator, Message
from commonplace.models.llm import RemoteGenerator, json_of, open_generator
from commonplace.settings import ModelSettings

PROVIDERS = ("openai", "anthropic", "ollama")
ASKED = [
    Message("system", "You are terse."),
    Message("user", "Hello"),
    Message("assistant", "Hi"),
    Message("user", "Which colour?"),
]
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}
ANSWER = '{"colour": "blue"}'


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(server: ModelServer, provider: str, budget: Budget | None = None, **chosen: Any) -> RemoteGenerator:
    """Return a model of the stub that waits for nothing between its retries."""
    waiting = Timing(sleep=lambda seconds: None)
    settings = ModelSettings(**chosen)
    found = open_generator(f"{provider}:m", environ=server.environ, settings=settings, timing=waiting, budget=budget)
    assert isinstance(found, RemoteGenerator)
    return found


def answered(server: ModelServer, provider: str, **arguments: Any) -> Generated:
    return opened(server, provider).generate(ASKED, **arguments)


def test_an_answer_comes_with_the_models_name_and_what_it_cost(provider: str) -> None:
    """Usage is reported, and counted for the run."""
    with ModelServer([good("blue")]) as server:
        budget = Budget()
        model: Generator = opened(server, provider, budget)
        assert model.name == f"{provider}:m"
        assert model.generate(ASKED) == Generated("blue", "stub-model", 11, 7)
    assert (budget.calls, budget.tokens) == (1, 18)


def test_the_conversation_goes_out_in_its_order_and_with_its_options(provider: str) -> None:
    """Nothing is added to it, dropped from it or rewritten."""
    with ModelServer([good("blue")]) as server:
        answered(server, provider, options={"temperature": 0.0, "max_tokens": 5, "seed": None})
        (asked,) = server.asked
    document = dict(asked.document)
    turns = [{"role": each.role, "content": each.content} for each in ASKED]
    assert document.pop("model") == "m"
    assert document.pop("temperature") == 0.0
    assert document.pop("max_tokens") == 5
    if provider == "anthropic":
        assert document == {"system": "You are terse.", "messages": turns[1:]}
        assert asked.path == "/v1/messages"
        assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == ("sk-ant-stub", "2023-06-01")
        assert "authorization" not in asked.headers
    else:
        assert document == {"messages": turns}
        assert asked.path == "/v1/chat/completions"
        assert asked.headers.get("authorization") == ("Bearer sk-stub-openai" if provider == "openai" else None)


def test_a_schema_goes_out_in_the_providers_best_form(provider: str) -> None:
    """Servers that know schemas hold the model to them."""
    with ModelServer([good(ANSWER)]) as server:
        assert json_of(answered(server, provider, schema=SCHEMA).text) == {"colour": "blue"}
        (asked,) = server.asked
    if provider == "anthropic":
        assert asked.document["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    else:
        form = {"name": "answer", "schema": SCHEMA, "strict": True}
        assert asked.document["response_format"] == {"type": "json_schema", "json_schema": form}


def test_a_server_that_refuses_a_schema_is_asked_in_words_from_then_on(provider: str) -> None:
    """The next call begins where this one ended."""
    replies = [refusal(400, "unsupported parameter"), good(ANSWER), good(ANSWER)]
    with ModelServer(replies) as server:
        model = opened(server, provider)
        for _ in range(2):
            assert json_of(model.generate(ASKED, schema=SCHEMA).text) == {"colour": "blue"}
        assert len(server.asked) == 3
        *_, before_last, last = server.asked
    assert before_last.document == last.document
    assert not {"output_config", "response_format"} & set(last.document)
    assert json.dumps(SCHEMA) in last.prompt


def test_a_schema_that_is_refused_in_every_way_is_an_error_and_spoils_nothing(provider: str) -> None:
    """Something else is wrong with the request, so nothing is learned from it."""
    with ModelServer([*[refusal(400, "no")] * 2, good(ANSWER)]) as server:
        model = opened(server, provider)
        with pytest.raises(ProviderError, match="answered 400: no"):
            model.generate(ASKED, schema=SCHEMA)
        model.generate(ASKED, schema=SCHEMA)
        assert server.asked[0].document == server.asked[-1].document


def test_a_prompt_that_is_too_long_is_not_sent_again(provider: str) -> None:
    """No form of asking makes it shorter."""
    with ModelServer([refusal(400, "This model's maximum context length is 8192 tokens")]) as server:
        with pytest.raises(ProviderError, match="maximum context length"):
            answered(server, provider, schema=SCHEMA)
        assert len(server.asked) == 1


def test_an_option_that_is_refused_is_left_out_with_a_warning(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    """Newer models take no temperature; a call that could be answered must not fail for it."""
    caplog.set_level(logging.WARNING)
    with ModelServer([refusal(400, "Unsupported value: 'temperature' does not support 0.0"), good("a")]) as server:
        model = opened(server, provider)
        model.generate(ASKED, options={"temperature": 0.0, "top_p": 1.0})
        model.generate(ASKED, options={"temperature": 0.0})
        assert [("temperature" in each.document) for each in server.asked] == [True, False, False]
        assert server.asked[1].document["top_p"] == 1.0
    assert f"{provider}:m does not take temperature, which is left out" in caplog.text


def test_max_tokens_is_renamed_for_models_that_want_it_so() -> None:
    """OpenAI's reasoning models know `max_completion_tokens` alone."""
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with ModelServer([refusal(400, message), good("a")]) as server:
        answered(server, "openai", options={"max_tokens": 5})
        assert server.asked[1].document["max_completion_tokens"] == 5
        assert "max_tokens" not in server.asked[1].document


def test_an_option_that_is_refused_by_both_its_names_is_left_out() -> None:
    """However a server complains, asking comes to an end."""
    renamed = refusal(400, "Use 'max_completion_tokens' instead of 'max_tokens'.")
    replies = [renamed, refusal(400, "max_completion_tokens is not known"), good("a")]
    with ModelServer(replies) as server:
        answered(server, "openai", options={"max_tokens": 5})
        assert not {"max_tokens", "max_completion_tokens"} & set(server.asked[-1].document)


def test_an_instruction_for_json_stands_in_the_first_message_of_the_system() -> None:
    """Many servers take a system message nowhere else."""

    def rule(asked: Asked) -> Reply:
        return refusal(400, "no") if "response_format" in asked.document else good("{}")

    with ModelServer(rule=rule) as server:
        model = opened(server, "openai")
        model.generate(ASKED, schema=SCHEMA)
        model.generate(ASKED[1:], schema=SCHEMA)
        for asked in server.asked[-2:]:
            turns = asked.document["messages"]
            assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
            assert turns[0]["content"].endswith(json.dumps(SCHEMA))


def test_an_answer_that_is_of_no_use_counts_for_the_budget(provider: str) -> None:
    """It is paid for."""
    with ModelServer([truncated(ANSWER)]) as server:
        budget = Budget()
        with pytest.raises(ProviderError, match="cut short"):
            opened(server, provider, budget).generate(ASKED, schema=SCHEMA)
    assert budget.tokens == 18


def test_an_error_that_comes_as_a_success_is_an_error(provider: str) -> None:
    """As from gateways whose own request to the provider failed."""
    reply = Reply(document={"error": {"message": "upstream is down", "code": 502}})
    with (
        ModelServer([reply]) as server,
        pytest.raises(ProviderError, match="answered with an error: upstream is down"),
    ):
        answered(server, provider)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "response_format", "tools"])
def test_what_is_ours_to_set_cannot_be_an_option(provider: str, name: str) -> None:
    """A stream would not be read, another model not be the one that is named."""
    with ModelServer() as server:
        with pytest.raises(UsageError, match=f"{name} cannot be set as an option"):
            answered(server, provider, options={name: "x"})
        with pytest.raises(UsageError, match="there is no message"):
            opened(server, provider).generate([])
        assert server.asked == []


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_json_is_found_however_it_is_wrapped(provider: str, reply: Callable[[str], Reply]) -> None:
    """The text comes as it is; `json_of` finds the value."""
    with ModelServer([reply(ANSWER)]) as server:
        assert json_of(answered(server, provider, schema=SCHEMA).text) == {"colour": "blue"}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_is_not_noticed(provider: str, fault: Callable[[], Reply]) -> None:
    """After a retry the answer is the same."""
    with ModelServer([fault(), good("blue")]) as server:
        assert answered(server, provider).text == "blue"
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (broken, "answered 500: out of order"),
        (lambda: busy("1"), "answered 429: slow down"),
        (lambda: busy("86400"), "answered 429: slow down; try again in 86400 s"),
        (dropped, "could not be reached"),
        (dropped_half_way, "could not be reached"),
        (bad_json, "answered with no JSON object"),
        (huge, "the answer has more than 16,777,216 bytes"),
        (hang, "did not answer in time"),
        (drip, "did not answer in time"),
        (empty, "answer is empty"),
        (lambda: good(" \n"), "answer is empty"),
        (lambda: Reply(document={}), "answer is empty"),
        (lambda: Reply(document={"choices": [], "content": {}}), "answer is empty"),
        (lambda: Reply(document={"choices": [None], "content": [None, 7]}), "answer is empty"),
        (lambda: Reply(document={"choices": [{"message": {"content": 7}}], "usage": []}), "answer is empty"),
        (lambda: truncated(ANSWER), "answer is cut short; give it a larger max_tokens"),
        (lambda: refusal(401, "bad key"), "answered 401: bad key; check the "),
        (lambda: refusal(404, "no such model"), "answered 404: no such model; check the model's name"),
    ],
)
def test_every_fault_that_stays_is_an_error_with_a_remedy(
    provider: str, fault: Callable[[], Reply], message: str
) -> None:
    """None hangs, none is taken for an answer."""
    with ModelServer(rule=lambda asked: fault()) as server:
        model = opened(
            server, provider, timeout_s=0.1, total_timeout_s=0.15 if fault in (hang, drip) else 5.0, retries=1
        )
        with pytest.raises(ProviderError, match=message) as raised:
            model.generate(ASKED, schema=SCHEMA)
    assert raised.value.remedy
    assert "sk-" not in str(raised.value)


def test_a_key_that_a_model_says_is_not_told(provider: str) -> None:
    """Its server has it, and a careless one puts it into an answer, a refusal or the model's own name."""
    key = {"openai": "company-key-1234567", "anthropic": "company-key-7654321", "ollama": ""}[provider]
    replies = [
        good(f"it is {key}!"),
        Reply(document={"choices": [{"message": {"refusal": f"not with {key}"}}], "stop_reason": "refusal"}),
        Reply(document={"choices": [{"finish_reason": f"key {key}"}], "stop_reason": f"key {key}"}),
    ]
    with ModelServer(replies) as server:
        environ = {**server.environ, "OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
        model = open_generator(f"{provider}:m", environ=environ)
        told = model.generate(ASKED).text
        for _ in range(2):
            with pytest.raises(ProviderError) as raised:
                model.generate(ASKED)
            told += str(raised.value)
    assert told.startswith("it is [key]!" if key else "it is !")
    assert not key or key not in told


def test_a_word_that_stands_for_no_key_may_be_said() -> None:
    """Servers that want any key get one such as `none`."""
    with ModelServer([good("there is none")]) as server:
        environ = {**server.environ, "OPENAI_API_KEY": "none"}
        assert open_generator("openai:m", environ=environ).generate(ASKED).text == "there is none"


def test_asking_in_simpler_ways_has_one_deadline(provider: str) -> None:
    """Each refusal would else begin a call with all the time there is."""
    now = [0.0]

    def slow(asked: Asked) -> Reply:
        now[0] += 7.0
        return refusal(400, "unsupported parameter")

    with ModelServer(rule=slow) as server:
        waiting = Timing(clock=lambda: now[0], sleep=lambda seconds: None)
        settings = ModelSettings(total_timeout_s=100.0)
        model = open_generator(f"{provider}:m", environ=server.environ, settings=settings, timing=waiting)
        with pytest.raises(ProviderError, match="did not answer in time"):
            model.generate(ASKED, schema=SCHEMA, total_s=10.0)
        assert len(server.asked) == 2


@pytest.mark.parametrize("fault", LASTING.values(), ids=LASTING)
def test_nothing_that_a_server_does_is_taken_for_an_answer_or_waited_for(
    provider: str, fault: Callable[[], Reply]
) -> None:
    with ModelServer(rule=lambda asked: fault()) as server, pytest.raises(ProviderError) as raised:
        opened(server, provider, timeout_s=0.1, total_timeout_s=0.3, retries=1).generate(ASKED, schema=SCHEMA)
    assert raised.value.remedy
    assert "sk-" not in str(raised.value)


def test_an_answer_in_words_may_be_cut_short(provider: str) -> None:
    """Half a text is of use where half a value is not."""
    with ModelServer([truncated("a long story")]) as server:
        assert answered(server, provider).text == "a long"


def test_a_model_that_refuses_is_an_error_and_no_answer() -> None:
    """Its excuse must not be taken for what was asked for."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    replies = [
        Reply(document={"choices": [{"message": message, "finish_reason": "stop"}]}),
        Reply(document={"content": [], "stop_reason": "refusal"}),
    ]
    for provider, reply in zip(("openai", "anthropic"), replies, strict=True):
        with ModelServer([reply]) as server, pytest.raises(ProviderError, match="the model refused to answer: "):
            answered(server, provider)


def test_a_budget_is_shared_by_the_models_that_are_given_it() -> None:
    """A run has one purse, whichever models it asks."""
    budget = Budget(max_calls=2)
    with ModelServer() as server:
        for provider in ("openai", "anthropic"):
            opened(server, provider, budget).generate(ASKED)
        with pytest.raises(ProviderError, match="this run has spent 2 calls"):
            opened(server, "ollama", budget).generate(ASKED)
        assert len(server.asked) == 2
    assert budget.tokens == 36


def test_nothing_is_sent_before_the_model_is_asked(provider: str) -> None:
    """Opening is free, and works without a network."""
    with ModelServer() as server:
        model = opened(server, provider)
        assert server.asked == []
        assert "sk-" not in repr(model)


def test_text_of_every_kind_arrives_as_it_was(provider: str) -> None:
    """Scripts, control characters and quotes; a lone surrogate does not break the request."""
    text = 'früh "¿\\n 東京\u2028\x00 🎈 \udc80'

    def echo(asked: Asked) -> Reply:
        return good(asked.document["messages"][-1]["content"])

    with ModelServer(rule=echo) as server:
        assert opened(server, provider).generate([Message("user", text)]).text == text
