// Small charts as SVG: sparklines, areas over time, bars.

import { h, s } from "../dom.js";
import { bytes, clock, compact, duration, moment, number } from "../format.js";

/** Numbers of a vector as a line; their meaning is in the label. */
export function sparkline(values, { length = values.length, width = 120, height = 22 } = {}) {
  const known = values.filter(Number.isFinite);
  const least = Math.min(...known, 0);
  const most = Math.max(...known, 0);
  const span = most - least || 1;
  const step = width / Math.max(values.length, 1);
  const zero = y(0);
  function y(value) {
    return height - 1 - ((value - least) / span) * (height - 2);
  }
  const bars = values.map((value, index) => {
    if (!Number.isFinite(value)) return "";
    const top = Math.min(y(value), zero);
    const size = Math.max(Math.abs(y(value) - zero), 0.75);
    return `M${(index * step).toFixed(2)} ${top.toFixed(2)}h${Math.max(step * 0.8, 0.4).toFixed(2)}v${size.toFixed(2)}h-${Math.max(step * 0.8, 0.4).toFixed(2)}z`;
  });
  const first = known.slice(0, 4).map((value) => Number(value.toPrecision(3)));
  const label = `vector of ${length}: ${first.join(", ")}${length > 4 ? ", …" : ""}`;
  return s(
    "svg",
    { class: "sparkline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    s("title", {}, label),
    s("path", { d: bars.join("") }),
  );
}

/** A value over time, as an area with its last value told. */
export function timeChart(points, { label, unit = "count", height = 72, limit = null } = {}) {
  const width = 320;
  const show = unit === "bytes" ? bytes : unit === "seconds" ? duration : compact;
  if (points.length < 2) {
    return h("p", { class: "quiet" }, points.length ? `${show(points[0].value)} so far` : "nothing yet");
  }
  const first = points[0].at;
  const last = points[points.length - 1].at;
  const highest = Math.max(...points.map((p) => p.value), 1e-9);
  // A limit far above would flatten all that happened.
  const isNear = limit !== null && limit <= 3 * highest;
  const most = isNear ? Math.max(highest, limit) : highest;
  const day = 86400000;
  const when = (at) => (last - first < day ? clock(at) : moment(at).slice(0, last - first < 4 * day ? 16 : 10));
  const x = (at) => ((at - first) / (last - first || 1)) * width;
  const y = (value) => height - 4 - (value / most) * (height - 12);
  const line = points.map((p, i) => `${i ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
  const final = points[points.length - 1];
  const text = `${label}: ${show(points[0].value)} at ${moment(first)}, ${show(final.value)} at ${moment(last)}`;
  return h(
    "figure",
    { class: "time-chart" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
      s("title", {}, text),
      s("path", { class: "area", d: `${line}L${width} ${height}L0 ${height}Z` }),
      s("path", { class: "line", d: line }),
      !isNear ? null : s("path", { class: "limit", d: `M0 ${y(limit)}H${width}` }),
    ),
    h(
      "figcaption",
      {},
      h("span", {}, when(first)),
      h("span", {}, `at most ${show(highest)}${limit === null ? "" : `, ${isNear ? "– – " : ""}target ${show(limit)}`}`),
      h("span", {}, when(last)),
    ),
  );
}

/** Bars beside each other with words and numbers: bars([{label, value, tone, text}]). */
export function bars(items) {
  const most = Math.max(...items.map((item) => item.value ?? 0), 1);
  return h(
    "div",
    { class: "bars" },
    items.map((item) =>
      h(
        "div",
        { class: "bar-row" },
        h("span", { class: "bar-label" }, item.label),
        bar(item.value ?? 0, most, item.tone),
        h("span", { class: "bar-value" }, item.text ?? number(item.value)),
      ),
    ),
  );
}

function bar(value, most, tone = "busy") {
  const width = value ? Math.max((100 * value) / most, 0.8) : 0;
  return s(
    "svg",
    { class: `bar-svg ${tone}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "track", width: 100, height: 10 }),
    s("rect", { class: "value", width, height: 10 }),
  );
}

/** How far something is; without a total it only says that it goes on. */
export function progress(done, total, label) {
  const element = h("progress", { class: "progress", "aria-label": label });
  set(done, total);
  function set(value, most) {
    if (most > 0) {
      element.max = most;
      element.value = Math.min(value ?? 0, most);
    } else {
      element.removeAttribute("value");
    }
  }
  element.set = set;
  return element;
}

/** Days as stacked bars: days = [{day, parts: [[tone, value, word]…]}]. */
export function dayChart(days, label) {
  const width = 320;
  const height = 72;
  const sums = days.map((each) => each.parts.reduce((sum, [, value]) => sum + value, 0));
  const most = Math.max(...sums, 1);
  const step = width / Math.max(days.length, 1);
  const columns = days.map((each, index) => {
    let y = height;
    const told = each.parts.filter(([, value]) => value).map(([, value, word]) => `${number(value)} ${word}`);
    return s(
      "g",
      {},
      s("title", {}, `${each.day}: ${told.join(", ") || "none"}`),
      s("rect", { class: "ground", x: index * step, width: Math.max(step - 2, 1), height }),
      each.parts.map(([tone, value]) => {
        const size = (value / most) * (height - 4);
        y -= size;
        return s("rect", { class: tone, x: index * step, y, width: Math.max(step - 2, 1), height: size });
      }),
    );
  });
  const total = sums.reduce((sum, each) => sum + each, 0);
  return h(
    "figure",
    { class: "time-chart day-chart" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${number(total)} in ${days.length} days` },
      columns,
    ),
    h("figcaption", {}, h("span", {}, days[0]?.day ?? ""), h("span", {}, days.at(-1)?.day ?? "")),
  );
}
