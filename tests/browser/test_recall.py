"""The recall lab in a real Chromium: what is right and wrong, why something fell below the floor, further phrasings."""

from __future__ import annotations

import re
from typing import Any

import httpx
from playwright.sync_api import Page, expect
from tests.browser.conftest import CORRECTED, press, settled


def golden(server: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get("/v1/golden").json()["golden"]
    return [{name: each[name] for name in ("query", "relevant", "irrelevant")} for each in found]


def test_what_is_said_of_a_hit_is_a_golden_query_that_health_asks(page: Page, server: httpx.Client) -> None:
    settled(page, "/recall?query=database++for+billing&limit=3")
    first, second = page.locator("#hits > li").nth(0), page.locator("#hits > li").nth(1)
    expect(first.get_by_role("button", name="Right")).to_be_hidden()
    page.get_by_role("switch", name="Edit").click()
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
    assert all(re.match(r"(?:Held back|0\.\d\d below the floor|Same )", each) for each in reasons), reasons
    assert "it does not say boiling, point, tungsten." in reasons[0]


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
