// What is made from what: a graph around one object, up and down.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { count, duration } from "../format.js";
import { drawGraph, exportSvg } from "../parts/graph.js";
import { name, objectLink } from "../parts/names.js";
import { empty, loaded, pageHead, panel } from "../parts/panels.js";
import { save } from "../parts/save.js";
import { openSearch } from "../parts/search.js";
import { state } from "../parts/states.js";
import { go, link, note } from "../router.js";

const KINDS = ["table", "view", "iceberg_table", "function"];
const LIMIT = 200;
const ZOOMS = [0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.6];

export const title = ({ id }) => (id.length ? `Lineage of ${id.join(".")}` : "Lineage");

export async function render({ id, query, signal }) {
  if (!id.length) return begin(signal);
  const kind = KINDS.includes(query.get("kind")) ? query.get("kind") : "table";
  const column = query.get("column") || undefined;
  const chosen = { up: query.get("up") ?? "", down: query.get("down") ?? "", columns: query.get("columns") !== "no" };
  const body = {
    column,
    up: chosen.up === "" ? undefined : Number(chosen.up),
    down: chosen.down === "" ? undefined : Number(chosen.down),
    limit: LIMIT,
    columns: chosen.columns,
  };
  const place = loaded(() => post(path(kind === "function" ? kind : "table", id, "lineage"), body, signal), (found) => show(found, chosen), { signal, lines: 8 });
  return [
    pageHead({
      above: h("nav", { class: "crumbs", "aria-label": "Where it is" }, h("a", { href: link("lineage") }, "Lineage")),
      kind: column ? "column" : kind,
      title: name([...id, column].filter(Boolean).join(".")),
    }),
    place,
  ];
}

function show(found, chosen) {
  const root = found.nodes.find((node) => node.key === found.root);
  const drawing = drawGraph(found, { up: chosen.up, down: chosen.down, columns: chosen.columns ? "" : "no" });
  const frame = h("div", { class: "graph-frame", tabindex: "0", role: "region", "aria-label": "Drawing" }, drawing);
  const [width, height] = drawing.getAttribute("viewBox").split(" ").slice(2).map(Number);
  let zoom = 1;
  function scale(next) {
    zoom = next;
    drawing.setAttribute("width", width * zoom);
    drawing.setAttribute("height", height * zoom);
  }
  function step(by) {
    const nearest = ZOOMS.reduce((best, each) => (Math.abs(each - zoom) < Math.abs(best - zoom) ? each : best));
    scale(ZOOMS[Math.min(Math.max(ZOOMS.indexOf(nearest) + by, 0), ZOOMS.length - 1)]);
  }
  function fit() {
    scale(Math.min(Math.max(Math.min(frame.clientWidth / width, 1.25), 0.3), 1.25));
    centre(frame, drawing);
  }
  requestAnimationFrame(() => {
    // A drawing that would become too small to read is scrolled instead.
    if (width > frame.clientWidth) scale(Math.max(frame.clientWidth / width, 0.65));
    centre(frame, drawing);
  });
  const stale = found.nodes.filter((node) => node.state === "stale" || node.state === "late").length;
  return [
    h(
      "div",
      { class: "toolbar" },
      levels("Up", "up", chosen),
      levels("Down", "down", chosen),
      h(
        "label",
        {},
        h("input", { type: "checkbox", checked: chosen.columns, onchange: (event) => again({ columns: event.target.checked ? "" : "no" }) }),
        "Computed columns",
      ),
      h("button", { type: "button", class: "button", "aria-label": "Smaller", onclick: () => step(-1) }, "−"),
      h("button", { type: "button", class: "button", "aria-label": "Larger", onclick: () => step(1) }, "+"),
      h("button", { type: "button", class: "button", onclick: fit }, "Fit"),
      h("button", { type: "button", class: "button", onclick: () => save(exportSvg(drawing), `lineage-${root?.id.join(".") ?? ""}.svg`) }, "Export SVG"),
    ),
    h(
      "p",
      { class: "row" },
      root && root.kind !== "column" ? objectLink(root.kind, root.id) : root ? objectLink("table", root.id, { tab: "columns" }) : null,
      root?.state ? state(root.state) : null,
      root?.lag_seconds ? h("span", { class: "quiet" }, `${duration(root.lag_seconds)} behind`) : null,
      h("span", { class: "quiet" }, `${count(found.nodes.length, "object")}${stale ? `, ${stale} stale` : ""}; what is read stands left of what reads it`),
      found.cut ? state("stale", `only ${LIMIT} are shown`) : null,
    ),
    frame,
  ];
}

function centre(frame, drawing) {
  const node = drawing.querySelector(".node.root");
  if (!node) return;
  const [box, outer] = [node.getBoundingClientRect(), frame.getBoundingClientRect()];
  frame.scrollLeft += box.left - outer.left - (outer.width - box.width) / 2;
  frame.scrollTop += box.top - outer.top - (outer.height - box.height) / 2;
}

function levels(text, key, chosen) {
  const choice = h(
    "select",
    { onchange: () => again({ [key]: choice.value }) },
    [["", "all"], ["0", "none"], ["1", "1 step"], ["2", "2 steps"], ["3", "3 steps"]].map(([value, word]) => h("option", { value }, word)),
  );
  choice.value = chosen[key];
  return h("label", {}, text, choice);
}

function again(changes) {
  note(changes);
  go(location.pathname + location.search);
}

function begin(signal) {
  const body = { text: "", kinds: ["materialized_view", "view"], limit: 60 };
  const place = loaded(
    () => post(path("namespace", [], "names/search"), body, signal),
    ({ names }) =>
      names.length
        ? h("ul", { class: "columns-list" }, names.map((each) => h("li", {}, startLink(each))))
        : empty("There are no views yet", "A view makes a line from what it reads:", ['lake.create_view("shop.large", "SELECT * FROM shop.orders WHERE amount > 10")']),
    { signal },
  );
  return [
    pageHead({ title: "Lineage", actions: h("button", { type: "button", class: "button primary", onclick: openSearch }, "Find a table") }),
    panel("Begin with a view", { hint: "or open any table, and choose Lineage there" }, place),
  ];
}

function startLink({ kind, id }) {
  const anchor = objectLink(kind, id);
  anchor.setAttribute("href", link("lineage", id, { kind: kind === "view" ? "view" : "table" }));
  return anchor;
}

