"""The page in a real Chromium: the list of all memories, a memory's uses, what changed today, clients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import ROWS, press, settled, switch_on_edit

from commonplace.server.access import PageSession


def test_a_long_list_is_walked_to_its_end_and_only_rows_in_sight_are_there(page: Page) -> None:
    settled(page, "/memories?namespace=long&order=stored")
    expect(page.locator("#total")).to_have_text("1500")
    expect(page.locator("#table")).to_have_attribute("aria-rowcount", "1501")
    page.locator(f"{ROWS} a").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Whale 1 was seen")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="Whale 1499 was seen")).to_be_focused()
    expect(page.locator(f"{ROWS}[data-waits=yes]")).to_have_count(0)
    assert page.locator(ROWS).count() < 200
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("link", name="Whale 1498 was seen")).to_be_focused()
    page.mouse.wheel(0, -30_000)
    expect(page.get_by_role("link", name="Whale 1499 was seen")).to_have_count(0)
    expect(page.locator(f"{ROWS}[data-waits=yes]")).to_have_count(0)
    page.evaluate("scrollTo(0, 700 * 44)")
    expect(page.get_by_role("link", name="Whale 700 was seen")).to_be_in_viewport()
    expect(page.locator(f"{ROWS}[data-waits=yes]")).to_have_count(0)
    heights = page.locator(ROWS).evaluate_all("rows => rows.map((each) => each.getBoundingClientRect().height)")
    assert set(heights) == {44}


def test_memories_are_filtered_by_the_time_that_they_tell_of(page: Page) -> None:
    settled(page, "/memories?namespace=wide")
    expect(page.locator("#total")).to_have_text("52")
    page.get_by_label("From").fill("2035-01-01")
    expect(page.locator(ROWS)).to_have_count(1)
    page.get_by_label("To", exact=True).fill("2034-12-31")
    expect(page.locator("#none")).to_be_visible()
    page.reload()
    expect(page.get_by_label("From")).to_have_value("2035-01-01")
    assert page.get_by_label("To", exact=True).input_value() == "2034-12-31"


@pytest.mark.parametrize("page", [{"timezone_id": "America/New_York"}], indirect=True, ids=["new york"])
def test_a_date_without_a_time_is_the_same_date_west_of_greenwich(
    page: Page, server: httpx.Client, session: PageSession
) -> None:
    session.is_editing = True
    body = {"content": "The regatta starts", "id": "regatta", "at": "2026-03-01"}
    server.post("/v1/memories", json=body, params={"namespace": "west"})
    session.is_editing = False
    settled(page, "/memory?namespace=west&id=regatta")
    times = page.locator("time").all_inner_texts()
    assert "Mar 1, 2026" in times
    assert not any("Feb 28" in each for each in times)


def test_a_memory_says_when_it_was_found_and_where_it_stands_in_markdown(page: Page, server: httpx.Client) -> None:
    settled(page, "/memory?id=anchor&namespace=used")
    expect(page.locator("#uses li")).to_have_count(2)
    expect(page.locator("#uses li").last).to_contain_text("recalled, place 1")
    expect(page.locator("#fading circle")).to_have_count(2)
    expect(page.locator("#fading .now")).to_have_count(1)
    expect(page.locator("#place code")).to_contain_text("memory/")
    expect(page.locator("#place pre")).to_contain_text("The anchor weighs nine tons")
    stored = server.get("/v1/memories/anchor", params={"namespace": "used"}).json()
    assert stored["content"] in page.locator("#place pre").inner_text()


def test_a_correction_of_a_moment_ago_is_seen_in_an_old_store(
    page: Page, server: httpx.Client, session: PageSession
) -> None:
    session.is_editing = True
    own = {"namespace": "used"}
    server.post("/v1/memories", json={"content": "The rudder is made of oak", "id": "rudder"}, params=own)
    server.patch("/v1/memories/rudder", json={"content": "The rudder is made of steel"}, params=own)
    session.is_editing = False
    settled(page, "/memory?id=rudder&namespace=used")
    article = page.locator("article.memory")
    page.get_by_label("As of").fill("0")
    expect(article).to_have_text("The rudder is made of oak")
    page.get_by_label("As of").fill("1000")
    expect(article).to_have_text("The rudder is made of steel")
    page.get_by_role("button", name="As it was then").click()
    expect(article).to_have_text("The rudder is made of oak")
    expect(page.get_by_label("As of")).to_be_focused()
    seen = server.get("/v1/memories/rudder", params={**own, "as_of": page.locator("[name=as_of]").input_value()})
    assert seen.json()["content"] == "The rudder is made of oak"
    page.keyboard.press("End")
    expect(article).to_have_text("The rudder is made of steel")


def test_an_answer_that_comes_late_is_not_shown(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/memories/anchor?*as_of=*", hold)
    settled(page, "/memory?id=anchor&namespace=used")
    article, slider = page.locator("article.memory"), page.get_by_label("As of")
    with page.expect_request("**/v1/memories/anchor?*as_of=*"):
        slider.fill("0")
    with page.expect_response(re.compile(r"/v1/memories/anchor\?(?!.*as_of)")):
        slider.fill("1000")
    expect(page.locator("#forget")).to_have_count(1)
    with page.expect_response("**/v1/memories/anchor?*as_of=*"):
        held[0].continue_()
    page.evaluate("new Promise((done) => setTimeout(done))")
    assert "as it was known then" not in page.locator("#memory").inner_text()
    expect(article).to_have_text("The anchor weighs nine tons")


def test_a_double_click_is_one_change_and_the_focus_stays(
    page: Page, server: httpx.Client, session: PageSession
) -> None:
    session.is_editing = True
    own = {"namespace": "twice"}
    server.post("/v1/memories", json={"content": "Mia works at Acme.", "id": "mia"}, params=own)
    settled(page, "/memory?id=mia&namespace=twice")
    page.get_by_role("button", name="This is right").dblclick()
    expect(page.locator("#message")).to_contain_text("Noted")
    expect(page.get_by_role("button", name="This is right")).to_be_focused()
    assert server.get("/v1/memories/mia", params=own).json()["review_count"] == 1
    page.keyboard.press("Escape")
    expect(page.locator("#message")).to_be_hidden()
    page.locator("#facts").get_by_role("link", name="Acme").click()
    expect(page.locator("#trail li")).to_have_text(["Acme"])


def test_what_changed_today_is_shown_and_undone(page: Page, server: httpx.Client, session: PageSession) -> None:
    session.is_editing = True
    own = {"namespace": "today"}
    for id_, text in (("new", "The lamp is new"), ("old", "The lamp is old"), ("gone", "The lamp is gone")):
        server.post("/v1/memories", json={"content": text, "id": id_, "tags": ["lamp"]}, params=own)
    server.patch("/v1/memories/old", json={"content": "The lamp is very old", "tags": ["light"]}, params=own)
    server.post("/v1/memories/gone/archive", json={}, params=own)
    # Else midnight may lie between what is written and the page.
    page.clock.set_fixed_time(server.get("/v1/memories/new", params=own).json()["updated_at"])
    settled(page, "/?namespace=today")
    today = page.locator("#today")
    expect(today.get_by_role("heading")).to_have_text(["New", "Corrected", "Archived"])
    today.locator("li", has_text="very old").get_by_role("button", name="Undo").click()
    expect(page.locator("#message")).to_contain_text("Undone.")
    found = server.get("/v1/memories/old", params=own).json()
    assert (found["content"], found["tags"], found["version"]) == ("The lamp is old", ["lamp"], 3)
    today.get_by_role("button", name="Restore").click()
    expect(today.get_by_role("heading")).to_have_text(["New", "Corrected"])
    assert server.get("/v1/memories/gone", params=own).json()["status"] == "active"
    today.locator("li", has_text="is new").get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator(".receipt")).to_contain_text("Verified")
    page.get_by_role("button", name="Close", exact=True).last.click()
    expect(today).to_contain_text("1 receipt")


def test_a_client_is_installed_after_a_question(page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.delenv("COMMONPLACE_TEST_BROWSER", raising=False)
    monkeypatch.chdir(tmp_path)
    settled(page, "/store")
    client = page.locator("#clients li", has_text="Codex")
    expect(client.get_by_role("button")).to_be_hidden()
    switch_on_edit(page)
    client.get_by_role("button", name="Install…").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert not (tmp_path / "codex").exists()
    client.get_by_role("button", name="Install…").click()
    page.get_by_role("button", name="Install", exact=True).click()
    expect(page.locator("#message")).to_contain_text("Written: ")
    expect(client).to_contain_text("installed")
    assert "commonplace" in (tmp_path / "codex" / "config.toml").read_text()


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_memory_is_found_corrected_seen_as_it_was_and_forgotten(
    page: Page, server: httpx.Client, session: PageSession, by: str
) -> None:
    session.is_editing = True
    own = {"namespace": f"walk {by}"}
    server.post("/v1/memories", json={"content": "The spare key hangs behind the door", "id": "key"}, params=own)
    session.is_editing = False

    def do(name: str, key: str = "Enter") -> None:
        if by == "mouse":
            kind: Literal["switch", "button"] = "switch" if name == "Edit" else "button"
            page.get_by_role(kind, name=name, exact=kind == "button").last.click()
        else:
            press(page, name, key)

    settled(page, f"/?namespace=walk+{by}")
    expect(page.get_by_label("What do you want to find?")).to_be_focused()
    page.keyboard.type("spare key")
    do("Recall")
    page.wait_for_url("**/recall?*")
    link = page.locator("#hits").get_by_role("link").first
    expect(link).to_be_visible()
    if by == "mouse":
        link.click()
    else:
        link.focus()
        page.keyboard.press("Enter")
    page.wait_for_url("**/memory?*")
    expect(page.locator("article.memory")).to_have_text("The spare key hangs behind the door")
    do("Edit", "Space")
    do("Edit…")
    expect(page.get_by_role("dialog").get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("The spare key lies under the mat")
    do("Save")
    expect(page.locator("article.memory")).to_have_text("The spare key lies under the mat")
    settled(page, page.url)
    slider = page.get_by_label("As of")
    slider.focus()
    if by == "mouse":
        slider.click(position={"x": 1, "y": 5})
    else:
        page.keyboard.press("Home")
    expect(page.locator("article.memory")).to_have_text("The spare key hangs behind the door")
    page.keyboard.press("End")
    expect(page.locator("article.memory")).to_have_text("The spare key lies under the mat")
    do("Forget…")
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    do("Forget")
    expect(page.locator(".receipt")).to_contain_text("Verified")
    do("Close")
    page.wait_for_url("**/memories?*")
    assert server.get("/v1/memories/key", params=own).status_code == 404
