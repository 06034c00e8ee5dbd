// Draws a graph of objects as SVG, and exports it with its colours.

import { s } from "../dom.js";
import { link } from "../router.js";
import { icon } from "./icons.js";
import { NODE, layout } from "./layers.js";
import { KINDS, plainName } from "./names.js";

const MARGIN = 12;
const CHARACTERS = 25;
const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight"];

/** The drawing; `found` is {root, nodes, edges}. */
export function drawGraph(found, query) {
  const { boxes, lines, width, height } = layout(found);
  const near = new Set(found.edges.flatMap((e) => (e.from === found.root || e.to === found.root ? [e.from, e.to] : [])));
  const view = { width: width + 2 * MARGIN, height: height + 2 * MARGIN };
  const whole = s(
    "g",
    { transform: `translate(${MARGIN} ${MARGIN})` },
    lines.map((line) => drawLine(line, found)),
    found.nodes.map((node) => drawNode(node, boxes.get(node.key), found.root, near, query)),
  );
  return s(
    "svg",
    { class: "graph", viewBox: `0 0 ${view.width} ${view.height}`, ...view, role: "group", "aria-label": "Lineage" },
    whole,
  );
}

function drawLine({ edge, points }, { root }) {
  let d = `M${points[0].x} ${points[0].y}`;
  for (let index = 1; index < points.length; index += 1) {
    const [from, to] = [points[index - 1], points[index]];
    const half = (from.x + to.x) / 2;
    d += index % 2 ? `C${half} ${from.y} ${half} ${to.y} ${to.x} ${to.y}` : `L${to.x} ${to.y}`;
  }
  const touches = edge.from === root || edge.to === root;
  const columns = edge.columns?.length ? s("title", {}, edge.columns.join(", ")) : null;
  return s("path", { class: `edge ${touches ? "near" : ""}`, d }, columns);
}

function drawNode(node, box, root, near, query) {
  const [above, own] = texts(node);
  const word = node.state ?? "";
  const label = `${KINDS[node.kind] ?? node.kind} ${plainName([...node.id, node.column].filter(Boolean).join("."))}${word ? `, ${word}` : ""}`;
  const shape = icon(node.kind);
  for (const [key, value] of Object.entries({ x: 12, y: 12, width: 16, height: 16 })) shape.setAttribute(key, value);
  const classes = ["node", node.kind, word, node.key === root && "root", near.has(node.key) && "near"];
  const drawn = [
    s("title", {}, label),
    s("rect", { class: "box", width: NODE.width, height: NODE.height, rx: 6 }),
    word ? s("rect", { class: "stripe", width: 5, height: NODE.height, rx: 2 }) : null,
    shape,
    s("text", { class: "above", x: 36, y: 15 }, above),
    s("text", { class: "own", x: 36, y: 30 }, own),
    word && word !== "fresh" ? s("text", { class: "word", x: NODE.width - 8, y: 15, "text-anchor": "end" }, word) : null,
  ];
  const props = {
    class: classes.filter(Boolean).join(" "),
    href: link("lineage", node.id, { ...query, kind: kindOf(node), column: node.column }),
    transform: `translate(${box.x} ${box.y})`,
    "aria-label": label,
    "data-key": node.key,
    "aria-current": node.key === root ? "true" : null,
  };
  return s("a", props, drawn);
}

/** As the request for a lineage calls it. */
function kindOf(node) {
  return ["view", "iceberg_table", "function"].includes(node.kind) ? node.kind : "table";
}

function texts(node) {
  const names = node.column ? [...node.id, node.column] : node.id;
  return [cut(names.slice(0, -1).join(".") || (KINDS[node.kind] ?? node.kind)), cut(names.at(-1))];
}

function cut(text) {
  const shown = [...plainName(text)];
  if (shown.length <= CHARACTERS) return shown.join("");
  return `${shown.slice(0, CHARACTERS - 9).join("")}…${shown.slice(-8).join("")}`;
}

/** The drawing as a file that needs no style sheet. */
export function exportSvg(drawing) {
  const copy = drawing.cloneNode(true);
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((each, index) => {
    const style = getComputedStyle(each);
    for (const key of KEPT) copies[index].setAttribute(key, style.getPropertyValue(key));
    for (const key of ["class", "href"]) copies[index].removeAttribute(key);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = s("rect", { width: "100%", height: "100%" });
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}
