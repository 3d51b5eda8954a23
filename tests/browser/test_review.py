"""What waits for a person, in a real Chromium: why it is asked, arrows, and what is left for later."""

from __future__ import annotations

import httpx
from playwright.sync_api import Page, expect
from tests.browser.conftest import settled


def test_a_question_says_why_and_is_left_for_later_or_decided_by_an_arrow(page: Page, server: httpx.Client) -> None:
    settled(page, "/review?namespace=later")
    first, second = page.locator(".item").nth(0), page.locator(".item").nth(1)
    expect(first).to_be_focused()
    expect(first.locator(".why")).to_have_text("both are said to hold from the same moment on")
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
    page.get_by_role("switch", name="Edit").click()
    second.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#count")).to_have_text("1 to decide")
    left = server.get("/v1/questions", params={"namespace": "later"}).json()["questions"]
    assert [other in side["text"] for each in left for side in each["sides"]] == [True, True]
    page.keyboard.press("l")
    expect(page.locator("#message")).to_contain_text("nothing else does")
