import { attempt, byId, difference, doing, el, fill, get, linkTo, memoriesOf, nothing, once, part, plural, post, quiet, said, section, tell, time, visible } from "./page.js";

const SHOWN = 50, REPORTED = 20;
const COUNTERS = ["short", "medium", "long", "archived", "links"];

async function runs() {
  const { items } = await get("/consolidation/runs", { limit: 50 });
  if (!items.length) return nothing("No run has changed or proposed anything yet.");
  return el("ol", { class: "hits" }, items.map(run));
}

function run(each) {
  const body = el("div", {});
  const detail = el("details", { toggle: () => detail.open && !body.childNodes.length && attempt(async () => fill(body, await changes(each))) }, el("summary", {}, "Changes"), body);
  const said = [plural(each.applied, "change"), each.undone ? `${each.undone} undone` : null, each.proposed ? `${each.proposed} proposed` : null, each.errors ? plural(each.errors, "error") : null];
  return el("li", {}, el("div", { class: "row" }, el("b", {}, time(each.at)), said.filter(Boolean).join(", "), quiet(each.agents.join(", ")), each.standing ? doing("Undo the run", () => undo(each.run)) : null), each.applied ? detail : null);
}

/** How many memories of each kind there were before and after a run. */
function counters({ before, after }) {
  const names = COUNTERS.filter((name) => name in before || name in after);
  if (!names.length) return null;
  const line = (title, some) => el("tr", {}, el("th", { scope: "row" }, title), names.map((name) => el("td", { class: "number" }, String(some[name] ?? 0))));
  return el("table", { class: "counters" }, el("thead", {}, el("tr", {}, el("td", {}), names.map((name) => el("th", { scope: "col", class: "number" }, name)))), el("tbody", {}, line("before", before), line("after", after)));
}

async function changes(each) {
  const { items } = await get(`/consolidation/runs/${part(each.run)}`);
  const known = await memoriesOf(items.slice(0, SHOWN).flatMap((change) => change.acts.flatMap(({ id, target }) => [id, target])).filter(Boolean));
  return [counters(each),
    el("ol", { class: "list" }, items.slice(0, SHOWN).map((change) => el("li", { class: change.undone_at ? "ended" : null },
      el("p", {}, el("b", { dir: "auto" }, change.title || change.issue), " ", quiet(change.agent, change.why ? `: ${change.why}` : "", change.undone_at ? [", undone ", time(change.undone_at)] : "")),
      acts(change, known),
      change.undone_at ? null : doing("Undo this", () => undo(change.issue))))),
    items.length > SHOWN ? nothing(`and ${items.length - SHOWN} more`) : null];
}

/** What a change did, as a difference: what was archived is struck out, what was made from it is marked where it is new. */
function acts(change, known) {
  const link = (id) => linkTo(id, known);
  const old = change.acts.filter(({ what }) => what === "archived").map(({ id }) => known.get(id)?.content).filter(Boolean).join("\n");
  const shown = {
    made: ({ id }) => [quiet("made "), link(id), el("div", { class: "diff", dir: "auto" }, difference(old, known.get(id)?.content ?? ""))],
    archived: ({ id }) => [quiet("archived "), el("del", {}, link(id))],
    changed: ({ id, changed }) => [quiet("changed "), link(id), el("ul", {}, Object.entries(changed).map(([name, [before, after]]) => el("li", {}, quiet(`${name.replaceAll("_", " ")}: `), el("del", {}, value(name, before)), " ", el("ins", {}, value(name, after)))))],
    linked: ({ id, target, type }) => [quiet("linked "), link(id), quiet(` ${type.replaceAll("_", " ")} `), link(target)],
    wrote: ({ path }) => [quiet("wrote "), el("code", {}, path)],
  };
  return el("ul", { class: "acts" }, change.acts.map((act) => el("li", {}, shown[act.what](act))));
}

function value(name, given) {
  if (given === null || given === "" || given?.length === 0) return "none";
  if (Array.isArray(given)) return name === "uses" ? `${given.length} kept` : given.map(visible).join(", ");
  return typeof given === "number" && /(_at|_used)$/.test(name) ? time(given) : said(String(given));
}

async function undo(id) {
  const undone = await post(`/consolidation/undo/${part(id)}`);
  await section("runs", runs);
  tell([`Undone: ${plural(undone.issues.length, "change")}.`, ...undone.notices].join(" "));
}

async function consolidate(isRehearsal) {
  fill(byId("report"), quiet("At work…"));
  const report = await post("/consolidation/runs", { dry_run: isRehearsal }).catch((error) => { fill(byId("report")); throw error; });
  const rows = Object.entries(report.results).filter(([, results]) => results.length);
  const shown = rows.map(([agent, results]) => [agent, results.slice(0, REPORTED), results.length]);
  const known = await memoriesOf(shown.flatMap(([, results]) => results.flatMap((each) => [each.memory_id, ...(each.memory_ids ?? []), each.from_memory_id, each.to_memory_id])).filter(Boolean));
  const link = (id) => linkTo(id, known);
  fill(byId("report"), el("section", { class: "panel" }, el("h2", {}, isRehearsal ? "Dry run: a run would do this" : "This was done or proposed"),
    (report.lost ?? []).map((each) => el("p", { class: "error" }, "Rolled back: a golden query no longer finds its expected result: ", said(each))),
    shown.length ? shown.map(([agent, results, count]) => [el("h3", {}, `${agent} (${count})`), el("ul", {}, results.map((each) => el("li", {}, OUTCOMES[agent](each, link)))), count > REPORTED ? nothing(`and ${count - REPORTED} more`) : null]) : nothing("Nothing to do.")));
  if (!isRehearsal) await section("runs", runs);
}

/** A unified diff, its lines marked. */
const diff = (text) => el("pre", { dir: "auto" }, text.slice(0, 3000).split("\n").map((line) => [line.startsWith("+") ? el("ins", {}, line) : line.startsWith("-") ? el("del", {}, line) : visible(line), "\n"]));

const DECAYED = { reinforce: "used again", consolidate: "to be merged", promote: "to be kept for good", gc: "archived" };
const CLUSTERED = { merge: "to be merged", link: "to be linked", ignore: "left as they are" };
const CRITERIA = { score_threshold: "retention", use_count_threshold: "recent uses", review_count_threshold: "reviews", strength_threshold: "strength" };
const share = (value) => `${Math.round(value * 100)} %`;

/** What an agent came to, in words. */
const OUTCOMES = {
  decay: (each, link) => [link(each.memory_id), quiet(` retention ${share(each.score)}: ${DECAYED[each.action]}`)],
  cluster: (each, link) => [quiet(`${each.memory_ids.length} similar memories (${share(each.cohesion)}), ${CLUSTERED[each.action]}:`), el("ul", {}, each.memory_ids.map((id) => el("li", {}, link(id))))],
  merge: (each) => (each.content_diff ? diff(each.content_diff) : quiet("not merged")),
  promote: (each, link) => [link(each.memory_id), quiet(` kept for good, by its ${each.criteria_met.map((name) => CRITERIA[name]).join(", ")}`)],
  relations: (each, link) => [link(each.from_memory_id), quiet(" and "), link(each.to_memory_id), el("div", {}, quiet(each.reasoning))],
};

byId("rehearse").addEventListener("click", once(() => consolidate(true)));
byId("run").addEventListener("click", once(() => consolidate(false)));
section("runs", runs);
