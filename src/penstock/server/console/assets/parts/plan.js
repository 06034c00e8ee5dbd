// A plan as a picture: rows to insert, update and delete; calls; seconds; and each source.

import { h } from "../dom.js";
import { count, duration, number } from "../format.js";
import { bars } from "./charts.js";
import { name, objectLink } from "./names.js";
import { facts, list } from "./panels.js";
import { state } from "./states.js";

const BARS = [
  ["rows_to_insert", "insert", "good"],
  ["rows_to_update", "update", "warn"],
  ["rows_to_delete", "delete", "bad"],
  ["rows_staying", "stay", "idle"],
  ["function_calls", "calls", "busy"],
];
const MODES = { none: "nothing to do", incremental: "only what changed", full: "everything is computed" };

export function showPlan(plan) {
  const shown = BARS.filter(([key]) => key in plan).map(([key, label, tone]) => ({
    label,
    tone,
    value: plan[key] ?? 0,
    text: plan[key] === null ? "only a run tells" : number(plan[key]),
  }));
  return h(
    "div",
    { class: "plan" },
    h("p", { class: "row" }, state(plan.mode === "none" ? "fresh" : "stale", plan.mode), h("span", {}, MODES[plan.mode] ?? "")),
    h("p", {}, h("bdi", {}, plan.reason ?? "")),
    plan.mode === "none" ? null : bars(shown),
    facts([
      plan.mode === "none" ? null : ["Takes about", plan.estimated_seconds === null || plan.estimated_seconds === undefined ? "not known yet" : `${duration(plan.estimated_seconds)} on one core`],
      plan.fragments === undefined ? null : ["Fragments", number(plan.fragments)],
      plan.obstacle ? ["Not followed", h("bdi", {}, plan.obstacle)] : null,
      plan.rows_left ? ["Left", count(plan.rows_left, "row")] : null,
    ]),
    unknown(plan.unknown),
    sources(plan.source_versions),
    byReason(plan.calls_by_reason),
    upstream(plan.upstream),
  );
}

function unknown(told = {}) {
  const why = [...new Set(Object.values(told))];
  return why.map((text) => h("p", { class: "quiet" }, h("bdi", {}, text)));
}

function sources(versions) {
  const pairs = Object.entries(versions ?? {});
  if (!pairs.length) return null;
  const most = Math.max(...pairs.map(([, each]) => (each.to ?? 0) - (each.from ?? 0)), 1);
  const rows = pairs.map(([key, { from, to }]) => [
    objectLink("table", key.split("$")),
    from === null ? "never read" : `version ${from}`,
    `version ${to}`,
    h("meter", { min: 0, max: most, value: to - (from ?? 0), "aria-label": "versions between" }),
    `${count(to - (from ?? 0), "version")} between`,
  ]);
  return list(["Source", "The view has", "It gets", "", ""], rows, { label: "Sources" });
}

function byReason(told) {
  const known = Object.entries(told ?? {}).filter(([, value]) => value);
  if (!known.length) return null;
  return h("p", { class: "quiet" }, "Calls because of: ", known.map(([why, value]) => `${why.replaceAll("_", " ")} ${number(value)}`).join(", "));
}

function upstream(plans) {
  const pairs = Object.entries(plans ?? {});
  if (!pairs.length) return null;
  return [
    h("p", {}, "Refreshed before it:"),
    h("ul", { class: "stack" }, pairs.map(([key, plan]) => h("li", {}, name(key.replaceAll("$", ".")), `: ${plan.mode}`))),
  ];
}
