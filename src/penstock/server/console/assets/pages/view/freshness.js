// How fresh a view has to be, how fresh it is, and how late it was.

import { change, path, post } from "../../api.js";
import { h } from "../../dom.js";
import { ago, count, duration, moment, number, parse } from "../../format.js";
import { showCertificate } from "../../parts/certificate.js";
import { timeChart } from "../../parts/charts.js";
import { confirm } from "../../parts/dialogs.js";
import { jobLink, name, objectLink } from "../../parts/names.js";
import { empty, facts, list, loaded, num, panel } from "../../parts/panels.js";
import { state } from "../../parts/states.js";
import { go } from "../../router.js";
import { alterContract } from "./alter.js";
import { explained } from "./refresh.js";

const COUNTS = ["rows_inserted", "rows_updated", "rows_deleted", "function_calls"];

export function freshnessTab(view) {
  const { id, signal } = view;
  const lateness = post(path("materialized_view", id, "refreshes"), {}, signal);
  lateness.catch(() => {});
  const chart = loaded(() => lateness, showLateness, { signal });
  const refreshes = loaded(() => lateness, (found) => showRefreshes(id, found), { signal });
  return h(
    "div",
    { class: "panels" },
    h("div", { class: "stack" }, contract(view), panel("How late it was", { class: "fills" }, chart)),
    panel("What a refresh would do", {}, explained(view)),
    panel("Refreshes", { wide: true }, refreshes),
  );
}

function contract(view) {
  const { told, roles } = view;
  const rules = [
    told.target ? `at most ${duration(told.target)} behind` : null,
    told.schedule ? [h("code", {}, told.schedule), ` (${told.zone ?? "UTC"})`] : null,
    told.automatic ? "after changes, by itself" : null,
  ].filter(Boolean);
  const pending = Object.entries(told.pending ?? {});
  return panel(
    "Freshness contract",
    {
      actions: roles.includes("owner")
        ? h("button", { type: "button", class: "button", onclick: () => alterContract(view) }, "Change")
        : null,
    },
    told.needsConsent ? consent(view) : null,
    facts([
      ["Wanted", rules.length ? rules.map((rule, index) => [index ? "; " : "", rule]) : "refreshed when somebody asks for it"],
      ["Now", told.late ? state("late") : told.refreshedAt === null ? state("unfilled", "never refreshed") : state(told.stale ? "stale" : "fresh")],
      told.lag === null ? null : ["Behind", duration(told.lag)],
      ["Refreshed", told.refreshedAt === null ? "never" : h("time", { title: moment(told.refreshedAt) }, ago(told.refreshedAt))],
      told.next ? ["Next", h("time", { title: moment(told.next) }, ago(told.next))] : null,
      told.moment ? ["Its clock", told.moment] : null,
      told.alteredBy ? ["Altered by", jobLink(told.alteredBy)] : null,
      pending.length ? ["Misses", pending.map(([key, versions]) => h("div", {}, objectLink("table", key.split("$")), ` ${count(versions, "version")}`))] : null,
      ...Object.entries(told.through ?? {}).map(([key, tables]) => [
        "By way of",
        [objectLink("materialized_view", key.split("$")), ": ", Object.entries(tables).map(([table, versions]) => `${table.replaceAll("$", ".")} ${count(versions, "version")}`).join(", ")],
      ]),
    ]),
  );
}

function consent({ id, told, roles }) {
  return h(
    "div",
    { class: "failure" },
    h(
      "div",
      {},
      h("p", { class: "what" }, "It waits for an owner's consent"),
      h("p", {}, "It has come to read: ", told.needsConsent.map((source, index) => [index ? ", " : "", name(source)])),
      roles.includes("owner")
        ? h("button", { type: "button", class: "button", onclick: () => giveConsent(id) }, "Consent")
        : null,
    ),
  );
}

async function giveConsent(id) {
  const address = path("materialized_view", id, "consent");
  const seen = await change(address, { dry_run: true });
  confirm({
    title: "Consent to what it reads",
    text: "From now on the view shows rows of these to everybody who may read the view:",
    look: async () => h("ul", { class: "stack" }, seen.sources.map((each) => h("li", {}, name(each)))),
    button: "Consent",
    danger: false,
    act: () => change(address, { state: seen.state }),
    done: () => go(location.pathname + location.search),
  });
}

function showLateness({ points = [], target_lag_seconds: target }) {
  if (points.length < 2) return empty("Nothing to show yet", "After its first refreshes this tells how far behind it was.");
  const shown = points.map((point) => ({ at: point.at, value: point.lag_seconds }));
  return timeChart(shown, { label: "Seconds behind", unit: "seconds", limit: target ?? null });
}

function showRefreshes(id, { refreshes = [] }) {
  if (!refreshes.length) return empty("It was never refreshed", "Refresh it here, or from a shell:", [`penstock views refresh ${id.join(".")}`]);
  const rows = refreshes.map((each) => [
    jobLink(each.job_id, h("time", { title: moment(each.created_at) }, ago(each.created_at))),
    state(each.state),
    each.result?.mode ?? "",
    ...COUNTS.map((key) => num(each.result?.[key] === undefined || each.result[key] === null ? "" : number(each.result[key]))),
    num(each.started_at && each.finished_at ? duration((each.finished_at - each.started_at) / 1000) : ""),
    whatCame(each),
  ]);
  const heads = ["When", "State", "Mode", ["Inserted", "num"], ["Updated", "num"], ["Deleted", "num"], ["Calls", "num"], ["Took", "num"], ""];
  return list(heads, rows, { label: "Refreshes" });
}

function whatCame(each) {
  const known = each.result?.certificate;
  const told = typeof known === "string" ? parse(known) : known;
  if (!told) return each.error ? h("span", { class: "error-line" }, h("bdi", {}, each.error)) : "";
  const place = h("details", {}, h("summary", {}, told.is_equal ? "verified" : "not equal"));
  place.append(showCertificate(told, each.finished_at));
  return place;
}
