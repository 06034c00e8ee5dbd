// All jobs, the newest first, with filters.

import { post } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, duration, moment, number, percent } from "../format.js";
import { poll } from "../live.js";
import { briefError, isEnded, readProgress, showTarget, targetLink, timeLeft } from "../parts/jobs.js";
import { empty, failure, list, pageHead, panel, skeleton } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { note } from "../router.js";

const PAGE = 50;
const SECONDS = 5;
const STATES = ["RUNNING", "QUEUED", "PAUSED", "SUCCEEDED", "FAILED", "CANCELED"];
const KINDS = ["backfill", "refresh", "preview", "statement", "analysis", "create_function"];

export const title = () => "Jobs";

export async function render({ query, signal }) {
  const wanted = { state: query.get("state") ?? "", kind: query.get("kind") ?? "", table: query.get("table") ?? "" };
  const place = h("div", { class: "loaded" }, skeleton(8));
  let size = PAGE;
  let drawn = "";
  let failed = false;

  const states = h(
    "div",
    { class: "toolbar", role: "group", "aria-label": "States" },
    ["", ...STATES].map((each) => {
      const chip = h(
        "button",
        { type: "button", class: "button chip", "aria-pressed": String(wanted.state === each), onclick: () => choose(each) },
        each ? each.toLowerCase() : "all",
      );
      chip.dataset.state = each;
      return chip;
    }),
  );
  const kind = h(
    "select",
    { "aria-label": "Kind of job", onchange: () => change({ kind: kind.value }) },
    h("option", { value: "" }, "all kinds"),
    KINDS.map((each) => h("option", { value: each }, each.replaceAll("_", " "))),
  );
  kind.value = wanted.kind;
  const table = h("input", {
    type: "search",
    class: "grow",
    value: wanted.table,
    "data-slash": true,
    placeholder: "Table, as shop.orders or shop.orders.column",
    "aria-label": "Table",
    onchange: () => change({ table: table.value.trim() }),
  });

  function choose(each) {
    for (const chip of states.children) chip.setAttribute("aria-pressed", String(chip.dataset.state === each));
    change({ state: each });
  }

  function change(what) {
    Object.assign(wanted, what);
    size = PAGE;
    note(wanted);
    load().catch(() => {});
  }

  async function load() {
    const body = {
      detailed: true,
      state: wanted.state || undefined,
      kind: wanted.kind || undefined,
      table_name: wanted.table || undefined,
      limit: size,
    };
    try {
      const found = await post("/v1/jobs/list", body, signal);
      const text = JSON.stringify(found);
      const live = found.jobs.some((job) => !isEnded(job.status));
      if (text !== drawn || failed || live) fill(place, show(found));
      drawn = text;
      failed = false;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (error.status || !drawn) fill(place, failure(error, () => load().catch(() => {})));
      failed = true;
      throw error;
    }
  }

  function show({ jobs, page_token: token }) {
    if (!jobs.length) return nothing(wanted);
    const rows = jobs.map((job) => [
      targetLink(job),
      h("span", { class: "quiet" }, job.job_type.replaceAll("_", " ")),
      state(job.status),
      howFar(job),
      h("time", { title: moment(job.created_at_millis), class: "quiet" }, ago(job.created_at_millis)),
      took(job),
    ]);
    const more = () => {
      size += 2 * PAGE;
      load().catch(() => {});
    };
    return [
      list(["Works on", "Kind", "State", "", "Requested", "Took"], rows, { label: "Jobs", class: "jobs" }),
      token ? h("button", { type: "button", class: "button", onclick: more }, "Show more") : null,
    ];
  }

  poll(load, SECONDS, signal);
  return [pageHead({ title: "Jobs" }), h("div", { class: "toolbar" }, table, kind), states, panel("Jobs", { class: "headless" }, place)];
}

function howFar(job) {
  if (job.status === "FAILED") return h("span", { class: "error-line" }, h("bdi", {}, briefError(job.error)));
  const { done, total, unit } = readProgress(job.progress);
  if (isEnded(job.status)) return done ? h("span", { class: "quiet" }, `${number(done)} ${unit}`) : "";
  if (!total) return showTarget(job.progress?.phase ?? "");
  return [`${percent(done, total)} of ${number(total)} ${unit}`, timeLeft(job)].filter(Boolean).join(" · ");
}

function took(job) {
  if (!job.started_at_millis) return "";
  return duration(((job.finished_at_millis ?? Date.now()) - job.started_at_millis) / 1000);
}

function nothing({ state: chosen, kind, table }) {
  if (chosen || kind || table) return empty("No job is like that", "Jobs that have ended are kept for jobs.history_days.");
  return empty("No jobs yet", "A job fills a computed column, or refreshes a view. For example:", [
    'lake.view("shop.by_product").refresh()',
    "penstock views refresh shop.by_product",
  ]);
}
