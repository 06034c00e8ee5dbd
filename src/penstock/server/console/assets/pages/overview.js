// What the lake holds, what runs, what is late, what failed, and how it grows.

import { post } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, bytes, count, duration, number, percent } from "../format.js";
import { poll } from "../live.js";
import { dayChart, timeChart } from "../parts/charts.js";
import { briefError, progressOf, targetLink } from "../parts/jobs.js";
import { KINDS, objectLink } from "../parts/names.js";
import { empty, failure, list, pageHead, panel, skeleton } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { link } from "../router.js";
import { has, session } from "../session.js";

const SECONDS = 10;
const LIVE_SECONDS = 3;
const FIRST = `import penstock

lake = penstock.connect("${location.origin}")
lake.create_namespace("shop")
lake.create_table("shop.orders", [{"id": 1, "amount": 9.5}, {"id": 2, "amount": 12.0}])`;
const FIRST_VIEW = `lake.create_view("shop.large", "SELECT id, amount FROM shop.orders WHERE amount > 10").refresh()`;

export const title = () => "Overview";

export async function render({ signal }) {
  const body = h("div", { class: "overview" }, skeleton(8));
  const head = pageHead({ title: "Overview" });
  let drawn = "";
  poll(
    async () => {
      try {
        const found = await post("/v1/overview", {}, signal);
        const text = JSON.stringify({ ...found, at: 0 });
        // What has not changed stays, with the reader's place in it.
        if (text !== drawn) fill(body, build(found, signal));
        drawn = text;
      } catch (error) {
        if (error.name !== "AbortError" && error.status === undefined) console.error(error);
        if (error.name !== "AbortError" && !drawn) fill(body, failure(error));
        throw error;
      }
    },
    SECONDS,
    signal,
  );
  return [head, body];
}

function build(found, signal) {
  const held = Object.values(found.counts).reduce((sum, each) => sum + each, 0);
  return [
    h("div", { class: "figures" }, figures(found)),
    held ? null : welcome(),
    h(
      "div",
      { class: "panels" },
      runningPanel(found, signal),
      latePanel(found.views),
      failuresPanel(found),
      healthPanel(found),
      growthPanels(found),
    ),
  ];
}

function figures({ counts, size }) {
  const kinds = ["table", "materialized_view", "iceberg_table", "view", "function", "namespace"];
  const shown = kinds.map((kind) =>
    figure(number(counts[kind] ?? 0), counts[kind] === 1 ? KINDS[kind] : `${KINDS[kind]}s`, link("catalog", [], kind === "namespace" ? {} : { kinds: kind })),
  );
  // Sizes are found out one table after the other.
  if (size?.tables) {
    const about = size.complete ? "" : "at least ";
    shown.push(figure(bytes(size.bytes), `${about}${count(size.rows, "row")} stored`));
  }
  return shown;
}

function figure(value, text, href = null) {
  const inner = [h("span", { class: "value" }, value), h("span", { class: "what" }, text)];
  return href ? h("a", { class: "figure", href }, inner) : h("div", { class: "figure" }, inner);
}

function welcome() {
  return panel(
    "The lake is empty",
    { wide: true, class: "welcome" },
    empty("Make a first table", "From Python, with “pip install penstock[client]”:", [FIRST]),
    empty("Then a view that follows it", "A materialized view keeps the rows of its query:", [FIRST_VIEW]),
    empty("Or look at a lake that has something in it", "It is made in a minute, and tells how to open it:", ["penstock demo --keep"]),
  );
}

function runningPanel({ running, jobs }, signal) {
  const waits = jobs.waiting_seconds;
  const waiting = [
    jobs.queued ? state("queued", `${number(jobs.queued)} queued`) : null,
    waits ? h("span", { class: "quiet" }, `the oldest for ${duration(waits)}`) : null,
    jobs.paused ? state("paused", `${number(jobs.paused)} paused`) : null,
  ];
  const all = h("a", { href: link("jobs") }, "All jobs");
  const place = h("div", {}, runningList(running));
  if (running.length) keepLive(place, signal);
  return panel(
    "Running now",
    { actions: all },
    waiting.some(Boolean) ? h("div", { class: "row" }, waiting) : null,
    place,
  );
}

function runningList(jobs) {
  if (!jobs.length) return h("p", { class: "quiet" }, "No job runs at this moment.");
  const rows = jobs.map((job) =>
    h(
      "li",
      { class: "running-job" },
      h("div", { class: "row between" }, targetLink(job), h("span", { class: "quiet" }, job.job_type)),
      progressOf(job),
    ),
  );
  return h("ul", { class: "stack" }, rows);
}

/** Running jobs alone are cheap to ask for, so their bars move sooner than the rest. */
function keepLive(place, signal) {
  const drawn = new AbortController();
  signal.addEventListener("abort", () => drawn.abort(), { signal: drawn.signal });
  const look = async () => {
    if (!place.isConnected) return drawn.abort();
    const { jobs } = await post("/v1/jobs/list", { state: "RUNNING", detailed: true, limit: 10 }, drawn.signal);
    fill(place, runningList(jobs));
  };
  setTimeout(() => poll(look, LIVE_SECONDS, drawn.signal), LIVE_SECONDS * 1000);
}

function latePanel(views) {
  const hint = views.complete === false ? "of the views that were looked at" : null;
  const rows = views.worst.map((view) => [
    objectLink("materialized_view", view.id),
    state(view.late ? "late" : "stale"),
    h(
      "span",
      {},
      view.lag_seconds === undefined ? "–" : `${duration(view.lag_seconds)} behind`,
      view.target_lag_seconds === undefined ? null : h("span", { class: "quiet" }, `, target ${duration(view.target_lag_seconds)}`),
    ),
  ]);
  return panel(
    "Views behind their sources",
    { hint },
    h(
      "div",
      { class: "row" },
      state(views.late ? "late" : "fresh", views.late ? `${number(views.late)} late` : "none late"),
      views.stale ? state("stale", `${number(views.stale)} stale`) : null,
    ),
    rows.length ? list(["View", "State", "Behind"], rows, { label: "Views behind their sources" }) : null,
  );
}

function failuresPanel({ failures, days = [] }) {
  const sum = (word) => days.reduce((all, each) => all + each[word], 0);
  const [succeeded, failed] = [sum("succeeded"), sum("failed")];
  const rate = succeeded + failed ? `${percent(succeeded, succeeded + failed)} of ${count(succeeded + failed, "job")} in ${days.length} days succeeded` : null;
  const rows = failures.map((job) =>
    h(
      "li",
      { class: "failed-job" },
      h(
        "div",
        { class: "row between" },
        targetLink(job),
        h("span", { class: "quiet" }, job.finished_at_millis ? ago(job.finished_at_millis) : ""),
      ),
      h("p", { class: "error-line" }, h("bdi", {}, briefError(job.error))),
    ),
  );
  return panel(
    "Last failures",
    { hint: rate, actions: h("a", { href: link("jobs", [], { state: "FAILED" }) }, "All failed") },
    rows.length ? h("ul", { class: "stack" }, rows) : h("p", { class: "quiet" }, "Nothing has failed."),
  );
}

function healthPanel({ database, runners = [] }) {
  const { version, authentication } = session();
  const rows = [
    ["Server", state("ok"), `${version}, on ${database === "sqlite" ? "SQLite" : "PostgreSQL"}`],
    ...runners.map((runner) => [
      ["Runner of ", h("bdi", {}, runner.cluster)],
      state(runner.alive ? "ok" : "down", runner.alive ? "ok" : "away"),
      runner.alive ? "takes jobs" : runner.trouble ?? "no runner has asked for jobs lately",
    ]),
  ];
  return panel(
    "Health",
    {},
    list(["Part", "State", ""], rows, { label: "Health of server and runners" }),
    runners.some((runner) => runner.alive)
      ? null
      : empty("No runner", "Jobs wait until one is there. “penstock serve” starts one, unless PySpark is missing; on another machine:", [
          `penstock runner --url ${location.origin}`,
        ]),
    authentication || !has("owner") ? null : h("p", { class: "quiet" }, "Authentication is off: everybody who reaches this server may do everything."),
  );
}

function growthPanels({ days = [], size }) {
  const shown = [];
  if (days.length) {
    const told = days.map((each) => ({
      day: each.day,
      parts: [
        ["good", each.succeeded, "succeeded"],
        ["idle", each.canceled, "canceled"],
        ["bad", each.failed, "failed"],
      ],
    }));
    shown.push(panel("Jobs a day", { hint: "succeeded, canceled, failed" }, dayChart(told, "Jobs")));
  }
  if (size?.tables && size.days?.length > 1) {
    const commits = size.days.map((each) => ({ day: each.day, parts: [["good", each.commits, "commits"]] }));
    shown.push(panel("Commits a day", { hint: "versions of tables and views" }, dayChart(commits, "Commits")));
    const over = (key) => size.days.map((each) => ({ at: Date.parse(each.day), value: each[key] }));
    shown.push(
      panel("Storage", { hint: bytes(size.bytes) }, timeChart(over("bytes"), { label: "Bytes", unit: "bytes" })),
      panel("Rows", { hint: number(size.rows) }, timeChart(over("rows"), { label: "Rows" })),
    );
  }
  return shown;
}
