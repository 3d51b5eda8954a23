"""Specs that refer to others: only beside them, in the registry, or on a network that was allowed."""

from __future__ import annotations

import contextlib
import socketserver
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.serving import Serving
from tests.unit.specs.runner import asked, spec, written

from commonplace.settings import Settings
from commonplace.settings.schema import SpecSettings
from commonplace.specs import plan

OTHER = spec({"t": {"prompts": {"user": "other"}}})


def settings(registry: Path | str = "", network: str = "off") -> Settings:
    return replace(Settings(), specs=SpecSettings(registry=str(registry), network=network))


def delegated(place: Path, reference: str, chosen: Settings | None = None) -> dict[str, Any]:
    main = written(place, "main.yaml", spec({"t": {"spec": reference}}))
    return asked(main, "t", {}, "1", settings=chosen or Settings())


def refusal(place: Path, reference: str, chosen: Settings | None = None) -> str:
    done = delegated(place, reference, chosen)
    assert (done["code"], done["stage"], done["task"]) == ("SPEC_LOAD_ERROR", "delegation", "t"), done
    message: str = done["error"]
    return message


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory, with specs outside of it."""
    written(tmp_path, "outside.yaml", OTHER)
    inside = tmp_path / "project"
    inside.mkdir()
    return inside


@pytest.mark.parametrize(
    "reference", ["../outside.yaml", "a/../../outside.yaml", "~/outside.yaml", "C:\\x.yaml", "..\\x"]
)
def test_a_path_that_leaves_the_directory_is_refused(project: Path, reference: str) -> None:
    assert "leaves the directory" in refusal(project, reference)


def test_an_absolute_path_is_refused(project: Path) -> None:
    assert "leaves the directory" in refusal(project, str(project.parent / "outside.yaml"))


def test_a_link_that_leaves_the_directory_is_refused(project: Path) -> None:
    (project / "link.yaml").symlink_to(project.parent / "outside.yaml")
    (project / "up").symlink_to(project.parent)
    assert "is a link that leaves" in refusal(project, "link.yaml")
    assert "is a link that leaves" in refusal(project, "up/outside.yaml")


def test_what_a_refused_reference_points_to_is_not_told(project: Path) -> None:
    (project.parent / "secret.yaml").write_text("password: hunter2", encoding="utf-8")
    (project / "link.yaml").symlink_to(project.parent / "secret.yaml")
    assert "hunter2" not in refusal(project, "link.yaml")


def test_a_directory_below_is_inside_and_has_its_own_below(project: Path) -> None:
    written(project, "sub/middle.yaml", spec({"t": {"spec": "deep/last.yaml"}}))
    written(project, "sub/deep/last.yaml", OTHER)
    done = delegated(project, "sub/middle.yaml")
    assert (done["prompt"], done["delegated_to"]) == ("other", f"{project.resolve()}/sub/middle.yaml#t")


@pytest.mark.parametrize(
    "reference",
    [
        "missing.yaml",
        "a\0b.yaml",
        ".",
        "circle/s.yaml",
        "ftp://x.example/s.yaml",
        "https://[/s.yaml",
        "oa://one",
        "oa://a/b/c",
        f"oa://{'a' * 300}/b",
        f"https://x.example/{'a' * 5_000}",
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(project: Path, reference: str) -> None:
    (project / "circle").symlink_to("circle")
    assert refusal(project, reference, settings(project))


def test_a_document_without_a_file_has_no_paths_to_follow() -> None:
    done = asked(spec({"t": {"spec": "other.yaml"}}), "t")
    assert done["code"] == "SPEC_LOAD_ERROR"
    assert "has no directory" in done["error"]


def test_circles_of_specs_are_found_before_any_call(project: Path) -> None:
    written(project, "b.yaml", spec({"t": {"spec": "main.yaml"}, "u": {"spec": "./b.yaml"}}))
    written(project, "main.yaml", spec({"first": {}, "t": {"spec": "b.yaml", "depends_on": ["first"]}}))
    done = asked(project / "main.yaml", "t", {}, generator=lambda system, user: pytest.fail("asked"))
    assert (done["code"], done["stage"], done["task"]) == ("DELEGATION_CYCLE_ERROR", "delegation", "t")
    alone = asked(project / "b.yaml", "u")
    assert alone["code"] == "DELEGATION_CYCLE_ERROR"


def test_dependencies_of_the_task_that_is_delegated_to_run_before_it(project: Path) -> None:
    written(project, "other.yaml", spec({"pre": {}, "t": {"depends_on": ["pre"], "prompts": {"user": "{a} {b}"}}}))
    main = written(project, "main.yaml", spec({"own": {}, "t": {"spec": "other.yaml", "depends_on": ["own"]}}))
    done = asked(main, "t", {}, {"a": 1, "b": 1}, {"b": 2}, "3")
    assert (done["prompt"], list(done["chain"]), done["output"]) == ("1 2", ["own", "pre"], 3)


def test_a_few_specs_cannot_stand_for_thousands_of_calls(project: Path) -> None:
    """Ten delegates at each of five levels would be a hundred thousand calls."""
    for level in range(5):
        below = {f"d{n}": {"spec": f"s{level + 1}.yaml", "task": "t"} for n in range(10)}
        written(project, f"s{level}.yaml", spec({**below, "t": {"depends_on": list(below)}}))
    written(project, "s5.yaml", OTHER)
    done = asked(project / "s0.yaml", "t", {}, generator=lambda system, user: pytest.fail("asked"))
    assert (done["code"], done["error"]) == ("RUN_ERROR", "more than 100 tasks would run; split the spec")


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("oa://prime-vector/sentiment", "prime-vector/sentiment/latest/spec.yaml"),
        ("oa://prime-vector/sentiment@1.0.0", "prime-vector/sentiment/1.0.0/spec.yaml"),
        (f"{plan.REGISTRY_URL}/a/b/latest/spec.yaml", "a/b/latest/spec.yaml"),
        ("https://specs.example/team/s.yaml", "specs.example/team/s.yaml"),
    ],
)
def test_a_shared_reference_is_found_in_the_registry(project: Path, reference: str, place: str) -> None:
    registry = project.parent / "registry"
    assert f"put it there as {place}" in refusal(project, reference, settings(registry))
    written(registry, place, OTHER)
    done = delegated(project, reference, settings(registry))
    assert done["prompt"] == "other"
    assert done["delegated_to"].startswith("https://")
    assert "a registry, since none is set" in refusal(project, reference)


@pytest.mark.parametrize(
    "reference",
    [
        "oa://../outside",
        "oa://a/b@../../outside",
        "https://specs.example/../../outside.yaml",
        "https://../outside.yaml",
        "https://user:pass@specs.example/s.yaml",
    ],
)
def test_a_shared_reference_cannot_leave_the_registry(project: Path, reference: str) -> None:
    registry = project.parent / "registry"
    (registry / "specs.example").mkdir(parents=True)
    message = refusal(project, reference, settings(registry))
    assert "pass" not in message.replace("specs.example", "")


def test_a_registry_in_the_home_of_nobody_is_told(project: Path) -> None:
    assert "~nobody-of-that-name" in refusal(project, "oa://a/b", settings("~nobody-of-that-name/specs"))


def test_a_link_in_the_registry_cannot_leave_it(project: Path) -> None:
    registry = project.parent / "registry" / "a" / "b" / "latest"
    registry.mkdir(parents=True)
    (registry / "spec.yaml").symlink_to(project.parent / "outside.yaml")
    assert "is a link that leaves" in refusal(project, "oa://a/b", settings(project.parent / "registry"))


def test_a_spec_of_the_registry_has_no_paths_to_follow(project: Path) -> None:
    """What it would find beside it is not what its author put there."""
    registry = project.parent / "registry"
    written(registry, "a/b/latest/spec.yaml", spec({"t": {"spec": "other.yaml"}}))
    written(registry, "a/b/latest/other.yaml", OTHER)
    assert "has no directory" in refusal(project, "oa://a/b", settings(registry))


class _Shelf(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        bodies = {"/spec.yaml": str(OTHER).replace("'", '"'), "/huge.yaml": "#" * (1024 * 1024 + 1)}
        if self.path == "/moved.yaml":
            self.send_response(302)
            self.send_header("Location", "/spec.yaml")
            self.end_headers()
        elif self.path == "/cut.yaml":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"a: 1")
        elif self.path in bodies:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bodies[self.path].encode())
        else:
            self.send_error(404)


@pytest.fixture
def shelf() -> Iterator[str]:
    """The address of a server that has specs."""
    with Serving(_Shelf) as server:
        yield server.address


def test_an_address_is_fetched_where_the_network_is_allowed_and_only_there(project: Path, shelf: str) -> None:
    assert "allow the network with specs.network" in refusal(project, f"{shelf}/spec.yaml")
    done = delegated(project, f"{shelf}/spec.yaml", settings(network="on"))
    assert (done["prompt"], done["delegated_to"]) == ("other", f"{shelf}/spec.yaml#t")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("missing.yaml", "answered 404"),
        ("moved.yaml", "answered 302"),
        ("huge.yaml", "more than 1,048,576 bytes"),
        ("cut.yaml", "could not be reached: IncompleteRead"),
    ],
)
def test_what_is_no_small_spec_at_that_address_is_refused(project: Path, shelf: str, name: str, told: str) -> None:
    assert told in refusal(project, f"{shelf}/{name}", settings(network="on"))


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0"]
)
def test_a_server_that_sends_a_byte_at_a_time_is_not_waited_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    """Neither in its headers nor in what it says of a part's size: each byte would begin another wait."""
    monkeypatch.setattr(plan, "_TOTAL_S", 0.2)

    class Dripping(socketserver.StreamRequestHandler):
        stub: Serving

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                self.wfile.write(head)
                while not self.stub.closing.wait(0.01):
                    self.wfile.write(b"0")

    with Serving(Dripping, socketserver.ThreadingTCPServer) as server:
        told = refusal(project, f"{server.address}/s.yaml", settings(network="on"))
        assert "did not send the spec in time" in told


def test_a_server_that_is_not_there_is_told(project: Path) -> None:
    assert "could not be reached" in refusal(project, "http://127.0.0.1:9/spec.yaml", settings(network="on"))
