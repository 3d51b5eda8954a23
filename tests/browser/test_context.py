"""The page of what agents read, in a real Chromium."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import CORRECTED, settled

from commonplace.server.access import PageSession


def test_a_context_is_shown_token_by_token_and_what_is_left_out_with_its_reason(page: Page) -> None:
    settled(page, "/context?task=database+for+billing")
    tokens = page.locator("#context .tokens span")
    assert CORRECTED in page.locator("#context .tokens").inner_text()
    count = int(page.locator("#context > p").first.inner_text().split(" ")[0])
    assert tokens.last.get_attribute("title") == f"token {count}"
    left_out = page.locator("#context .omitted li")
    assert left_out.count() > 0
    reasons = {each.split(":")[0] for each in left_out.all_inner_texts()}
    assert reasons <= {"weak", "no room", "below the minimum score", "same text as a better hit", "beyond the limit"}, (
        reasons
    )
    assert "too weak for a hook" in {
        each.split(":")[0] for each in page.locator("#injection .omitted li").all_inner_texts()
    }
    many = tokens.count()
    page.get_by_label("At most").fill("128")
    expect(page.locator("#context > p").first).to_contain_text("of at most 128 tokens")
    assert page.locator("#context .omitted b", has_text="no room").count() > 0
    assert tokens.count() < many


@pytest.mark.parametrize("namespace", ["hooked"])
def test_the_log_of_injections_names_the_memories_and_the_start_of_a_session_is_shown(
    page: Page, server: httpx.Client, session: PageSession, namespace: str
) -> None:
    own = {"namespace": namespace}
    settled(page, f"/context?namespace={namespace}")
    expect(page.locator("#log")).to_have_text("No hook has added anything within a day.")
    session.is_editing = True
    server.post("/v1/memories", json={"content": "Greta likes tea", "id": "tea", "tier": "long"}, params=own)
    server.post("/v1/injection", json={"conversation": "morning"}, params=own)
    session.is_editing = False
    page.reload()
    expect(page.locator("#log > ul > li")).to_have_count(1)
    expect(page.locator("#log")).to_contain_text("to conversation")
    expect(page.locator("#log").get_by_role("link", name="Greta likes tea")).to_be_visible()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#context .tokens")).to_contain_text("Greta likes tea")
    assert server.get("/v1/memories/tea", params=own).json()["use_count"] == 0, "to look is no use"
