"""The recall lab in a real Chromium: what is right and wrong, why something scored too low, further phrasings."""

from __future__ import annotations

import re
from typing import Any

import httpx
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import CORRECTED, press, settled, switch_on_edit


def golden(server: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get("/v1/golden").json()["golden"]
    return [{name: each[name] for name in ("query", "relevant", "irrelevant")} for each in found]


def test_what_is_said_of_a_hit_is_a_golden_query_that_health_asks(page: Page, server: httpx.Client) -> None:
    settled(page, "/recall?query=database++for+billing&limit=3")
    first, second = page.locator("#hits > li").nth(0), page.locator("#hits > li").nth(1)
    expect(first.get_by_role("button", name="Right")).to_be_hidden()
    switch_on_edit(page)
    first.get_by_role("button", name="Right").click()
    expect(first.get_by_role("button", name="Right")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#message")).to_contain_text("health asks this query from now on")
    second.get_by_role("button", name="Wrong").click()
    expect(second.locator(".tag", has_text="marked wrong")).to_be_visible()
    (kept,) = golden(server)
    assert (kept["query"], kept["relevant"], len(kept["irrelevant"])) == ("database for billing", ["billing"], 1)
    asked = server.get("/v1/health").json()["golden"]
    assert [each["found"] for each in asked] == [["billing"]]
    page.reload()
    expect(first.locator(".tag", has_text="marked right")).to_be_visible()
    expect(second.locator(".tag", has_text="marked wrong")).to_be_visible()
    for item, word in ((first, "Right"), (second, "Wrong")):
        item.get_by_role("button", name=word).focus()
        page.keyboard.press("Enter")
        expect(item.locator(".verdict .tag")).to_have_count(0)
    expect(page.locator("#message")).to_contain_text("Taken back.")
    assert golden(server) == []


def test_a_hit_is_marked_by_keyboard_alone(page: Page, server: httpx.Client) -> None:
    settled(page, "/recall?query=harbour&namespace=work")
    press(page, "Edit", "Space")
    press(page, "Right", "Space")
    expect(page.locator("[data-verdict=right]").first).to_be_focused()
    expect(page.locator("[data-verdict=right]").first).to_have_attribute("aria-pressed", "true")
    kept = server.get("/v1/golden?namespace=work").json()["golden"]
    assert [each["relevant"] for each in kept] == [["harbour"]]
    page.keyboard.press("Space")
    expect(page.locator("#message")).to_contain_text("Taken back.")
    assert server.get("/v1/golden?namespace=work").json()["golden"] == []


def test_it_says_of_each_hit_below_the_floor_why_it_is_there(page: Page) -> None:
    settled(page, "/recall?query=boiling+point+of+tungsten&limit=50")
    below = page.locator("#hits > li.below .why")
    expect(below.first).to_be_visible()
    reasons = below.all_inner_texts()
    assert len(reasons) == page.locator("#hits > li.below").count()
    assert all(re.match(r"(?:Held back|0\.\d\d below the minimum score|Same )", each) for each in reasons), reasons
    assert "it does not say boiling, point, tungsten." in reasons[0]


def test_a_hit_that_a_newer_one_may_have_overtaken_says_so(page: Page) -> None:
    def overtaken(route: Route) -> None:
        answer = route.fetch().json()
        answer["found"]["hits"][0]["superseded_by"] = "the newer"
        route.fulfill(json=answer)

    page.route("**/page/recall*", overtaken)
    settled(page, "/recall?query=which+database+does+billing+use&limit=3")
    first = page.locator("#hits > li").first
    expect(first).to_contain_text("Older: a newer one may have replaced it.")
    assert first.get_by_role("link", name="a newer one").get_attribute("href") == "/memory?id=the+newer"
    expect(first.locator("mark")).to_have_text(["database", "billing"])


def test_a_query_that_was_not_sent_lets_the_hits_stand(page: Page) -> None:
    settled(page, "/recall?query=database+for+billing&limit=3")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_label("Query", exact=True).fill("boat")
    page.locator("#hits summary").first.click()
    expect(page.locator("#hits details").first).to_contain_text("Words that matched: database, billing")
    assert not [each for each in asked if "/page/recall" in each]


def test_further_phrasings_are_asked_too_and_can_be_linked_to(page: Page) -> None:
    settled(page, "/recall?query=what+do+we+use")
    for text in ("database for billing", "which store holds invoices"):
        page.get_by_label("Further phrasing", exact=True).last.fill(text)
    page.get_by_role("button", name="Recall", exact=True).click()
    page.wait_for_url("**also=database*&also=which*")
    expect(page.locator("#hits .text").filter(has_text=CORRECTED)).to_have_count(1)
    page.reload()
    fields = page.get_by_label("Further phrasing", exact=True)
    expect(fields).to_have_count(3)
    expect(fields.nth(1)).to_have_value("which store holds invoices")
    assert fields.nth(2).input_value() == ""
