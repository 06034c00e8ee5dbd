// Values of rows: images as images, vectors as lines, long ones unfolded on demand.

import { path, send } from "../api.js";
import { h } from "../dom.js";
import { bytes, number } from "../format.js";
import { sparkline } from "./charts.js";
import { copyButton } from "./copy.js";
import { open } from "./dialogs.js";
import { name } from "./names.js";
import { loaded } from "./panels.js";

const BRIEF = 140;
const ONE_LINE = 40;
const SHOWN = 1_000_000;

/** One value as a cell of a grid; `whole` is the address of all of it, where there is one. */
export function showCell(cell, column, whole) {
  if (cell === null || cell === undefined) return h("span", { class: "null" }, "null");
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell);
  if (typeof cell === "string") return text(cell, cell.length, column, whole);
  switch (cell.kind) {
    case "text":
      return text(cell.value, cell.length, column, whole);
    case "number":
      return cell.value;
    case "bytes":
      return blob(cell, column, whole);
    case "vector":
      return vector(cell, column, whole);
    case "list":
    case "struct":
    case "map":
      return nested(cell, column, whole);
    default:
      return text(String(cell.value ?? ""), 0, column, whole);
  }
}

function text(value, length, column, whole) {
  const brief = value.length > BRIEF;
  const shown = h("bdi", { class: `text ${value.length <= ONE_LINE ? "brief" : ""}` }, brief ? `${value.slice(0, BRIEF)}…` : value);
  if (!brief && length <= value.length) return shown;
  const look = length > value.length && whole ? whole : null;
  return unfold(shown, count(length, value.length), column, () => wholeText(value, length, look));
}

function count(length, known) {
  return `${number(Math.max(length, known))} characters`;
}

function nested(cell, column, whole) {
  const known = plain(cell);
  const brief = JSON.stringify(known);
  const shown = h("code", { class: "nested" }, h("bdi", {}, brief.length > BRIEF ? `${brief.slice(0, BRIEF)}…` : brief));
  const word = cell.kind === "struct" ? "fields" : "entries";
  const laid = JSON.stringify(known, null, 2);
  return unfold(shown, `${number(cell.length)} ${word}`, column, () => wholeText(laid, laid.length, whole));
}

/** A nested cell as plain JSON, as far as it was sent. */
function plain(cell) {
  if (cell === null || typeof cell !== "object") return cell;
  switch (cell.kind) {
    case "list":
      return more(cell.value.map(plain), cell);
    case "map":
      return more(cell.value.map(([key, value]) => [plain(key), plain(value)]), cell);
    case "struct":
      return Object.fromEntries(Object.entries(cell.value).map(([key, value]) => [key, plain(value)]));
    case "bytes":
      return `(${bytes(cell.length)})`;
    case "text":
      return `${cell.value}…`;
    default:
      return cell.value;
  }
}

function more(values, cell) {
  return cell.length > values.length ? [...values, `… ${number(cell.length)} in all`] : values;
}

function unfold(shown, hint, column, build) {
  const look = () => open(name(column.name), build());
  return h(
    "button",
    { type: "button", class: "unfold", onclick: look },
    shown,
    h("span", { class: "more" }, hint),
  );
}

function wholeText(known, length, whole) {
  const show = (found) => [
    h(
      "p",
      { class: "quiet row" },
      found.length > SHOWN ? `the first ${number(SHOWN)} of ${number(found.length)} characters` : count(0, found.length),
      copyButton(found, "Copy the value"),
    ),
    h("pre", { class: "whole", tabindex: "0" }, h("bdi", {}, found.slice(0, SHOWN))),
  ];
  if (!whole) return show(known);
  return loaded(async () => pretty(await (await send("GET", whole)).text()), show);
}

function pretty(found) {
  if (found.length > SHOWN || !/^[[{]/.test(found)) return found;
  try {
    return JSON.stringify(JSON.parse(found), null, 2);
  } catch {
    return found;
  }
}

function vector(cell, column, whole) {
  const shown = sparkline(cell.value, { length: cell.length });
  const known = JSON.stringify(cell.value);
  const similar = column.similar && whole ? () => column.similar(whole) : null;
  return unfold(shown, `${number(cell.length)} numbers`, column, () => [
    similar ? h("p", {}, h("button", { type: "button", class: "button", onclick: similar }, "Find rows like this one")) : null,
    sparkline(cell.value, { length: cell.length, width: 640, height: 120 }),
    wholeText(known, known.length, whole),
  ]);
}

function blob(cell, column, whole) {
  const size = bytes(cell.length);
  if (!whole) return h("span", { class: "blob" }, cell.media ? `${cell.media} · ${size}` : size);
  if (!cell.media) {
    return h("a", { class: "blob", href: whole, download: "" }, `${size}`);
  }
  const label = `${cell.media} of ${size}`;
  const look = () =>
    open(name(column.name), [
      h("p", { class: "quiet" }, label, " · ", h("a", { href: whole, download: "" }, "download")),
      h("img", { class: "picture", alt: label, src: whole }),
    ]);
  const thumb = h("img", { class: "thumb", alt: label, src: whole, loading: "lazy" });
  thumb.addEventListener("error", () => thumb.replaceWith(h("span", { class: "blob" }, label)));
  return h("button", { type: "button", class: "unfold image", onclick: look, title: label }, thumb);
}

/** The address of one whole value of a table. */
export function cellAddress(id, rowId, column, at = {}) {
  return path("table", id, "cell", { column, row_id: rowId, ...at });
}
