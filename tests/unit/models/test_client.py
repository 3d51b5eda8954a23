"""Asking a server for JSON: what is tried again and how long it waits, and what never ends, leaks or follows."""

from __future__ import annotations

import logging
import threading
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import formatdate
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
    drip_headers,
    dropped,
    dropped_half_way,
    good,
    hang,
    huge,
    refusal,
)

from commonplace.errors import ProviderError
from commonplace.models.client import MAX_ASKED_WAIT_S, Access, Budget, JsonClient, Timing, backoff, retry_after
from commonplace.models.providers import Endpoint, access, address_of
from commonplace.settings import ModelSettings

KEY = "sk-very-secret-0123456789"
NOW = 1_800_000_000.0


@dataclass
class FakeTime:
    """A clock that moves only when someone sleeps."""

    at: float = 1000.0
    slept: list[float] = field(default_factory=list)
    share: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds

    @property
    def timing(self) -> Timing:
        return Timing(lambda: self.at, self.sleep, lambda: NOW, lambda: self.share)


def client(
    server: ModelServer, time: FakeTime | None = None, budget: Budget | None = None, **limits: float
) -> JsonClient:
    access = Access("stub", address_of(server.openai_url), KEY, "STUB_KEY", {"Authorization": f"Bearer {KEY}"})
    timing, max_bytes = (time or FakeTime()).timing, int(limits.pop("max_bytes", 1 << 20))
    return JsonClient(access, ModelSettings(**limits), budget, timing, max_bytes)  # type: ignore[arg-type]


def ask(server: ModelServer, time: FakeTime | None = None, **limits: float) -> dict[str, object]:
    return client(server, time, **limits).post("/chat/completions", {"model": "m"})


@pytest.mark.parametrize("fault", [busy, broken, dropped, dropped_half_way, lambda: refusal(529), lambda: refusal(408)])
def test_passing_faults_are_tried_again(fault: Callable[[], Reply]) -> None:
    """A busy server, one that fails and one that hangs up may all answer the next time."""
    time = FakeTime()
    with ModelServer([fault(), fault(), good("at last")]) as server:
        assert ask(server, time)["model"] == "stub-model"
        assert len(server.asked) == 3
    assert time.slept == [0.25, 0.5]


def test_waits_double_and_are_partly_random_and_bounded() -> None:
    """Half of the step is fixed, so that no retry comes at once; half is random, so that clients spread."""
    assert [backoff(attempt, 0.0) for attempt in range(1, 7)] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    assert [backoff(attempt, 1.0) for attempt in (1, 2, 100, 10_000)] == [0.5, 1.0, 8.0, 8.0]


def test_a_server_that_always_fails_is_given_up_after_the_retries() -> None:
    """The error tells the last answer."""
    time = FakeTime()
    with ModelServer(rule=lambda asked: broken()) as server:
        with pytest.raises(ProviderError, match="answered 500: out of order; try again later") as raised:
            ask(server, time, retries=2)
        assert len(server.asked) == 3
    assert raised.value.status == 500


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 301, 302, 307, 308])
def test_what_is_refused_for_good_is_asked_once(status: int) -> None:
    """Asking again would only cost."""
    with ModelServer(rule=lambda asked: refusal(status, "no way")) as server:
        with pytest.raises(ProviderError, match=f"answered {status}: no way; ") as raised:
            ask(server)
        assert len(server.asked) == 1
    assert raised.value.status == status
    assert raised.value.remedy


@pytest.mark.parametrize(
    "codes",
    [
        {"code": "insufficient_quota"},
        {"type": "insufficient_quota", "code": None},
        {"code": "billing_not_active"},
        {"type": "billing_error"},
    ],
)
def test_an_account_without_money_is_asked_once(codes: dict[str, Any]) -> None:
    """OpenAI says so with 429, and no wait mends it."""
    spent = Reply(status=429, document={"error": {"message": "You exceeded", **codes}})
    with ModelServer(rule=lambda asked: spent) as server:
        with pytest.raises(ProviderError, match="answered 429: You exceeded"):
            ask(server)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached. Add a payment method: https://platform.openai.com/account/billing",
        "no worker for 'Which database does billing use?'",
        "not insufficient_quota, only busy",
    ],
)
def test_a_busy_server_is_asked_again_whatever_its_message_speaks_of(message: str) -> None:
    """It may point to an account's page, or quote what it was asked."""
    with ModelServer([refusal(429, message), refusal(503, message), good("yes")]) as server:
        ask(server)
        assert len(server.asked) == 3


@pytest.mark.parametrize("asked", ["7", "7.0", formatdate(NOW + 7, usegmt=True)])
def test_retry_after_is_honoured_as_seconds_and_as_a_date(asked: str) -> None:
    """RFC 9110, 10.2.3: either form."""
    time = FakeTime()
    with ModelServer([busy(asked), good("yes")]) as server:
        ask(server, time)
    assert time.slept == [7.0]


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    """The caller is told how long, and can decide."""
    time = FakeTime()
    with (
        ModelServer([busy(str(int(MAX_ASKED_WAIT_S) + 1))]) as server,
        pytest.raises(ProviderError, match="answered 429: slow down; try again in 31 s"),
    ):
        ask(server, time)
    assert time.slept == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        (formatdate(NOW - 60, usegmt=True), 0.0),
        ("", 0.0),
        ("-1", 0.0),
        ("soon", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("Wed, 99 Foo 2026", 0.0),
    ],
)
def test_retry_after_that_says_nothing_is_passed_over(header: str, seconds: float) -> None:
    """A date in the past is no wait; nonsense is no wish."""
    assert retry_after(header, NOW) == seconds


def test_no_retry_begins_after_the_time_of_the_call_is_over() -> None:
    """The total holds for the call with all its waits."""
    time = FakeTime()
    with ModelServer(rule=lambda asked: broken()) as server:
        with pytest.raises(ProviderError, match="answered 500"):
            ask(server, time, retries=10, total_timeout_s=2.0)
        assert len(server.asked) == 4
    assert time.slept == [0.25, 0.5, 1.0]


def test_a_call_can_have_less_time_than_the_limits_give_but_never_more() -> None:
    """A query is waited for by someone; an index run is not."""
    time = FakeTime()
    with ModelServer(rule=lambda asked: broken()) as server:
        for total_s, calls in ((0.3, 2), (1_000.0, 4)):
            del server.asked[:]
            with pytest.raises(ProviderError, match="answered 500"):
                asking = client(server, time, retries=10, total_timeout_s=2.0)
                asking.post("/x", {}, deadline=asking.deadline(total_s))
            assert len(server.asked) == calls


@pytest.mark.parametrize("manner", [hang, drip, drip_headers])
def test_no_server_can_hold_a_call(manner: Callable[[], Reply]) -> None:
    """One that says nothing, and one that says a byte now and then for ever: both end with the time that was given."""
    with ModelServer(rule=lambda asked: manner()) as server:
        access = Access("stub", address_of(server.openai_url))
        asking = JsonClient(access, ModelSettings(timeout_s=0.05, total_timeout_s=0.1, retries=0))
        with pytest.raises(ProviderError, match=r"did not answer in time; try again, or raise models\.timeout_s"):
            asking.post("/chat/completions", {})


def test_an_answer_without_end_is_cut_off_at_the_cap() -> None:
    """Memory is ours, not the server's."""
    with (
        ModelServer([huge()]) as server,
        pytest.raises(ProviderError, match="the answer has more than 1,000,000 bytes"),
    ):
        ask(server, max_bytes=1_000_000)


def test_an_answer_that_announces_too_much_is_not_read() -> None:
    """Its length is known before its first byte."""
    with ModelServer([good("x" * 10_000)]) as server, pytest.raises(ProviderError, match="more than 1,000 bytes"):
        ask(server, max_bytes=1000)


@pytest.mark.parametrize(
    "reply", [bad_json(), Reply(body=b""), Reply(body=b"[1]"), Reply(body=b"\xff"), Reply(body=b"[" * 99_999)]
)
def test_an_answer_that_is_no_json_object_is_an_error(reply: Reply) -> None:
    """Some other server may stand at that address."""
    with ModelServer([reply]) as server, pytest.raises(ProviderError, match="no JSON object; check the address"):
        ask(server)


def test_nobody_at_the_address_is_an_error_after_the_retries() -> None:
    """A server that is being restarted comes back."""
    with ModelServer() as server:
        address = address_of(server.openai_url)
    time = FakeTime()
    gone = JsonClient(Access("stub", address), ModelSettings(retries=2), timing=time.timing)
    with pytest.raises(ProviderError, match=r"could not be reached \(Connection refused\); check the network"):
        gone.post("/chat/completions", {})
    assert time.slept == [0.25, 0.5]


def test_the_key_is_sent_and_stays_out_of_errors_logs_and_representations(caplog: pytest.LogCaptureFixture) -> None:
    """Providers like to repeat the key in what they complain about."""
    caplog.set_level(logging.DEBUG)
    replies = [refusal(500, f"bad {KEY}"), refusal(401, f"Incorrect API key provided: {KEY}; {KEY}")]
    with ModelServer(replies) as server:
        asking = client(server)
        with pytest.raises(ProviderError) as raised:
            asking.post("/x", {})
        assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 2
    told = f"{raised.value} {raised.value!r} {asking!r} {asking.access!r} {caplog.text}"
    assert "answered 401: Incorrect API key provided: [key]; [key]; check the key in STUB_KEY" in told
    assert KEY not in told
    chained = raised.value.__cause__ or raised.value.__context__
    assert KEY not in repr(chained)


def test_other_secrets_and_control_characters_of_a_server_stay_out_of_errors() -> None:
    """What it says goes to terminals and logs."""
    message = "no \x1b[31m\n sk-ant-api03-" + "Ab1" * 30 + " " + "x" * 1000
    with ModelServer([refusal(400, message)]) as server, pytest.raises(ProviderError) as raised:
        ask(server)
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "Ab1Ab1" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_no_part_of_a_key_stays_where_a_message_is_cut() -> None:
    """A key of a gateway looks like nothing in particular, so only the whole of it can be found."""
    key = "correct-horse-battery-staple"
    with ModelServer([refusal(400, "it says " + "." * 280 + key + " and more")]) as server:
        access = Access("stub", address_of(server.openai_url), key)
        with pytest.raises(ProviderError) as raised:
            JsonClient(access, ModelSettings(retries=0)).post("/x", {})
    assert "it says" in str(raised.value)
    assert "correct" not in str(raised.value)


def test_a_redirect_is_not_followed() -> None:
    """It would carry the key, and what was asked, to another host."""
    with ModelServer() as elsewhere, ModelServer([refusal(307, "moved", Location=elsewhere.url)]) as server:
        with pytest.raises(ProviderError, match="answered 307: moved; name the address that it leads to"):
            ask(server)
        assert elsewhere.asked == []


def test_a_budget_of_calls_ends_the_run_with_a_remedy() -> None:
    """Retries count: they may be paid for too."""
    budget = Budget(max_calls=2)
    with ModelServer([broken(), good("yes")]) as server:
        asking = client(server, budget=budget)
        asking.post("/chat/completions", {})
        with pytest.raises(ProviderError, match=r"spent 2 calls on models, the limit is 2; raise models\.max_calls"):
            asking.post("/chat/completions", {})
        assert len(server.asked) == 2
    assert budget.calls == 2


def test_a_budget_of_tokens_ends_the_run() -> None:
    """What an answer costs is known only when it has come, so the one that reaches the limit is the last."""
    budget = Budget(max_tokens=10)
    budget.take_call()
    budget.count_tokens(6 + 5)
    with pytest.raises(ProviderError, match=r"spent 11 tokens on models, the limit is 10; raise models\.max_tokens"):
        budget.take_call()
    assert budget.tokens == 11


def test_no_more_requests_are_under_way_than_allowed() -> None:
    """Servers count them too; and as many as allowed are."""
    together, lock = threading.Barrier(2, timeout=10), threading.Lock()
    running: list[Asked] = []
    most = 0

    def answer(asked: Asked) -> Reply:
        nonlocal most
        with lock:
            running.append(asked)
            most = max(most, len(running))
        together.wait()
        with lock:
            running.remove(asked)
        return good("yes")

    with ModelServer(rule=answer) as server:
        asking = client(server, concurrency=2)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: asking.post("/chat/completions", {}), range(16)))
        assert len(server.asked) == 16
    assert most == 2


def test_waiting_for_a_turn_ends_too() -> None:
    """Every wait has an end."""
    with ModelServer() as server:
        asking = client(server, concurrency=1, total_timeout_s=0.01)
        asking._slots.acquire()
        with pytest.raises(ProviderError, match="was asked by 1 others for too long; try again"):
            asking.post("/chat/completions", {})
        assert server.asked == []


def test_a_plain_request_goes_through_a_proxy_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the whole address, and its own password."""
    with ModelServer([good("yes")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("://", "://me:p%40ss@"))
        asking = JsonClient(Access("stub", Endpoint("http", "models.internal", 8080, "/v1")), ModelSettings(retries=0))
        asking.post("/chat/completions", {})
        (asked,) = proxy.asked
    assert asked.path == "http://models.internal:8080/v1/chat/completions"
    assert asked.headers["host"] == "models.internal:8080"
    assert asked.headers["proxy-authorization"] == f"Basic {b64encode(b'me:p@ss').decode()}"


def test_a_proxy_that_refuses_a_tunnel_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes to an https address is encrypted before it reaches a proxy, or not sent."""
    with ModelServer() as proxy:
        monkeypatch.setenv("all_proxy", proxy.url.replace("://", "://me:hidden@"))
        reached = access("openai", environ={"OPENAI_API_KEY": KEY})
        with pytest.raises(ProviderError, match=r"answers 501 to .* api\.openai\.com; check the proxy's") as raised:
            JsonClient(reached, ModelSettings(retries=0)).post("/chat/completions", {})
        assert proxy.asked == []
    assert raised.value.status == 501
    assert "hidden" not in f"{raised.value} {raised.value.__cause__!r}"


@pytest.mark.parametrize("no_proxy", ["models.internal", "*", " .internal , x"])
def test_no_proxy_names_what_is_asked_directly(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    with ModelServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", no_proxy)
        asking = JsonClient(Access("stub", Endpoint("http", "models.internal", 1, "/v1")), ModelSettings(retries=0))
        with pytest.raises(ProviderError, match="could not be reached"):
            asking.post("/chat/completions", {})
        assert proxy.asked == []


def test_this_machine_is_never_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy can reach it, and Ollama stands there."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with ModelServer([good("yes")]) as server:
        assert ask(server)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://me:hidden@127.0.0.1:1",
        "http://me:hidden@a..b:1",
        f"{'a' * 64}.example",
        "http://me:hidden@127.0.0.1:99999",
        "http:/me:hidden@127.0.0.1:1",
        "http://",
    ],
)
def test_a_proxy_that_there_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, scheme: str, proxy: str) -> None:
    """Sending past it would be worse than not sending; its password is in no message."""
    monkeypatch.setenv(f"{scheme}_proxy", proxy)
    asking = JsonClient(Access("stub", Endpoint(scheme, "models.internal", 1, "/v1")), ModelSettings(retries=0))
    with pytest.raises(ProviderError, match=f"proxy for {scheme} is not a valid http:// address.*no_proxy") as raised:
        asking.post("/x", {})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("manner", [hang, drip_headers, drip])
def test_a_call_that_ran_out_of_time_leaves_no_thread(manner: Callable[[], Reply]) -> None:
    """A server that goes on sending could hold it, and its connection, for ever."""
    before = set(threading.enumerate())
    with ModelServer(rule=lambda asked: manner()) as server:
        asking = JsonClient(
            Access("stub", address_of(server.openai_url)), ModelSettings(timeout_s=5, total_timeout_s=0.3, retries=0)
        )
        with pytest.raises(ProviderError, match="did not answer in time"):
            asking.post("/x", {})
        left = [each for each in threading.enumerate() if each.name == "commonplace-http" and each not in before]
        for each in left:
            each.join(5)
        assert not any(each.is_alive() for each in left)
