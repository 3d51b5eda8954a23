import { address, attempt, byId, doing, el, fill, get, memoryLink, nothing, part, post, quiet, section, tell, time } from "./page.js";

async function runs() {
  const { items } = await get("/consolidation/runs", { limit: 50 });
  if (!items.length) return nothing("There was no run yet that changed or proposed anything.");
  return el("ol", { class: "hits" }, items.map(run));
}

function run(each) {
  const body = el("div", {});
  const detail = el("details", { toggle: () => detail.open && !body.childNodes.length && attempt(async () => fill(body, changes(await get(`/consolidation/runs/${part(each.run)}`)))) }, el("summary", {}, "Changes"), body);
  const said = [`${each.applied} changes`, each.undone ? `${each.undone} undone` : null, each.proposed ? `${each.proposed} proposed` : null, each.errors ? `${each.errors} errors` : null];
  return el("li", {}, el("div", { class: "row" }, el("b", {}, time(each.at)), said.filter(Boolean).join(", "), quiet(each.agents.join(", ")), each.standing ? doing("Undo the run", () => undo(each.run)) : null), each.applied ? detail : null);
}

function changes({ items }) {
  return el("ul", { class: "list" }, items.map((each) => el("li", { class: each.undone_at ? "ended" : null }, el("span", { dir: "auto" }, each.title || each.issue), " ", quiet(each.agent, each.why ? `: ${each.why}` : "", each.undone_at ? [", undone ", time(each.undone_at)] : ""), " ",
    each.memory_ids.slice(0, 6).map((id) => [el("a", { href: address("/memory", { id }) }, id.slice(0, 8)), " "]), each.undone_at ? null : doing("Undo this", () => undo(each.issue)))));
}

async function undo(id) {
  const undone = await post(`/consolidation/undo/${part(id)}`);
  await section("runs", runs);
  tell(`Undone: ${undone.issues?.length ?? 1} changes.`);
}

async function consolidate(isRehearsal) {
  fill(byId("report"), quiet("At work…"));
  const report = await post("/consolidation/runs", { dry_run: isRehearsal }).catch((error) => { fill(byId("report")); throw error; });
  const rows = Object.entries(report.results).filter(([, results]) => results.length);
  const ids = rows.flatMap(([, results]) => results.slice(0, 20).map((each) => each.memory_id)).filter(Boolean);
  const known = Object.fromEntries((await Promise.all(ids.map((id) => get(`/memories/${part(id)}`, { touch: "false" }).catch(() => null)))).filter(Boolean).map((each) => [each.id, each]));
  fill(byId("report"), el("section", { class: "panel" }, el("h2", {}, isRehearsal ? "Dry run: this would be done" : "This was done or proposed"),
    rows.length ? rows.map(([agent, results]) => [el("h3", {}, `${agent} (${results.length})`), results.slice(0, 20).map((each) => (each.content_diff ? el("pre", { dir: "auto" }, each.content_diff.slice(0, 3000)) : el("p", {}, known[each.memory_id] ? [memoryLink(known[each.memory_id]), " "] : null, quiet(summary(each)))))]) : nothing("Nothing to do.")));
  if (!isRehearsal) await section("runs", runs);
}

const summary = (each) => Object.entries(each).filter(([name, value]) => value !== null && typeof value !== "object" && !name.endsWith("_id")).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? Number(value.toFixed(3)) : value}`).join(", ").slice(0, 400);

byId("rehearse").addEventListener("click", () => attempt(() => consolidate(true)));
byId("run").addEventListener("click", () => attempt(() => consolidate(false)));
section("runs", runs);
