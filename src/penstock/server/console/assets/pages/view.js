// A materialized view: how fresh it is, what it is made from, what a refresh would do; and its table.

import { change, path } from "../api.js";
import { h } from "../dom.js";
import { duration, parse } from "../format.js";
import { dependentsOf, dropParams } from "../parts/dependents.js";
import { confirm, toast } from "../parts/dialogs.js";
import { crumbs, name } from "../parts/names.js";
import { pageHead, tabs } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { go, link } from "../router.js";
import { countRows, lookAt, tableTabs, timeTravel } from "./table.js";
import { definitionTab } from "./view/definition.js";
import { freshnessTab } from "./view/freshness.js";
import { refreshButtons } from "./view/refresh.js";

export const title = ({ id }) => id.join(".");

export async function render({ id, query, signal }) {
  const about = await lookAt(id, query, signal);
  const told = readProperties(about.properties);
  if (!told.kind) {
    go(link("table", id, Object.fromEntries(query)), { replace: true });
    return [];
  }
  const view = { ...about, told };
  const total = h("span", {});
  countRows(view, total);
  return [
    pageHead({
      above: crumbs(id),
      kind: "materialized_view",
      title: name(id.at(-1)),
      marks: [freshState(told), h("span", { class: "quiet" }, `version ${about.version ?? "–"}`), total],
      actions: [
        refreshButtons(view),
        h("a", { class: "button", href: link("lineage", id, { kind: "table" }) }, "Lineage"),
        about.roles.includes("owner")
          ? h("button", { type: "button", class: "button danger", onclick: () => drop(view) }, "Drop")
          : null,
      ],
    }),
    timeTravel(about),
    tabs(
      [
        ["view", "Freshness", () => freshnessTab(view)],
        ["definition", "Definition", () => definitionTab(view)],
        ...tableTabs(view),
      ],
      query.get("tab") ?? (about.at.version || about.at.branch ? "rows" : null),
    ),
  ];
}

/** What the properties of a view tell, as values. */
export function readProperties(properties) {
  const take = (key) => properties[`penstock.${key}`];
  const number = (key) => (take(key) === undefined ? null : Number(take(key)));
  return {
    kind: take("kind"),
    query: take("source_query"),
    stale: take("stale") === "true",
    late: take("late") === "true",
    lag: number("lag_seconds"),
    target: number("target_lag_seconds"),
    refreshedAt: number("refreshed_at"),
    automatic: take("auto_refresh") === "true",
    schedule: take("refresh_schedule"),
    zone: take("refresh_schedule_timezone"),
    next: number("next_refresh_at"),
    moment: take("moment"),
    alteredBy: take("altered_by_job"),
    watermark: parse(take("watermark") ?? "{}"),
    pending: parse(take("pending") ?? "{}"),
    through: parse(take("through") ?? "{}"),
    needsConsent: parse(take("needs_consent") ?? "null"),
  };
}

export function freshState(told) {
  if (told.refreshedAt === null) return state("unfilled", "never refreshed");
  if (told.late) return state("late", told.lag === null ? "late" : `late by ${duration(told.lag - (told.target ?? 0))}`);
  return told.stale ? state("stale", told.lag === null ? "stale" : `${duration(told.lag)} behind`) : state("fresh");
}

function drop({ id, signal }) {
  confirm({
    title: ["Drop ", name(id.at(-1))],
    text: "The view, its rows and its history are deleted. What it reads stays as it is.",
    look: () => dependentsOf(id, signal),
    word: id.at(-1),
    button: "Drop the view",
    act: (form) => change(path("materialized_view", id, "drop", dropParams(form))),
    done: () => {
      toast(name(id.at(-1)), " was dropped");
      go(link("catalog", id.slice(0, -1)));
    },
  });
}

