// Names and values that others chose, shown so that they can deceive nobody.

import { h } from "../dom.js";
import { link, linkTo } from "../router.js";
import { icon } from "./icons.js";

// What turns the direction of text, or has no width: told by its code instead of obeyed.
const HIDDEN = /([\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb])/u;

export const KINDS = {
  namespace: "Namespace",
  table: "Table",
  materialized_view: "Materialized view",
  view: "Iceberg view",
  iceberg_table: "Iceberg table",
  function: "Function",
  column: "Column",
};

/** A name, by itself: whatever letters it has, it moves nothing around it. */
export function name(text) {
  const parts = String(text).split(HIDDEN);
  const shown = parts.map((part, index) => (index % 2 ? code(part) : part));
  return h("bdi", { class: "name" }, shown);
}

function code(character) {
  return h("span", { class: "hidden-char", title: "a character that cannot be seen" }, point(character));
}

function point(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** A name as text alone, for drawings and labels. */
export function plainName(text) {
  const parts = String(text).split(HIDDEN);
  return parts.map((part, index) => (index % 2 ? `⟨${point(part)}⟩` : part)).join("");
}

/** An id as names with dots between them. */
export function showId(id) {
  const parts = id.map((part, index) => [index ? h("span", { class: "dot" }, ".") : null, name(part)]);
  return h("span", { class: "id" }, parts);
}

/** A link to an object of the catalog, with the icon of its kind. */
export function objectLink(kind, id, query = {}) {
  return h(
    "a",
    { class: "object", href: linkTo(kind, id, query), title: `${KINDS[kind] ?? kind} ${id.join(".")}` },
    icon(kind),
    h("span", { class: "visually-hidden" }, `${KINDS[kind] ?? kind} `),
    showId(id),
  );
}

export function jobLink(id, text = id) {
  return h("a", { href: link("job", [id]) }, text);
}

/** Where an object is: links to the namespaces above it. */
export function crumbs(id) {
  const above = id.slice(0, -1).map((part, index) => [
    h("span", { class: "dot" }, "/"),
    h("a", { href: link("catalog", id.slice(0, index + 1)) }, name(part)),
  ]);
  return h(
    "nav",
    { class: "crumbs", "aria-label": "Where it is" },
    h("a", { href: link("catalog") }, "Catalog"),
    above,
  );
}
