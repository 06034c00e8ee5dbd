// A function with a name: what it takes and makes, its versions, and what uses it.

import { change, path, post } from "../api.js";
import { h } from "../dom.js";
import { ago, count, moment } from "../format.js";
import { confirm, toast } from "../parts/dialogs.js";
import { crumbs, name, objectLink } from "../parts/names.js";
import { facts, list, loaded, pageHead, panel, tabs } from "../parts/panels.js";
import { sqlText } from "../parts/queries.js";
import { state } from "../parts/states.js";
import { go, link } from "../router.js";
import { rights } from "../session.js";
import { showType } from "./table/schema.js";

const KINDS = {
  scalar: "called row by row; fills a column",
  arrow: "called with Arrow arrays; fills a column",
  batch: "called with batches of rows; fills columns",
  chunker: "cuts a row into several; makes a view",
  batch_chunker: "cuts rows into several, many at a time; makes a view",
  udtf: "makes rows of whole partitions; makes a view",
};

export const title = ({ id }) => id.join(".");

export async function render({ id, query, signal }) {
  const version = query.get("version") || undefined;
  const [found, [roles]] = await Promise.all([post(path("function", id, "describe"), { version }, signal), rights([{ kind: "function", id }], signal)]);
  const owns = roles.includes("owner");
  return [
    pageHead({
      above: crumbs(id),
      kind: "function",
      title: name(id.at(-1)),
      marks: [h("span", { class: "quiet" }, `version ${found.version}`), found.disabled ? state("failed", "disabled") : null],
      actions: [
        h("a", { class: "button", href: link("lineage", id, { kind: "function" }) }, "Lineage"),
        owns ? h("button", { type: "button", class: "button", onclick: () => flip(id, found) }, found.disabled ? "Enable" : "Disable") : null,
        owns ? h("button", { type: "button", class: "button danger", onclick: () => drop(id, found) }, "Drop") : null,
      ],
    }),
    tabs(
      [
        ["about", "About", () => about(found)],
        ["versions", "Versions", () => versions(id, signal)],
        found.source ? ["source", "Source", () => panel("Source", { hint: "as its author sent it beside the code" }, sqlText(found.source))] : null,
      ],
      query.get("tab"),
    ),
  ];
}

function about(found) {
  const secrets = Object.entries(found.secrets ?? {});
  const properties = Object.entries(found.properties ?? {});
  return h(
    "div",
    { class: "panels" },
    panel(
      "Function",
      {},
      facts([
        ["Kind", [name(found.kind), KINDS[found.kind] ? h("span", { class: "quiet" }, `: ${KINDS[found.kind]}`) : null]],
        ["Label", [name(found.udf_name), " ", h("code", {}, found.udf_version)]],
        ["Registered", [h("time", { title: moment(found.created_at_millis) }, ago(found.created_at_millis)), found.created_by ? [" by ", name(found.created_by)] : null]],
        ["Code", h("code", {}, found.sha256)],
        secrets.length ? ["Secrets", secrets.map(([variable, secret]) => h("div", {}, name(variable), " from ", name(secret)))] : null,
        found.manifest ? ["Environment", h("details", {}, h("summary", {}, "its own"), sqlText(found.manifest))] : null,
        ...properties.map(([key, value]) => [name(key), h("bdi", {}, value)]),
      ]),
    ),
    panel("Takes and makes", {}, parameters("Takes", found.inputs), parameters("Makes", found.outputs)),
    panel("Used by", { wide: true }, uses(found.used_by)),
  );
}

function parameters(word, found) {
  const rows = (found ?? []).map((each) => [each.name ? name(each.name) : h("span", { class: "quiet" }, "the column"), each.data_type ? h("code", {}, showType(each.data_type)) : h("span", { class: "quiet" }, "any")]);
  return rows.length ? list([word, "Type"], rows, { label: word }) : null;
}

function uses(found) {
  if (!found?.length) return h("p", { class: "quiet" }, "Nothing that you may see.");
  const rows = found.map((each) => [
    objectLink("table", each.table, each.column ? { tab: "columns" } : {}),
    each.column ? ["column ", name(each.column), each.branch ? [" of branch ", name(each.branch)] : null] : "the view",
    `version ${each.version}`,
  ]);
  return list(["What", "", "Uses"], rows, { label: "Used by" });
}

function versions(id, signal) {
  const ask = () => post(path("namespace", id.slice(0, -1), "function/list"), {}, signal);
  const show = ({ functions }) => {
    const mine = functions.filter((each) => each.id.at(-1) === id.at(-1)).sort((a, b) => b.version - a.version);
    const rows = mine.map((each) => [
      h("a", { href: link("function", id, { version: String(each.version) }) }, `Version ${each.version}`),
      h("code", {}, each.udf_version),
      each.disabled ? state("failed", "disabled") : state("ok", "enabled"),
      h("time", { class: "quiet", title: moment(each.created_at_millis) }, ago(each.created_at_millis)),
    ]);
    return list(["Version", "Label", "State", "Registered"], rows, { label: "Versions" });
  };
  return panel("Versions", { hint: "the newest first" }, loaded(ask, show, { signal }));
}

function flip(id, found) {
  const disabled = !found.disabled;
  confirm({
    title: [disabled ? "Disable " : "Enable ", name(id.at(-1))],
    text: disabled ? `Version ${found.version} is used by nothing new, and jobs that would call it fail. Values that it has made stay.` : `Version ${found.version} may be used again.`,
    look: disabled ? async () => uses(found.used_by) : null,
    button: disabled ? "Disable it" : "Enable it",
    danger: disabled,
    act: () => change(path("function", id, "alter"), { version: Number(found.version), disabled }),
    done: () => go(location.pathname + location.search),
  });
}

function drop(id, found) {
  const users = found.used_by?.length ?? 0;
  confirm({
    title: ["Drop version ", found.version, " of ", name(id.at(-1))],
    text: `Its name goes with its last version. ${users ? `It is refused while ${count(users, "column or view uses", "columns or views use")} it.` : "Nothing that you may see uses it."}`,
    look: users ? async () => uses(found.used_by) : null,
    word: id.at(-1),
    button: "Drop the version",
    act: () => change(path("function", id, "drop"), { version: Number(found.version) }),
    done: () => {
      toast(name(id.at(-1)), ` lost version ${found.version}`);
      go(link("catalog", id.slice(0, -1)));
    },
  });
}
