// The snapshots of an Iceberg table as a line through time, with the branches and tags on them.

import { h } from "../../dom.js";
import { ago, count, moment, number } from "../../format.js";
import { icon } from "../../parts/icons.js";
import { name } from "../../parts/names.js";
import { empty, panel } from "../../parts/panels.js";

const PAGE = 50;

export function snapshotsPanel(metadata) {
  const current = String(metadata["current-snapshot-id"] ?? "");
  const refs = refsBySnapshot(metadata.refs);
  const found = [...(metadata.snapshots ?? [])].reverse().sort((a, b) => b["timestamp-ms"] - a["timestamp-ms"]);
  if (!found.length) return panel("Snapshots", {}, empty("No snapshots yet", "Each write of an engine makes one."));
  const items = h("ol", { class: "versions" });
  const more = h("button", { type: "button", class: "button", onclick: show }, "Show more snapshots");
  let shown = 0;
  function show() {
    items.append(...found.slice(shown, shown + PAGE).map((each) => line(each, String(each["snapshot-id"]) === current, refs)));
    shown += PAGE;
    more.hidden = shown >= found.length;
  }
  show();
  return panel("Snapshots", { hint: `${number(found.length)}, the newest first` }, items, more);
}

function line(each, isCurrent, refs) {
  const { summary = {}, "timestamp-ms": at } = each;
  const id = String(each["snapshot-id"]);
  return h(
    "li",
    { class: isCurrent ? "chosen" : null, "data-snapshot": id },
    h("span", { class: "knot", "aria-hidden": "true" }),
    h("span", { class: "mono" }, id),
    h("span", { class: "operation" }, name(summary.operation ?? "unknown")),
    isCurrent ? h("span", { class: "tag current" }, "current") : null,
    amount(summary["added-records"], "+", "grown"),
    amount(summary["deleted-records"], "−", "shrunk"),
    isCount(summary["total-records"]) ? h("span", { class: "quiet" }, count(Number(summary["total-records"]), "row")) : null,
    h("time", { class: "quiet", title: moment(at) }, ago(at)),
    h("span", { class: "row" }, (refs.get(id) ?? []).map(showRef)),
  );
}

function showRef([ref, { type }]) {
  const word = type === "tag" ? "tag" : "branch";
  return h("span", { class: "tag", title: `${word} ${ref}` }, icon(word === "tag" ? "tag" : "lineage"), h("span", { class: "visually-hidden" }, `${word} `), name(ref));
}

function amount(value, sign, tone) {
  if (!isCount(value) || Number(value) === 0) return null;
  return h("span", { class: tone }, `${sign}${count(Number(value), "row")}`);
}

/** Summaries are what engines wrote into them. */
function isCount(value) {
  return /^\d{1,15}$/.test(String(value ?? ""));
}

function refsBySnapshot(refs = {}) {
  const found = new Map();
  for (const [ref, told] of Object.entries(refs)) {
    const id = String(told["snapshot-id"]);
    found.set(id, [...(found.get(id) ?? []), [ref, told]]);
  }
  return found;
}
