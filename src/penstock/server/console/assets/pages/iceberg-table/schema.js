// The columns of an Iceberg table, with the ids that its files know them by.

import { h } from "../../dom.js";
import { number } from "../../format.js";
import { name } from "../../parts/names.js";
import { list, panel } from "../../parts/panels.js";

const PAGE = 200;

export function schemaPanel(metadata) {
  const { fields, "schema-id": id, "identifier-field-ids": keys = [] } = currentSchema(metadata);
  const body = h("tbody", {});
  const more = h("button", { type: "button", class: "button", onclick: show }, "Show more columns");
  let shown = 0;
  function show() {
    body.append(...fields.slice(shown, shown + PAGE).map((field) => row(field, keys)));
    shown += PAGE;
    more.hidden = shown >= fields.length;
  }
  show();
  const table = list(["Id", "Column", "Type", "Required"], [], { label: "Columns" });
  table.querySelector("tbody").replaceWith(body);
  return panel("Columns", { hint: `${number(fields.length)}, schema ${id ?? 0}` }, table, more);
}

function row(field, keys) {
  return h(
    "tr",
    {},
    h("td", { class: "num" }, field.id),
    h("td", {}, name(field.name), field.doc ? h("div", { class: "quiet" }, name(field.doc)) : null),
    h("td", {}, h("code", {}, name(showType(field.type)))),
    h("td", { class: "quiet tight" }, [field.required ? "required" : "", keys.includes(field.id) ? "key" : ""].filter(Boolean).join(", ")),
  );
}

function currentSchema(metadata) {
  const wanted = metadata["current-schema-id"];
  return metadata.schemas?.find((each) => each["schema-id"] === wanted) ?? metadata.schemas?.[0] ?? { fields: [] };
}

/** A type of Iceberg's in one line, with the ids of what is in it. */
export function showType(type) {
  if (typeof type === "string") return type;
  if (type?.type === "struct") return `struct<${type.fields.map((each) => `${each.id}: ${each.name}: ${showType(each.type)}`).join(", ")}>`;
  if (type?.type === "list") return `list<${showType(type.element)}>`;
  if (type?.type === "map") return `map<${showType(type.key)}, ${showType(type.value)}>`;
  return JSON.stringify(type);
}

/** The paths of all fields by their ids, newest schema last, for specifications that name dropped ones. */
export function fieldNames(metadata) {
  const found = new Map();
  const walk = (type, above) => {
    const inner = [...(type.fields ?? []).map((each) => [each.id, each.name, each.type])];
    if (type.type === "list") inner.push([type["element-id"], "element", type.element]);
    if (type.type === "map") inner.push([type["key-id"], "key", type.key], [type["value-id"], "value", type.value]);
    for (const [id, own, its] of inner) {
      found.set(id, [...above, own].join("."));
      if (typeof its === "object") walk(its, [...above, own]);
    }
  };
  for (const each of [...(metadata.schemas ?? []), currentSchema(metadata)]) walk(each, []);
  return found;
}

/** What a partition or an order is made from: `day(at)`. */
export function showFields({ transform, "source-id": one, "source-ids": many }, names) {
  const read = (many ?? [one]).map((id) => names.get(id) ?? String(id)).join(", ");
  return h("code", {}, name(transform === "identity" ? read : `${transform}(${read})`));
}
