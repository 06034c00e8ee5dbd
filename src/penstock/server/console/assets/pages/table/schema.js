// The columns of a table: types, comments, and where computed ones come from.

import { change, path } from "../../api.js";
import { h } from "../../dom.js";
import { number, parse } from "../../format.js";
import { dependentsOf, dropParams } from "../../parts/dependents.js";
import { confirm, toast } from "../../parts/dialogs.js";
import { name } from "../../parts/names.js";
import { list, panel } from "../../parts/panels.js";
import { go } from "../../router.js";

const PAGE = 200;

export function schemaTab(about) {
  const { fields, properties, metadata = {}, roles, at } = about;
  const mayDrop = roles.includes("owner") && !at.version && !at.branch && !properties["penstock.kind"];
  const body = h("tbody", {});
  const more = h("button", { type: "button", class: "button", onclick: show }, "Show more columns");
  let shown = 0;
  function show() {
    body.append(...fields.slice(shown, shown + PAGE).map((field) => row(field, about, mayDrop)));
    shown += PAGE;
    more.hidden = shown >= fields.length;
  }
  show();
  const heads = ["Column", "Type", "", "Comes from", mayDrop ? "" : null].filter((each) => each !== null);
  const table = list(heads, [], { label: "Columns" });
  table.querySelector("tbody").replaceWith(body);
  return [
    panel("Columns", { hint: number(fields.length) }, table, more),
    properties["penstock.kind"] ? null : propertiesPanel("Properties", Object.entries(properties).filter(([key]) => !key.startsWith("penstock."))),
    propertiesPanel("Metadata of the schema", Object.entries(metadata)),
  ];
}

function row(field, about, mayDrop) {
  const told = field.metadata ?? {};
  const comment = told.comment ?? told.description ?? told["lance-schema:comment"];
  return h(
    "tr",
    {},
    h("td", {}, name(field.name), comment ? h("div", { class: "quiet" }, h("bdi", {}, comment)) : null),
    h("td", {}, h("code", {}, showType(field.type))),
    h("td", { class: "quiet tight" }, field.nullable ? "" : "not null"),
    h("td", {}, origin(field, about)),
    mayDrop
      ? h(
          "td",
          { class: "tight" },
          h(
            "button",
            { type: "button", class: "button quiet", "aria-label": `Drop column ${field.name}`, onclick: () => drop(about, field.name) },
            "Drop",
          ),
        )
      : null,
  );
}

function origin(field, { bound }) {
  const told = field.metadata ?? {};
  if (told["computed_column.expression"]) return h("code", {}, h("bdi", {}, told["computed_column.expression"]));
  const made = bound[field.name];
  if (!made?.function) return h("span", { class: "quiet" }, "written");
  return [
    "function ",
    name(made.function),
    " of ",
    made.inputs.map((input, index) => [index ? ", " : "", name(input)]),
  ];
}

/** An Arrow type of the protocol's JSON in one line. */
export function showType(type) {
  if (!type) return "";
  if (typeof type === "string") return type;
  const inner = (type.fields ?? []).map((field) => `${field.name}: ${showType(field.type)}`);
  const kind = type.type ?? "";
  if (/^struct$/i.test(kind)) return `struct<${inner.join(", ")}>`;
  if (/list/i.test(kind)) {
    const item = type.fields?.[0] ? showType(type.fields[0].type) : "";
    return type.length ? `${item}[${type.length}]` : `list<${item}>`;
  }
  if (/map/i.test(kind)) return `map<${inner.join(", ")}>`;
  return kind;
}

function propertiesPanel(title, pairs) {
  if (!pairs.length) return null;
  return panel(
    title,
    {},
    list(
      ["Key", "Value"],
      pairs.map(([key, value]) => [name(key), h("code", {}, h("bdi", {}, brief(value)))]),
      { label: title },
    ),
  );
}

function brief(value) {
  const text = typeof parse(value) === "object" ? JSON.stringify(parse(value)) : value;
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

function drop({ id, signal }, column) {
  confirm({
    title: ["Drop column ", name(column)],
    text: "Its values are gone from the newest version. Older versions still have them until they are cleaned up.",
    look: () => dependentsOf(id, signal, column),
    button: "Drop the column",
    act: (form) => change(path("table", id, "drop_columns", dropParams(form)), { columns: [column] }),
    done: () => {
      toast("Column ", name(column), " was dropped");
      go(location.pathname + location.search);
    },
  });
}

