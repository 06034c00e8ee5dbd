// A function with a name: its versions, and what uses it.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { crumbs, name } from "../parts/names.js";
import { facts, pageHead, panel } from "../parts/panels.js";
import { link } from "../router.js";

export const title = ({ id }) => id.join(".");

export async function render({ id, signal }) {
  const found = await post(path("function", id, "describe"), {}, signal);
  const pairs = Object.entries(found).filter(([, value]) => value !== null && typeof value !== "object");
  const nested = Object.entries(found).filter(([, value]) => value !== null && typeof value === "object");
  return [
    pageHead({
      above: crumbs(id),
      kind: "function",
      title: name(id.at(-1)),
      actions: h("a", { class: "button", href: link("lineage", id, { kind: "function" }) }, "Lineage"),
    }),
    h(
      "div",
      { class: "panels" },
      panel("About", {}, facts(pairs.map(([key, value]) => [label(key), h("bdi", {}, String(value))]))),
      nested.map(([key, value]) =>
        panel(label(key), {}, h("pre", { class: "code", tabindex: "0" }, h("bdi", {}, JSON.stringify(value, null, 2)))),
      ),
    ),
  ];
}

function label(key) {
  const words = key.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
