// One table: its rows, schema, versions, computed columns, and what points at them.

import { ApiError, change, path, post } from "../api.js";
import { fill, h } from "../dom.js";
import { count } from "../format.js";
import { confirm, toast } from "../parts/dialogs.js";
import { dependentsOf, dropParams } from "../parts/dependents.js";
import { crumbs, name } from "../parts/names.js";
import { pageHead, tabs } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { go, link } from "../router.js";
import { rights } from "../session.js";
import { columnsTab } from "./table/columns.js";
import { refsTab } from "./table/refs.js";
import { rowsTab } from "./table/rows.js";
import { schemaTab } from "./table/schema.js";
import { versionsTab } from "./table/versions.js";

export const title = ({ id }) => id.join(".");

export async function render({ id, query, signal }) {
  const about = await lookAt(id, query, signal);
  if (about.properties["penstock.kind"]) {
    go(link("view", id, Object.fromEntries(query)), { replace: true });
    return [];
  }
  const total = h("span", {});
  countRows(about, total);
  return [
    pageHead({
      above: crumbs(id),
      kind: "table",
      title: name(id.at(-1)),
      marks: [
        about.is_only_declared ? state("unfilled", "no data yet") : h("span", { class: "quiet" }, `version ${about.version}`),
        total,
      ],
      actions: [
        h("a", { class: "button", href: link("lineage", id, { kind: "table" }) }, "Lineage"),
        about.roles.includes("owner")
          ? h("button", { type: "button", class: "button danger", onclick: () => drop(about) }, "Drop")
          : null,
      ],
    }),
    timeTravel(about),
    tabs(tableTabs(about), query.get("tab")),
  ];
}

/** What the tabs of a table, or of a materialized view, need to know. */
export async function lookAt(id, query, signal) {
  const version = Number(query.get("version")) || undefined;
  const branch = query.get("branch") || undefined;
  const ask = { load_detailed_metadata: true, check_declared: true, version, branch, vend_credentials: false };
  const [described, [roles]] = await Promise.all([
    post(path("table", id, "describe"), ask, signal),
    rights([{ kind: "table", id }], signal),
  ]);
  const bound = JSON.parse(described.properties["penstock.columns"] ?? "{}");
  const at = Object.fromEntries(Object.entries({ version, branch }).filter(([, value]) => value));
  return { ...described, id, roles, bound, at, signal, fields: described.schema?.fields ?? [] };
}

export function tableTabs(about) {
  const isBound = Object.keys(about.bound).length > 0;
  return [
    ["rows", "Rows", () => rowsTab(about)],
    ["schema", "Schema", () => schemaTab(about)],
    ["versions", "Versions", () => versionsTab(about)],
    isBound ? ["columns", "Computed columns", () => columnsTab(about)] : null,
    ["refs", "Tags, branches, indexes", () => refsTab(about)],
  ];
}

/** Says that an old version or a branch is looked at, and leads back. */
export function timeTravel({ at, id, properties }) {
  if (!at.version && !at.branch) return null;
  const page = properties["penstock.kind"] ? "view" : "table";
  return h(
    "p",
    { class: "travel", role: "status" },
    at.version ? `You look at version ${at.version}` : "You look at the newest version",
    at.branch ? [" of branch ", name(at.branch)] : null,
    ". ",
    h("a", { href: link(page, id) }, "Back to the newest"),
  );
}

export async function countRows({ id, at, is_only_declared: isEmpty, signal }, place) {
  if (isEmpty) return;
  try {
    const found = await post(path("table", id, "count_rows"), at, signal);
    fill(place, h("span", { class: "quiet" }, `· ${count(found, "row")}`));
  } catch (error) {
    // The rows' own tab tells why they cannot be read.
    if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
  }
}

function drop({ id, signal }) {
  confirm({
    title: ["Drop ", name(id.at(-1))],
    text: "All its rows, versions, tags, branches and indexes are deleted. This cannot be undone.",
    look: () => dependentsOf(id, signal),
    word: id.at(-1),
    button: "Drop the table",
    act: (form) => change(path("table", id, "drop", dropParams(form))),
    done: () => {
      toast(name(id.at(-1)), " was dropped");
      go(link("catalog", id.slice(0, -1)));
    },
  });
}
