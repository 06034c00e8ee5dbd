// A view that holds no rows: its query in each dialect, its versions, and its rows now.

import { change, path, post, rows } from "../api.js";
import { h } from "../dom.js";
import { ago, moment } from "../format.js";
import { dependentsOf } from "../parts/dependents.js";
import { confirm, toast } from "../parts/dialogs.js";
import { grid } from "../parts/grid.js";
import { crumbs, name } from "../parts/names.js";
import { facts, list, loaded, pageHead, panel, tabs } from "../parts/panels.js";
import { go, link } from "../router.js";
import { rights } from "../session.js";
import { showType } from "./table/schema.js";
import { sqlText } from "../parts/queries.js";

const ROWS = 50;

export const title = ({ id }) => id.join(".");

export async function render({ id, query, signal }) {
  const [view, [roles]] = await Promise.all([
    post(path("view", id, "describe"), {}, signal),
    rights([{ kind: "view", id }], signal),
  ]);
  return [
    pageHead({
      above: crumbs(id),
      kind: "view",
      title: name(id.at(-1)),
      marks: [h("span", { class: "quiet" }, `Iceberg view, version ${view.version}`)],
      actions: [
        h("a", { class: "button", href: link("lineage", id, { kind: "view" }) }, "Lineage"),
        roles.includes("owner")
          ? h("button", { type: "button", class: "button danger", onclick: () => drop(id, signal) }, "Drop")
          : null,
      ],
    }),
    tabs(
      [
        ["definition", "Definition", () => definition(view, roles.includes("owner") ? () => alter(id, view) : null)],
        ["rows", "Rows", () => firstRows(id, signal)],
        ["versions", "Versions", () => versions(view)],
      ],
      query.get("tab"),
    ),
  ];
}

function definition(view, alter) {
  const columns = (view.schema?.fields ?? []).map((field) => [name(field.name), h("code", {}, showType(field.type))]);
  return h(
    "div",
    { class: "panels" },
    panel(
      "Query",
      { wide: true, hint: view.dialect, actions: alter ? h("button", { type: "button", class: "button", onclick: alter }, "Alter") : null },
      sqlText(view.query),
      facts([
        ["Dialects", (view.dialects ?? []).map((each) => (typeof each === "string" ? each : each.dialect)).join(", ")],
        ["Location", view.location ? h("code", {}, view.location) : null],
      ]),
    ),
    panel("Columns", {}, list(["Column", "Type"], columns, { label: "Columns" })),
  );
}

function alter(id, view) {
  const box = h("textarea", { rows: 8, value: view.query, spellcheck: "false", "aria-label": "Query" });
  confirm({
    title: ["Alter ", name(id.at(-1))],
    fields: [h("label", { class: "field" }, `Query, in ${view.dialect}`, box), h("span", { class: "quiet" }, "It becomes a new version, and the current one. It is checked first; the versions before stay.")],
    button: "Alter",
    danger: false,
    wide: true,
    act: () => change(path("view", id, "alter"), { query: box.value.trim() }),
    done: () => {
      toast(name(id.at(-1)), " has a new version");
      go(location.pathname);
    },
  });
}

function firstRows(id, signal) {
  return loaded(
    () => rows(path("table", id, "query"), { k: ROWS }, signal),
    (found) => [h("p", { class: "quiet" }, `the first ${ROWS} rows, computed now`), grid(found, { label: "Rows" })],
    { signal, lines: 6 },
  );
}

function versions({ versions: found = [] }) {
  const items = found.map((each) =>
    h(
      "li",
      {},
      h(
        "details",
        {},
        h("summary", {}, h("strong", {}, `Version ${each.version}`), each.made_at ? h("time", { class: "quiet", title: moment(each.made_at) }, ago(each.made_at)) : null),
        sqlText(each.query),
      ),
    ),
  );
  return panel("Versions", { hint: "those that are kept" }, h("ul", { class: "stack" }, items));
}

function drop(id, signal) {
  confirm({
    title: ["Drop ", name(id.at(-1))],
    text: "The query is gone; no rows are lost, as it holds none.",
    look: () => dependentsOf(id, signal),
    button: "Drop the view",
    act: () => change(path("view", id, "drop")),
    done: () => {
      toast(name(id.at(-1)), " was dropped");
      go(link("catalog", id.slice(0, -1)));
    },
  });
}
