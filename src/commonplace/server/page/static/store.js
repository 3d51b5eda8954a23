import { address, byId, call, counts, dialog, doing, el, fill, get, linkTo, memoriesOf, nothing, quiet, receiptOf, said, section, tell, time } from "./page.js";

const UNITS = ["B", "kB", "MB", "GB"];
const FEW = 2000;

function size(bytes) {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** step).toFixed(step ? 1 : 0)} ${UNITS[step]}`;
}

const pairs = (rows) => el("dl", { class: "pairs" }, Object.entries(rows).filter(([, value]) => value !== "" && value !== null).map(([name, value]) => [el("dt", {}, name), el("dd", { dir: "auto" }, value)]));

const state = get("/index");
section("index", async () => {
  const [index, { counts: memories }] = await Promise.all([state, get("/memories", { limit: 1 })]);
  return [
    pairs({ Store: el("code", {}, index.store), Id: el("code", {}, index.store_id), Embedder: index.embedder, Database: size(index.store_bytes), Index: size(index.index_bytes), Waiting: index.waiting ? `${index.waiting} changes` : "", Fault: index.fault }),
    el("h3", {}, "Holds"), counts({ ...index.counts, text_bytes: 0 }), el("h3", {}, "Memories"), counts(memories), el("h3", {}, "Graph"), counts(index.graph),
    index.left_out.map((each) => [el("h3", {}, "Left out of ", el("code", {}, each.root)), counts(each.skipped), each.problems.length ? el("ul", { class: "list" }, each.problems.map(({ path, reason }) => el("li", {}, el("code", {}, path), " ", quiet(el("span", { dir: "auto" }, reason))))) : null]),
    index.notices.map((each) => nothing(each)),
  ];
});

/** What reads every memory: at once where there are few, else when somebody asks for it. */
async function examine(id, work) {
  const run = () => { fill(byId(id), quiet("At work…")).setAttribute("aria-busy", "true"); return section(id, work); };
  const { counts: { memories } } = await state.catch(() => ({ counts: { memories: 0 } }));
  if (memories <= FEW) await run();
  else fill(byId(id), el("p", {}, el("button", { type: "button", click: run }, `Examine ${memories} memories`)));
}

const examined = examine("health", async () => {
  const health = await get("/health");
  const found = health.findings.slice(0, 20), texts = await memoriesOf(found.flatMap((each) => (each.kind === "contradiction" ? [] : each.ids))), wrong = health.golden.filter((each) => each.shown.length || each.found.length < each.relevant.length);
  return [counts({ ...health.counts, "golden queries": health.golden.length }), wrong.map((each) => el("p", { class: "error" }, "A golden query does not find what it must, or shows what it must not: ", said(each.query))),
    found.length ? el("ul", { class: "list" }, found.map((each) => el("li", {}, quiet(each.kind), " ", el("span", { dir: "auto" }, each.why), each.kind === "contradiction" ? null : each.ids.map((id, place) => [place ? ", " : ": ", linkTo(id, texts)]),
    each.command === "commonplace review" ? [" ", el("a", { href: address("/review") }, "Review")] : null))) : nothing("Nothing needs attention.")];
});
// Both read every memory, and this one takes longer.
examined.then(() => examine("doctor", async () => {
  const doctor = await call("GET", "/page/doctor");
  return [el("p", { class: doctor.findings.length ? "error" : "good" }, doctor.findings.length ? `${doctor.findings.length} problems` : "No problem."), nothing(`Checked: ${doctor.checked.join(", ")}.`),
    el("ul", { class: "list" }, doctor.findings.map((each) => el("li", { dir: "auto" }, each.problem ?? JSON.stringify(each), " ", quiet(each.remedy ?? ""))))];
}));

section("receipts", async () => {
  const { items } = await get("/receipts");
  if (!items.length) return nothing("Nothing has been forgotten yet.");
  return items.toReversed().slice(0, 20).map((each) => el("details", {}, el("summary", {}, time(each.at), " ", quiet(each.verified ? "verified" : "not verified")), receiptOf(each)));
});

const written = (value) => (value === null || value === "" ? quiet("–") : Array.isArray(value) ? value.join(", ") || quiet("none") : String(value));

const own = call("GET", "/page/store");
own.catch(() => {}); // each part says so itself
section("backups", async () => {
  const { backups } = await own;
  if (!backups.length) return nothing("None yet. ", el("code", {}, "commonplace backup ../memory.zip"), " makes one.");
  return el("ul", { class: "list" }, backups.map((each) => el("li", {}, el("code", {}, each.path), " ", time(each.at), " ", quiet(each.is_replaced ? "a store that was replaced" : each.size === null ? "not there any more" : size(each.size)))));
});
async function clients(from = call("GET", "/page/store")) {
  return el("ul", { class: "list" }, (await from).clients.map(([name, title, file, isThere]) => el("li", {}, title, " ", quiet(el("code", {}, file), isThere ? ", installed" : ""), " ", isThere ? null : doing("Install…", () => install(name, title, file)))));
}
/** Write our server into a client's file, if that is what is wanted. */
async function install(name, title, file) {
  const isSure = await dialog(`Install for ${title}?`, (close) => [el("p", {}, "This adds the server of this store to ", el("code", {}, file), ". A file that is there is copied beside itself first."),
    el("div", { class: "row" }, el("button", { type: "button", class: "primary", click: () => close(true) }, "Install"), el("button", { type: "button", autofocus: true, click: () => close(false) }, "Cancel"))]);
  if (!isSure) return;
  const done = await call("POST", "/page/install", { body: { client: name } });
  await section("clients", clients);
  tell(`${done.changed ? "Written" : "Nothing to write"}: ${done.path}. ${done.then}`);
}
section("clients", () => clients(own));
section("settings", async () => {
  const { settings } = await own;
  settings.sort((a, b) => (a[2] === "default") - (b[2] === "default"));
  const body = el("tbody", {}, settings.map(([name, value, origin]) => el("tr", {}, el("td", {}, el("code", {}, name)), el("td", { dir: "auto" }, written(value)), el("td", {}, origin === "default" ? quiet(origin) : origin))));
  byId("filter").addEventListener("input", () => {
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(byId("filter").value.toLowerCase());
  });
  return el("table", { class: "settings" }, el("thead", {}, el("tr", {}, ["Setting", "Value", "From"].map((each) => el("th", { scope: "col" }, each)))), body);
});
