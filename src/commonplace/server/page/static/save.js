// Save what is shown as one HTML file without scripts, tokens or addresses.

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

export async function save() {
  const copy = document.documentElement.cloneNode(true);
  const style = await (await fetch("/static/page.css")).text();
  copy.querySelectorAll("script, link, dialog, meta[name=csrf], .tools, .skip, .changes").forEach((each) => each.remove());
  const drawn = document.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((each, number) => {
    const image = document.createElement("img");
    image.src = drawn[number].toDataURL();
    image.className = "canvas";
    each.replaceWith(image);
  });
  copy.querySelectorAll("a[href], form").forEach((each) => ["href", "action"].forEach((name) => each.removeAttribute(name)));
  copy.querySelectorAll("input, textarea").forEach((each) => each.setAttribute("disabled", ""));
  const shown = document.querySelectorAll("input");
  copy.querySelectorAll("input").forEach((each, number) => each.setAttribute("value", shown[number].value));
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = POLICY;
  const sheet = document.createElement("style");
  sheet.textContent = style;
  copy.querySelector("head").append(policy, sheet);
  const file = new Blob([`<!doctype html>\n${copy.outerHTML}`], { type: "text/html" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${document.title.split(" ")[0].toLowerCase()}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
