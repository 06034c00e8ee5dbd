// Queries of views as text.

import { h } from "../dom.js";
import { parse } from "../format.js";

/** The SQL of a query, out of the JSON forms that a client may have sent it in. */
export function showQuery(text) {
  const told = parse(text);
  if (told && typeof told === "object") return typeof told.sql === "string" ? told.sql : JSON.stringify(told, null, 2);
  return text;
}

export function sqlText(text) {
  return h("pre", { class: "code", tabindex: "0" }, h("bdi", {}, text));
}
