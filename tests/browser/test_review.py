"""What waits for a person, in a real Chromium: why it is asked, arrows, and what is left for later."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import GRAPH, press, settled, switch_on_edit


def test_a_question_says_why_and_is_left_for_later_or_decided_by_an_arrow(page: Page, server: httpx.Client) -> None:
    settled(page, "/review?namespace=later")
    first, second = page.locator(".item").nth(0), page.locator(".item").nth(1)
    expect(first).to_be_focused()
    expect(first.locator(".why")).to_have_text("both begin at the same time")
    name, other = ("Ada", "Bob") if "Ada" in first.inner_text() else ("Bob", "Ada")
    page.keyboard.press("l")
    expect(first).to_contain_text(other)
    expect(first).to_be_focused()
    expect(page.locator("#message")).to_contain_text("waits behind the others")
    page.reload()
    expect(first).to_contain_text(other)
    expect(second).to_contain_text(name)
    second.get_by_role("button", name="Later (l)").click()
    expect(second).to_be_focused()
    switch_on_edit(page)
    second.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#count")).to_have_text("1 to decide")
    left = server.get("/v1/questions", params={"namespace": "later"}).json()["questions"]
    assert [other in side["text"] for each in left for side in each["sides"]] == [True, True]
    page.keyboard.press("l")
    expect(page.locator("#message")).to_contain_text("nothing else does")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_contradiction_is_settled_and_the_graph_is_played_across_it(page: Page, by: str) -> None:
    def do(name: str) -> None:
        if by == "mouse":
            page.get_by_role("button", name=name, exact=True).click()
        else:
            press(page, name, "Enter")

    settled(page, "/review?namespace=played")
    waiting = page.locator(".item").count()
    name = page.locator(".item .side-card p").first.inner_text().split()[0]
    if by == "mouse":
        switch_on_edit(page)
        page.locator(".item").first.get_by_role("button", name="This one is right (1)").click()
    else:
        press(page, "Edit", "Space")
        page.locator(".item").first.focus()
        page.keyboard.press("1")
    expect(page.locator("#message")).to_contain_text("Settled.")
    expect(page.locator(".item")).to_have_count(waiting - 1)
    settled(page, "/graph?namespace=played")
    expect(page.get_by_label("Person, place, thing")).to_be_focused()
    page.keyboard.type(name)
    do("Search")
    expect(page.locator("#found").get_by_role("button", name=name)).to_be_visible()
    do(name)
    expect(page.locator("#trail li")).to_have_text([name])
    facts = page.locator("#facts li:visible").filter(has_text=f"{name} works for")
    expect(facts).to_have_count(2)
    assert sorted(facts.evaluate_all("some => some.map((each) => each.className)")) == ["ended", "open"]
    page.get_by_label("Time", exact=True).focus()
    page.keyboard.press("Home")
    expect(facts).to_have_count(0)
    do("Play")
    expect(page.locator("#moment-shown")).to_have_text("all times until now")
    expect(facts).to_have_count(2)
    states = page.evaluate(f"{GRAPH}.edges('.ended').map((each) => each.source().data('label'))")
    assert name in states
