// The rows of a table: filter, search by words or by a vector, page by page.

import { path, post, rows as askRows, send } from "../../api.js";
import { fill, h } from "../../dom.js";
import { number, parse } from "../../format.js";
import { cellAddress } from "../../parts/cells.js";
import { COLUMNS, columnWindow, grid } from "../../parts/grid.js";
import { empty, failure, skeleton } from "../../parts/panels.js";
import { note } from "../../router.js";

const PAGE = 50;
const ROW_ID = "_rowid";
const HINTS = {
  filter: "SQL, like: amount > 10 AND name IS NOT NULL",
  words: "Words, found by a full-text index",
  vector: "[0.1, 0.2, …] as many numbers as the vectors have",
};

export function rowsTab(about) {
  const { id, at, signal } = about;
  if (about.is_only_declared) {
    return empty("It has no rows yet", "The table is declared, and nobody has written to it.", [
      `import penstock\n\npenstock.connect("${location.origin}").table("${id.join(".")}").append([{"id": 1}])`,
    ]);
  }
  const names = about.fields.map((field) => field.name);
  const query = new URLSearchParams(location.search);
  const chosen = { kind: query.get("by") ?? "filter", text: query.get("where") ?? "", offset: 0 };
  let shown = names.slice(0, COLUMNS);
  let asked = new AbortController();
  signal.addEventListener("abort", () => asked.abort());

  const place = h("div", { class: "loaded" });
  const told = h("span", { class: "quiet", role: "status" });
  const back = h("button", { type: "button", class: "button", onclick: () => step(-PAGE) }, "Before");
  const on = h("button", { type: "button", class: "button", onclick: () => step(PAGE) }, "After");
  const box = h("input", { type: "search", class: "grow mono", value: chosen.text, spellcheck: "false", "data-slash": true });
  const kind = h(
    "select",
    { "aria-label": "How to look", onchange: hint },
    h("option", { value: "filter" }, "Filter"),
    h("option", { value: "words" }, "Words"),
    names.length && about.fields.some(isVector) ? h("option", { value: "vector" }, "Vector") : null,
  );
  kind.value = chosen.kind;
  if (!kind.value) kind.value = "filter";
  const form = h(
    "form",
    { class: "toolbar", role: "search", onsubmit: submit },
    kind,
    box,
    h("button", { type: "submit", class: "button primary" }, "Show"),
  );

  function hint() {
    box.placeholder = HINTS[kind.value];
    box.setAttribute("aria-label", HINTS[kind.value]);
  }
  hint();

  function submit(event) {
    event.preventDefault();
    Object.assign(chosen, { kind: kind.value, text: box.value.trim(), offset: 0 });
    note({ by: chosen.text && chosen.kind !== "filter" ? chosen.kind : "", where: chosen.text });
    load();
  }

  function step(by) {
    chosen.offset = Math.max(chosen.offset + by, 0);
    load();
  }

  async function similar(column, whole) {
    const found = await (await send("GET", whole)).json();
    kind.value = "vector";
    hint();
    box.value = JSON.stringify(found);
    chosen.column = column;
    document.querySelector("dialog[open]")?.close();
    form.requestSubmit();
  }

  async function load() {
    asked.abort();
    asked = new AbortController();
    fill(place, skeleton(8));
    try {
      const body = { ...at, ...toQuery(chosen), columns: shown, with_row_id: true, k: PAGE, offset: chosen.offset };
      const found = await askRows(path("table", id, "query"), body, asked.signal);
      const laid = withoutRowIds(found);
      const whole = (row, column) =>
        laid.rowIds && names.includes(column.name) ? cellAddress(id, laid.rowIds[row], column.name, at) : null;
      for (const column of laid.columns) column.similar = (address) => similar(column.name, address);
      fill(
        place,
        laid.rows.length
          ? grid(laid, { whole, label: `Rows of ${id.join(".")}` })
          : h("p", { class: "quiet" }, chosen.text ? "No row fits." : "No rows."),
        found.complete === false ? h("p", { class: "quiet" }, "Some rows were left out: the answer would have been too large.") : null,
      );
      const count = laid.rows.length;
      fill(told, count ? `rows ${number(chosen.offset + 1)}–${number(chosen.offset + count)}` : "");
      back.disabled = chosen.offset === 0;
      on.disabled = count < PAGE && found.complete !== false;
      if (chosen.kind === "filter" && chosen.text) countFound(asked.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === undefined) console.error(error);
      fill(place, failure(error, load));
    }
  }

  async function countFound(over) {
    const found = await post(path("table", id, "count_rows"), { ...at, predicate: chosen.text }, over).catch(() => null);
    if (found !== null) told.append(` of ${number(found)} that fit`);
  }

  load();
  const columns = columnWindow(names, (wanted) => {
    shown = wanted;
    load();
  });
  return [form, columns, place, h("div", { class: "toolbar" }, back, on, told)];
}

function isVector(field) {
  return /fixed_?size_?list/i.test(field.type?.type ?? "");
}

function toQuery({ kind, text, column }) {
  if (!text) return {};
  if (kind === "words") return { full_text_query: { string_query: { query: text } } };
  if (kind !== "vector") return { filter: text };
  const vector = parse(text);
  if (!Array.isArray(vector)) throw Object.assign(new Error("this is no list of numbers"), { status: 0, detail: HINTS.vector });
  return { vector: { single_vector: vector }, vector_column: column };
}

/** The rows without the ids of rows, which say where their values are. */
function withoutRowIds(found) {
  const place = found.columns.findIndex((column) => column.name === ROW_ID);
  if (place < 0) return { ...found, rowIds: null };
  const keep = (_, index) => index !== place;
  return {
    columns: found.columns.filter(keep),
    rows: found.rows.map((row) => row.filter(keep)),
    rowIds: found.rows.map((row) => row[place]?.value ?? row[place]),
  };
}
