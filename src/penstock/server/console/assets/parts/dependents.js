// What depends on a table, a view or a column, for people who are about to change it.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { jobLink, name, objectLink } from "./names.js";

const KIND = { materialized_view: "materialized_view", iceberg_view: "view", computed_column: "table" };

/** How to drop something, as whoever was asked chose: with what depends on it, or not. */
export function dropParams(form) {
  return form.elements.cascade?.checked ? { cascade: true } : {};
}

/** Elements that name all of it; where a drop would be refused for it, with a choice to drop it too. */
export async function dependentsOf(id, signal, column = undefined, { mayCascade = true } = {}) {
  const found = await post(path("table", id, "dependents"), { column }, signal);
  if (!found.dependents.length && !found.hidden && !found.jobs?.length) {
    return h("p", {}, "Nothing depends on it.");
  }
  return [
    found.dependents.length
      ? [h("p", {}, h("strong", {}, "What depends on it:")), tree(found.dependents)]
      : null,
    mayCascade && found.dependents.some((each) => each.breaks_on?.includes("drop"))
      ? h("label", { class: "row" }, h("input", { type: "checkbox", name: "cascade" }), " Drop what would break too; else nothing is dropped")
      : null,
    found.hidden ? h("p", {}, `and ${count(found.hidden, "other")} that you may not see`) : null,
    found.jobs?.length
      ? h("p", {}, `${count(found.jobs.length, "job")} that work on it are canceled: `, found.jobs.map((job) => [jobLink(job), " "]))
      : null,
  ];
}

function tree(list) {
  return h(
    "ul",
    { class: "dependents" },
    list.map((each) =>
      h(
        "li",
        {},
        objectLink(KIND[each.kind] ?? each.kind, each.id),
        each.column ? [" column ", name(each.column)] : null,
        each.breaks_on?.length ? h("span", { class: "quiet" }, ` would break on ${each.breaks_on.join(", ")}`) : null,
        each.dependents?.length ? tree(each.dependents) : null,
      ),
    ),
  );
}
