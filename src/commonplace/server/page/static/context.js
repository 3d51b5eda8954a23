import { address, attempt, byId, el, fill, get, nothing, parameters, post, quiet, section, time } from "./page.js";

function shown(answer) {
  if (!answer.text) return nothing("Nothing.");
  return [
    el("p", {}, `${answer.tokens} tokens from ${answer.hits.length} texts`, answer.left_out ? `; ${answer.left_out} more had no room` : "", "."),
    el("ul", { class: "list" }, answer.hits.map((hit) => el("li", {}, hit.kind === "memory" ? el("a", { href: address("/memory", { id: hit.owner_id }), dir: "auto" }, hit.text.slice(0, 100)) : el("span", { dir: "auto" }, hit.text.slice(0, 100)), " ", quiet(hit.confidence, " ", time(hit.at))))),
    el("pre", { dir: "auto", tabindex: 0, "aria-label": "The text" }, answer.text),
    answer.notices.map((each) => nothing(each)),
  ];
}

async function ask() {
  const task = byId("task").value;
  history.replaceState(null, "", address("/context", { task }));
  await Promise.all([
    section("context", async () => shown(await post("/context", { task, max_tokens: Number(byId("max").value) }))),
    section("injection", async () => shown(await post("/injection", { prompt: task }))),
  ]);
}

byId("form").addEventListener("submit", (event) => { event.preventDefault(); attempt(ask); });
byId("max").addEventListener("input", () => fill(byId("max-shown"), `${byId("max").value} tokens`));
section("log", async () => {
  const log = await get("/retrievals");
  if (!log.searches) return nothing("None is logged.");
  return [
    el("p", {}, `${log.searches} searches since `, time(log.first), `; ${Math.round(log.nothing * 100)} % found nothing, ${Math.round(log.followed * 100)} % were followed by a use.`),
    el("ul", { class: "list" }, log.most_found.slice(0, 10).map((each) => el("li", { dir: "auto" }, Array.isArray(each) ? each.join(" · ") : Object.values(each).join(" · ")))),
  ];
});
if (parameters.get("task")) {
  byId("task").value = parameters.get("task");
  attempt(ask);
} else {
  fill(byId("context"), nothing("Give a prompt."));
  fill(byId("injection"), nothing("Only what is likely to matter."));
}
byId("task").focus();
