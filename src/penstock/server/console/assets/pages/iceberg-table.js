// An Iceberg table: its schema, its snapshots, how it is laid out, and which views read it.

import { getExact, icebergPath, path, post, remove } from "../api.js";
import { h } from "../dom.js";
import { ago, count, moment, number } from "../format.js";
import { dependentsOf } from "../parts/dependents.js";
import { confirm, toast } from "../parts/dialogs.js";
import { crumbs, name, objectLink } from "../parts/names.js";
import { empty, facts, list, loaded, pageHead, panel, tabs } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { go, link } from "../router.js";
import { rights } from "../session.js";
import { fieldNames, schemaPanel, showFields } from "./iceberg-table/schema.js";
import { snapshotsPanel } from "./iceberg-table/snapshots.js";

export const title = ({ id }) => id.join(".");

export async function render({ id, query, signal }) {
  const [table, [roles]] = await Promise.all([
    getExact(icebergPath(id), signal),
    rights([{ kind: "iceberg_table", id }], signal),
  ]);
  const { metadata } = table;
  const rows = currentSnapshot(metadata)?.summary?.["total-records"];
  return [
    pageHead({
      above: crumbs(id),
      kind: "iceberg_table",
      title: name(id.at(-1)),
      marks: [
        h("span", { class: "quiet" }, `Iceberg table, format ${metadata["format-version"]}`),
        /^\d+$/.test(rows ?? "") ? h("span", { class: "quiet" }, `· ${count(Number(rows), "row")}`) : null,
      ],
      actions: [
        h("a", { class: "button", href: link("lineage", id, { kind: "iceberg_table" }) }, "Lineage"),
        roles.includes("owner")
          ? h("button", { type: "button", class: "button danger", onclick: () => drop(id, metadata, signal) }, "Drop")
          : null,
      ],
    }),
    tabs(
      [
        ["schema", "Schema", () => schemaPanel(metadata)],
        ["snapshots", "Snapshots", () => snapshotsPanel(metadata)],
        ["layout", "Layout", () => layout(table)],
        ["readers", "Read by", () => readers(id, signal)],
      ],
      query.get("tab"),
    ),
  ];
}

function currentSnapshot(metadata) {
  const current = String(metadata["current-snapshot-id"] ?? "");
  return (metadata.snapshots ?? []).find((each) => String(each["snapshot-id"]) === current);
}

function layout({ metadata, "metadata-location": file }) {
  const names = fieldNames(metadata);
  const find = (all, key, wanted) => (all ?? []).find((each) => each[key] === wanted)?.fields ?? [];
  const spec = find(metadata["partition-specs"], "spec-id", metadata["default-spec-id"]);
  const order = find(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"]);
  const pairs = Object.entries(metadata.properties ?? {});
  const updated = metadata["last-updated-ms"];
  return h(
    "div",
    { class: "panels" },
    panel(
      "Where it is",
      { wide: true },
      facts([
        ["Location", h("code", {}, name(metadata.location))],
        ["Metadata file", h("code", {}, name(file))],
        ["Id", h("code", {}, name(metadata["table-uuid"]))],
        ["Changed", h("time", { title: moment(updated) }, ago(updated))],
      ]),
    ),
    panel(
      "Partitions",
      {},
      spec.length
        ? list(["Partition", "Made from"], spec.map((each) => [name(each.name), showFields(each, names)]), { label: "Partitions" })
        : h("p", { class: "quiet" }, "It is not partitioned."),
    ),
    panel(
      "Sort order",
      {},
      order.length
        ? list(
            ["Sorted by", "Direction", "Nulls"],
            order.map((each) => [showFields(each, names), name(each.direction), name(String(each["null-order"]).replace("nulls-", ""))]),
            { label: "Sort order" },
          )
        : h("p", { class: "quiet" }, "Its rows have no order."),
    ),
    panel(
      "Properties",
      { wide: true, hint: number(pairs.length) },
      pairs.length
        ? list(["Key", "Value"], pairs.map(([key, value]) => [name(key), h("code", {}, name(value))]), { label: "Properties" })
        : h("p", { class: "quiet" }, "It has none."),
    ),
  );
}

function readers(id, signal) {
  const body = { up: 0, down: 1, columns: false };
  const place = loaded(
    () => post(path("table", id, "lineage"), body, signal),
    (found) => {
      const views = found.nodes.filter((node) => node.key !== found.root);
      if (!views.length) return empty("No view reads it", "A materialized view keeps the rows of its query:", [`lake.create_view(${JSON.stringify([...id.slice(0, -1), "copy"].join("."))}, ${JSON.stringify(`SELECT * FROM ${id.join(".")}`)})`]);
      const rows = views.map((node) => [objectLink(node.kind, node.id), node.state ? state(node.state) : ""]);
      return [list(["View", "State"], rows, { label: "Views that read it" }), found.cut ? h("p", { class: "quiet" }, "and more") : null];
    },
    { signal },
  );
  return panel("Read by", { hint: "views that name it themselves" }, place);
}

function drop(id, metadata, signal) {
  const mayNotPurge = String(metadata.properties?.["gc.enabled"] ?? "true").toLowerCase() === "false";
  const purge = [
    h("label", { class: "row" }, h("input", { type: "checkbox", name: "purge" }), " Delete its files too"),
    h("p", { class: "quiet" }, "That deletes everything in ", h("code", {}, name(metadata.location)), ", and in a folder that the table has left, for ever."),
  ];
  confirm({
    title: ["Drop ", name(id.at(-1))],
    text: "The table goes from the catalog. Its files stay, and it can be registered again from its metadata file.",
    look: async () => [
      await dependentsOf(id, signal, undefined, { mayCascade: false }),
      h("p", { class: "quiet" }, "As long as a materialized view reads it, the drop is refused."),
      mayNotPurge ? h("p", {}, "Its property gc.enabled is false: its files are not deleted.") : purge,
    ],
    word: id.at(-1),
    button: "Drop the table",
    act: (form) => remove(icebergPath(id, form.elements.purge?.checked ? { purgeRequested: "true" } : {})),
    done: () => {
      toast(name(id.at(-1)), " was dropped");
      go(link("catalog", id.slice(0, -1)));
    },
  });
}
