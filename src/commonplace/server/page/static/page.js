// What every page does: requests, elements, messages, dialogs, the switches of the header.
// Nothing here or elsewhere makes markup from text: elements are built, and text is put into them.

export const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
export const parameters = new URLSearchParams(location.search);
export const byId = (id) => document.getElementById(id);
export const isEditing = () => document.body.dataset.editing === "on";

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text with the characters that nobody sees, or that turn the direction of writing, written out. */
export function visible(text) {
  return String(text ?? "")
    .replaceAll("\r\n", "\n")
    .replace(HIDDEN, (one) => {
      const code = one.codePointAt(0);
      return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
}

/** An element. Attributes that are functions listen; `class`, `dataset` and DOM attributes are set as such. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "dataset") Object.assign(made.dataset, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  fill(made, ...children);
  return made;
}

/** Put children into an element in the place of what was there. */
export function fill(element, ...children) {
  const nodes = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...nodes.map((child) => (child instanceof Node ? child : visible(child))));
  element.removeAttribute("aria-busy");
  return element;
}

/** A text of somebody else's, in its own direction. */
export const said = (text, attributes = {}) => el("span", { dir: "auto", class: "said", ...attributes }, text);
export const quiet = (...children) => el("span", { class: "quiet" }, ...children);
export const nothing = (text) => el("p", { class: "quiet" }, text);

export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? "the server did not answer");
    this.problem = problem;
  }
}

/** Ask an operation of the API. */
export async function call(verb, path, { query = {}, body, headers = {} } = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ namespace: meta("namespace"), ...query })) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined) search.append(name, one);
    }
  }
  const options = { method: verb, headers: { ...headers, "X-CSRF-Token": meta("csrf") } };
  if (verb !== "GET" && verb !== "DELETE") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  const asked = path.startsWith("/page/") ? path : `/v1${path}`;
  let response;
  try {
    response = await fetch(search.size ? `${asked}?${search}` : asked, options);
  } catch {
    throw new Refused({ detail: "The server does not answer.", remedy: "run commonplace ui again" });
  }
  const value = await response.json();
  if (!response.ok) throw new Refused(value);
  return value;
}

export const get = (path, query) => call("GET", path, { query });
/** A page of memories, whose counts nobody needs. */
export const listed = (query) => get("/memories", { counted: false, ...query });
export const post = (path, body) => call("POST", path, { body });
/** The memories of some ids by their ids, as far as they are there. */
export async function memoriesOf(ids) {
  const found = await Promise.all([...new Set(ids)].map((id) => get(`/memories/${part(id)}`, { touch: "false" }).catch(() => null)));
  return new Map(found.filter(Boolean).map((each) => [each.id, each]));
}
/** A part of an address that may hold anything. */
export const part = (text) => encodeURIComponent(text);

/** The address of a page, in the namespace of this one. */
export function address(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ namespace: meta("namespace"), ...query })) {
    for (const one of [value].flat()) if (one !== "" && one !== null && one !== undefined) search.append(name, one);
  }
  return search.size ? `${path}?${search}` : path;
}

export function tell(text, isError = false) {
  const box = byId("message");
  fill(box, el("span", { dir: "auto" }, text), el("button", { type: "button", click: () => (box.hidden = true) }, "Close"));
  box.className = isError ? "error" : "";
  box.hidden = false;
}

/** What is wrong, in words. */
function wrongOf(error) {
  if (!(error instanceof Refused)) console.error(error);
  const { detail = String(error), remedy } = error.problem ?? {};
  return remedy ? `${detail} (${remedy})` : detail;
}

/** Do something; say what is wrong where it fails. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    tell(wrongOf(error), true);
    return undefined;
  }
}

/** What does something, but not while it is being done: a double click is one. */
export function once(work) {
  let isBusy = false;
  return async () => {
    if (isBusy) return;
    isBusy = true;
    byId("message").hidden = true; // it tells of what was done before
    await attempt(work);
    isBusy = false;
  };
}

const turns = new Map();

/** Fill a part of the page by what an answer says; a failure stands in its place. An answer that comes after a later one's
 * request is dropped, and the focus stays where it was. */
export async function section(id, work) {
  const place = byId(id), mine = (turns.get(id) ?? 0) + 1;
  turns.set(id, mine);
  const made = await Promise.resolve().then(work).catch((error) => {
    if (!(error instanceof Refused)) console.error(error);
    return el("p", { class: "error" }, error.message);
  });
  if (turns.get(id) !== mine) return;
  const held = place.contains(document.activeElement) ? document.activeElement.id : null;
  fill(place, made);
  if (held === null) return;
  place.tabIndex = -1;
  (byId(held) ?? place).focus({ preventScroll: true });
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** What a date without a time is stored as, midnight in UTC, is the same date everywhere. */
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

/** A time, of an ISO text or of seconds. */
export function time(value, format = MOMENT) {
  if (value === null || value === undefined || value === "") return "";
  const at = new Date(typeof value === "number" ? value * 1000 : value);
  if (Number.isNaN(at.getTime())) return String(value);
  if (at % 86400e3 === 0) return el("time", { datetime: at.toISOString() }, WHOLE.format(at));
  return el("time", { datetime: at.toISOString(), title: MOMENT.format(at) }, format.format(at));
}
export const day = (value) => time(value, DATE);

/** A bar for a share of 1. */
export function bar(value, label, kind = "") {
  const share = Math.max(0, Math.min(1, value || 0));
  const inner = el("span", { class: "fill" });
  inner.style.inlineSize = `${(share * 100).toFixed(1)}%`;
  const text = share.toFixed(2);
  return el("span", { class: `bar ${kind}`, role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": text, title: `${label} ${text}` }, inner);
}

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
export const tag = (text) => el("span", { class: "tag", dir: "auto" }, text);

/** A button for what changes something: it is there only while Edit is on. */
export function doing(text, work, attributes = {}) {
  return el("button", { type: "button", class: "changes", ...attributes, click: once(work) }, text);
}

/** The list of some memories, with what is to be seen at the end of each line. */
export function memoryList(memories, beside = (memory) => day(memory.at)) {
  if (!memories.length) return nothing("None.");
  return el("ul", { class: "list" }, memories.map((memory) => el("li", {}, memoryLink(memory), " ", quiet(beside(memory)))));
}

/** A link to a memory by its id, with its text where that is known. */
export const linkTo = (id, known) => (known.has(id) ? memoryLink(known.get(id)) : el("a", { href: address("/memory", { id }) }, id));

export function memoryLink(memory, length = 140) {
  const text = memory.content.length > length ? `${memory.content.slice(0, length)}…` : memory.content;
  return el("a", { href: address("/memory", { id: memory.id }), dir: "auto" }, text.trim() || memory.id);
}

/** Show a dialog; `build` gets a function that closes it with a value. */
export function dialog(title, build) {
  const box = byId("dialog");
  const before = document.activeElement;
  return new Promise((resolve) => {
    const close = (value) => {
      resolve(value);
      box.close();
      before?.focus?.();
    };
    fill(box, el("h2", { id: "dialog-title" }, title), build(close));
    box.setAttribute("aria-labelledby", "dialog-title");
    box.oncancel = () => close(undefined);
    box.showModal();
  });
}

/** What builds a dialog with a form; it closes when `send` has sent what was written, and until then says what is wrong. */
export const sending = (fields, send, label = "Save") => (close) => {
  const wrong = el("p", { class: "error", role: "alert" });
  const save = el("button", { class: "primary", id: "edit-save" }, label);
  return el("form", { submit: async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      close(await send());
    } catch (error) {
      fill(wrong, wrongOf(error));
    }
    save.disabled = false;
  } }, fields, wrong, el("div", { class: "row" }, save, el("button", { type: "button", click: () => close() }, "Cancel")));
};

/** Show what would be forgotten, and then, if it is confirmed, the receipt. True where it was forgotten. */
export async function forget(ids) {
  const plan = await call("POST", "/forget", { body: { ids, dry_run: true } });
  const isSure = await dialog("Forget this?", (close) => [
    el("p", {}, "This will be deleted, with every copy in the store. It cannot be undone."),
    counts(plan.counts),
    el("details", {}, el("summary", {}, "Ids of what goes"), el("ul", {}, plan.ids.map((id) => el("li", {}, el("code", {}, id))))),
    plan.outside.map((text) => nothing(`Not reached: ${text}`)),
    el("div", { class: "row" }, el("button", { type: "button", id: "forget-yes", class: "danger", click: () => close(true) }, "Forget"), el("button", { type: "button", autofocus: true, click: () => close(false) }, "Keep")),
  ]);
  if (!isSure) return false;
  const receipt = await call("POST", "/forget", { body: { ids } });
  await dialog("Receipt", (close) => [receiptOf(receipt), el("div", { class: "row" }, el("button", { type: "button", id: "receipt-close", autofocus: true, click: () => close() }, "Close"))]);
  return true;
}

export function counts(some) {
  const rows = Object.entries(some).filter(([, count]) => count);
  return el("dl", { class: "pairs counts" }, rows.map(([name, count]) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, String(count))]));
}

export function receiptOf(receipt) {
  return el("div", { class: "receipt" },
    el("p", { class: receipt.verified ? "good" : "error" }, receipt.verified ? "Verified: nothing of it is left in the store." : "Not verified."),
    el("p", {}, quiet("Receipt ", el("code", {}, receipt.id), " of ", time(receipt.at))),
    counts(receipt.counts),
    receipt.checked.length ? el("details", {}, el("summary", {}, `${plural(receipt.checked.length, "file")} searched`), el("ul", {}, receipt.checked.map(([file, bytes]) => el("li", {}, el("code", {}, file), " ", quiet(`${bytes} bytes`))))) : null,
    receipt.found.length ? el("p", { class: "error" }, `Still found in ${receipt.found.join(", ")}.`) : null,
    receipt.waiting.length ? nothing(`Waiting: ${receipt.waiting.join(", ")}.`) : null);
}

const DAY_MS = 86400e3;

/** A slider from when `memory` was stored, or the first of all, to now; its value is in `field` as an ISO text, "" for now. */
export async function asOfSlider(place, chosen = "", changed = () => {}, memory = null) {
  const oldest = memory ?? (await listed({ order: "stored", limit: 1, statuses: ["active", "promoted", "archived"] })).memories[0];
  const first = oldest ? Date.parse(oldest.created_at) + 1 : Date.now() - DAY_MS;
  const now = Math.max(Date.now(), first + 1); // the server's clock may be ahead of the browser's
  const field = el("input", { type: "hidden", name: "as_of", value: chosen });
  const shown = el("output", { for: "as-of-slider" });
  const slider = el("input", { type: "range", id: "as-of-slider", min: 0, max: 1000, value: 1000, "aria-label": "As of" });
  if (chosen && !Number.isNaN(Date.parse(chosen))) slider.value = ((Date.parse(chosen) - first) / (now - first)) * 1000;
  const follow = () => {
    const isNow = Number(slider.value) >= 1000;
    const at = first + ((now - first) * Number(slider.value)) / 1000;
    field.value = isNow ? "" : new Date(at).toISOString();
    slider.setAttribute("aria-valuetext", isNow ? "now" : MOMENT.format(at));
    fill(shown, isNow ? "now" : time(field.value));
  };
  slider.addEventListener("input", follow);
  slider.addEventListener("change", () => changed(field.value));
  follow();
  field.value = chosen || field.value;
  fill(place, el("label", { class: "slider" }, "As of ", slider, shown), field);
  return field;
}

const AHEAD_DAYS = 60;

/** The retention of a memory from when it was stored until some weeks from now, with its uses as dots and now as a line. */
export async function fading({ id, last_used: last }) {
  const path = `/memories/${part(id)}`, days = Math.min(3650, AHEAD_DAYS + Math.max(0, Math.ceil((Date.now() - Date.parse(last)) / DAY_MS)));
  const [{ items: points }, { items: uses }] = await Promise.all([get(`${path}/fading`, { days, past: "true" }), get(`${path}/uses`)]);
  const wide = 320, high = 96;
  const times = points.map((each) => Date.parse(each.at));
  const x = (time) => (((time - times[0]) / (times.at(-1) - times[0])) * wide).toFixed(1);
  const label = `Retention from ${MOMENT.format(times[0])} to ${DATE.format(times.at(-1))}, if it is not used again`;
  const svg = svgElement("svg", { viewBox: `0 0 ${wide} ${high}`, class: "curve", role: "img", "aria-label": label });
  const line = points.map((each, n) => `${n ? "L" : "M"}${x(times[n])},${(high - 4 - each.retention * (high - 8)).toFixed(1)}`).join("");
  svg.append(svgElement("line", { x1: 0, x2: wide, y1: high / 2, y2: high / 2, class: "grid" }), svgElement("path", { d: line }));
  const dots = uses.map((each) => Date.parse(each.at)).filter((at) => at >= times[0]);
  for (const at of dots) svg.append(svgElement("circle", { cx: x(at), cy: high - 4, r: 3 }));
  if (Date.now() > times[0] && Date.now() < times.at(-1)) svg.append(svgElement("line", { x1: x(Date.now()), x2: x(Date.now()), y1: 0, y2: high, class: "now" }));
  const half = points.find((each) => each.retention < 0.5 && Date.parse(each.at) > Date.now());
  const now = points.findLast((each) => Date.parse(each.at) <= Date.now());
  const words = !now || now.retention >= 0.5 ? (half ? ["Below a half on ", day(half.at), "."] : "It stays above a half.") : "It is below a half.";
  return [svg, el("p", {}, quiet(dots.length === 1 ? "One use, " : `${dots.length} uses, `, "as dots; the line is now. ", words))];
}

export function svgElement(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** What one text has that the other has not, word by word. */
export function difference(before, after) {
  const [a, b] = [before, after].map((text) => text.slice(0, 20000).split(/(?<=\s)/u));
  if (a.length * b.length > 4e6) return [el("del", {}, before), " ", el("ins", {}, after)];
  const rest = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      rest[i][j] = a[i].trim() === b[j].trim() ? rest[i + 1][j + 1] + 1 : Math.max(rest[i + 1][j], rest[i][j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i].trim() === b[j].trim()) { found.push(b[j]); i++; j++; }
    else if (i < a.length && (j === b.length || rest[i + 1][j] >= rest[i][j + 1])) found.push(el("del", {}, a[i++]));
    else found.push(el("ins", {}, b[j++]));
  }
  return found;
}

byId("edit").addEventListener("click", once(async () => {
  const { editing } = await call("POST", "/page/edit", { body: { editing: !isEditing() } });
  document.body.dataset.editing = editing ? "on" : "off";
  byId("edit").setAttribute("aria-checked", String(editing));
}));

document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !byId("dialog").open) byId("message").hidden = true;
});
document.addEventListener("pointerdown", ({ target }) => {
  if (!byId("message").contains(target) && !byId("message").matches(".error")) byId("message").hidden = true;
});

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

byId("namespace")?.addEventListener("change", (event) => {
  parameters.set("namespace", event.target.value);
  location.assign(`${location.pathname === "/memory" ? "/memories" : location.pathname}?namespace=${part(event.target.value)}`);
});

byId("save").addEventListener("click", () => attempt(async () => {
  const { save } = await import("./save.js");
  await save();
}));
