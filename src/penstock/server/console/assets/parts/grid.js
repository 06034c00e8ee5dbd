// Rows of a table or of a query's result: as many columns at a time as a page can carry.

import { fill, h } from "../dom.js";
import { number } from "../format.js";
import { showCell } from "./cells.js";
import { name } from "./names.js";
import { state } from "./states.js";

export const COLUMNS = 40;

/** A grid of {columns, rows}; `whole(row, column)` gives the way to one whole value. */
export function grid(found, { whole = () => null, label = "Rows", states = {} } = {}) {
  const { columns, rows } = found;
  const heads = columns.map((column) =>
    h(
      "th",
      { scope: "col", class: isNumeric(column.kind) ? "num" : "" },
      h("div", { class: "column-name" }, name(column.name), states[column.name] ? state(states[column.name]) : null),
      h("div", { class: "column-type" }, column.type ?? ""),
    ),
  );
  const lines = rows.map((row, line) =>
    h(
      "tr",
      {},
      row.map((cell, index) =>
        h(
          "td",
          { class: isNumeric(columns[index].kind) ? "num" : "" },
          showCell(cell, columns[index], whole(line, columns[index])),
        ),
      ),
    ),
  );
  return h(
    "div",
    { class: "scroller grid-scroller", tabindex: "0", role: "group", "aria-label": label },
    h("table", { class: "grid" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, lines)),
  );
}

function isNumeric(kind) {
  return kind === "number";
}

/** Chooses a window of many columns; calls `change(names)` when it moves. */
export function columnWindow(all, change, size = COLUMNS) {
  if (all.length <= size) return null;
  let first = 0;
  let wanted = all;
  const told = h("span", { class: "quiet", role: "status" });
  const back = h("button", { type: "button", class: "button", onclick: () => move(-size) }, "Columns before");
  const on = h("button", { type: "button", class: "button", onclick: () => move(size) }, "Columns after");
  const filter = h("input", {
    type: "search",
    placeholder: "Find columns",
    "aria-label": "Find columns",
    oninput: () => {
      const part = filter.value.toLowerCase();
      wanted = all.filter((each) => each.toLowerCase().includes(part));
      first = 0;
      tell();
      if (wanted.length) change(names());
    },
  });

  function names() {
    return wanted.slice(first, first + size);
  }
  function move(by) {
    first = Math.min(Math.max(first + by, 0), Math.max(wanted.length - 1, 0));
    tell();
    change(names());
  }
  function tell() {
    const to = Math.min(first + size, wanted.length);
    fill(told, wanted.length ? `${number(first + 1)}–${number(to)} of ${number(wanted.length)} columns` : "no such column");
    back.disabled = first === 0;
    on.disabled = to >= wanted.length;
  }
  tell();
  return h("div", { class: "toolbar" }, filter, back, on, told);
}
