import { address, asOfSlider, attempt, bar, byId, doing, el, get, memoryList, meta, nothing, post, quiet, section, time } from "./page.js";

const TODAY = new Date();
TODAY.setHours(0, 0, 0, 0);
const TOMORROW = new Date(TODAY);
TOMORROW.setDate(TODAY.getDate() + 1);
const until = TOMORROW.toISOString(); // a memory may tell of what is to come, which is not new

async function today() {
  const [{ memories }, { items: runs }] = await Promise.all([
    get("/memories", { since: TODAY.toISOString(), until, limit: 8 }),
    get("/consolidation/runs", { limit: 20 }),
  ]);
  const recent = runs.filter((run) => new Date(run.at) >= TODAY);
  return [
    recent.length ? el("ul", { class: "list" }, recent.map((run) => el("li", {}, `${run.agents.join(", ")}: ${run.applied} changes, ${run.undone} undone `, quiet(time(run.at)), " ",
      run.standing ? doing("Undo", async () => { await post(`/consolidation/undo/${run.run}`); await section("today", today); }) : null))) : null,
    memories.length ? [el("h3", {}, "New"), memoryList(memories, (memory) => time(memory.at))] : null,
    !recent.length && !memories.length ? nothing("Nothing has changed today.") : null,
  ];
}

async function waiting() {
  const { questions } = await get("/questions");
  if (!questions.length) return nothing("Nothing waits for you.");
  return [
    el("ul", { class: "list" }, questions.slice(0, 5).map((each) => el("li", {}, el("span", { dir: "auto" }, each.sides.map((side) => side.text.slice(0, 140)).join(" / ")), " ", quiet(each.kind)))),
    el("p", {}, el("a", { href: address("/review") }, `Decide ${questions.length}`)),
  ];
}

const lists = {
  newest: async () => memoryList((await get("/memories", { until, limit: 8 })).memories, (memory) => time(memory.at)),
  used: async () => memoryList((await get("/memories", { order: "used", limit: 8 })).memories.filter((each) => each.use_count), (memory) => memory.use_count === 1 ? "once" : `${memory.use_count} times`),
  fading: async () => {
    const { memories } = await get("/memories", { order: "idle", tiers: ["short", "medium"], limit: 8 });
    return memoryList(memories.sort((a, b) => a.retention - b.retention), (memory) => bar(memory.retention, "Retention"));
  },
  sources: async () => {
    const { counts } = await get("/facets");
    const rows = Object.entries(counts.source).sort((a, b) => b[1] - a[1]).slice(0, 10);
    if (!rows.length) return nothing("Nobody yet.");
    return el("ul", { class: "list" }, rows.map(([name, count]) => el("li", {}, name ? el("a", { href: address("/memories", { sources: name }), dir: "auto" }, name) : "no source", " ", quiet(String(count)))));
  },
};

section("today", today);
section("waiting", waiting);
for (const [id, work] of Object.entries(lists)) section(id, work);
attempt(() => asOfSlider(byId("as-of")));
if (meta("namespace")) byId("question").append(el("input", { type: "hidden", name: "namespace", value: meta("namespace") }));
byId("query").focus();
