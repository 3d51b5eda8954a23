import { address, asOfSlider, attempt, bar, byId, call, doing, el, forget, get, listed, memoryLink, memoryList, meta, nothing, part, plural, post, quiet, section, tell, time } from "./page.js";

const TODAY = new Date();
TODAY.setHours(0, 0, 0, 0);
const SHOWN = 8, ASKED = 50;
const isToday = (text) => new Date(text) >= TODAY;

/** What was new, corrected, archived and forgotten today, and what agents did; each can be undone but what was forgotten. */
async function today() {
  const [{ memories: written }, { memories: archived }, { items: runs }, { items: receipts }] = await Promise.all([
    listed({ order: "changed", limit: ASKED }),
    listed({ order: "archived", statuses: "archived", limit: ASKED }),
    get("/consolidation/runs", { limit: 20 }),
    get("/receipts"),
  ]);
  const done = (work) => async () => {
    const isDone = await work();
    await Promise.all([section("today", today), section("newest", lists.newest)]);
    if (isDone) tell("Undone.");
  };
  const recent = written.filter((each) => isToday(each.updated_at));
  const parts = [
    ["New", recent.filter((each) => each.version === 1), (each) => doing("Forget…", done(async () => void (await forget([each.id]))))],
    ["Corrected", recent.filter((each) => each.version > 1), (each) => doing("Undo", done(() => takeBack(each)))],
    ["Archived", archived.filter((each) => isToday(each.expired_at)), (each) => doing("Restore", done(() => post(`/memories/${part(each.id)}/restore`)))],
  ].filter(([, some]) => some.length).map(([title, some, undo]) => [el("h3", {}, title), el("ul", { class: "list" }, some.slice(0, SHOWN).map((each) => el("li", {}, memoryLink(each), " ", quiet(time(each.expired_at ?? each.updated_at)), " ", undo(each)))),
    some.length > SHOWN ? el("p", {}, el("a", { href: address("/memories", { order: "changed", statuses: title === "Archived" ? "archived" : null }) }, some.length < ASKED ? `and ${some.length - SHOWN} more` : "and more")) : null]);
  const ran = runs.filter((run) => isToday(run.at));
  const gone = receipts.filter((each) => isToday(each.at));
  return [
    parts,
    ran.length ? [el("h3", {}, "By agents"), el("ul", { class: "list" }, ran.map((run) => el("li", {}, el("a", { href: address("/runs") }, `${run.agents.join(", ")}: ${plural(run.applied, "change")}`), run.undone ? `, ${run.undone} undone ` : " ", quiet(time(run.at)), " ",
      run.standing ? doing("Undo", done(() => post(`/consolidation/undo/${part(run.run)}`))) : null)))] : null,
    gone.length ? [el("h3", {}, "Forgotten"), el("p", {}, el("a", { href: address("/store") }, gone.length === 1 ? "1 receipt" : `${gone.length} receipts`))] : null,
    parts.length || ran.length || gone.length ? null : nothing("Nothing has changed today."),
  ];
}

/** Write what the version before said as the next one; agents' changes are undone by their runs. */
async function takeBack(memory) {
  const path = `/memories/${part(memory.id)}`;
  const { versions } = await get(`${path}/versions`);
  const before = versions.at(-2);
  return call("PATCH", path, { body: { content: before.content, tags: before.tags, source: before.source, category: before.category }, headers: { "If-Match": `"${memory.version}"` } });
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
  newest: async () => {
    const tomorrow = new Date(TODAY);
    tomorrow.setDate(TODAY.getDate() + 1); // a memory may tell of what is to come, which is not new
    return memoryList((await listed({ until: tomorrow.toISOString(), limit: SHOWN })).memories, (memory) => time(memory.at));
  },
  used: async () => memoryList((await listed({ order: "used", limit: SHOWN })).memories.filter((each) => each.use_count), (memory) => memory.use_count === 1 ? "once" : `${memory.use_count} times`),
  fading: async () => {
    const { memories } = await listed({ order: "idle", tiers: ["short", "medium"], limit: SHOWN });
    return memoryList(memories.sort((a, b) => a.retention - b.retention), (memory) => bar(memory.retention, "Retention"));
  },
  sources: async () => {
    const { counts } = await get("/facets");
    const rows = Object.entries(counts.source).sort((a, b) => b[1] - a[1]).slice(0, 10);
    if (!rows.length) return nothing("No one yet.");
    return el("ul", { class: "list" }, rows.map(([name, count]) => el("li", {}, name ? el("a", { href: address("/memories", { sources: name }), dir: "auto" }, name) : "no source", " ", quiet(String(count)))));
  },
};

const { sources, ...quick } = lists;
const filled = [section("today", today), attempt(() => asOfSlider(byId("as-of"))), ...Object.entries(quick).map(([id, work]) => section(id, work))];
// What takes long where there are many memories begins when the rest is there.
Promise.all(filled).then(() => section("waiting", waiting)).then(() => section("sources", sources));
if (meta("namespace")) byId("question").append(el("input", { type: "hidden", name: "namespace", value: meta("namespace") }));
byId("query").focus();
