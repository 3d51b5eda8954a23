// Save what is shown as one HTML file without scripts, tokens or addresses.

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

export async function save() {
  const copy = document.documentElement.cloneNode(true);
  const style = await (await fetch("/static/page.css")).text();
  const shown = [...document.querySelectorAll("canvas, input, textarea, option")];
  copy.querySelectorAll("canvas, input, textarea, option").forEach((each, number) => {
    const from = shown[number];
    if (each.matches("canvas")) {
      const image = document.createElement("img");
      image.src = from.toDataURL();
      image.className = "canvas";
      image.style.cssText = from.style.cssText;
      each.replaceWith(image);
    } else if (each.matches("option")) each.toggleAttribute("selected", from.selected);
    else if (each.matches("textarea")) each.textContent = from.value;
    else {
      each.setAttribute("value", from.value);
      each.toggleAttribute("checked", from.checked);
    }
  });
  copy.querySelectorAll("script, link, dialog, meta[name=csrf], #message, .tools, .skip, .spacer, .changes, .hint").forEach((each) => each.remove());
  copy.querySelectorAll("a[href], form").forEach((each) => ["href", "action"].forEach((name) => each.removeAttribute(name)));
  copy.querySelectorAll("input, textarea, select").forEach((each) => each.setAttribute("disabled", ""));
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
