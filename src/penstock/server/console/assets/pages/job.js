// One job: how far it is while it runs, what it did, what failed, and its log.

import { change, get, path, post } from "../api.js";
import { fill, h } from "../dom.js";
import { compact, count, duration, moment, number, parse, percent } from "../format.js";
import { follow, poll } from "../live.js";
import { showCertificate } from "../parts/certificate.js";
import { progress } from "../parts/charts.js";
import { confirm, open, toast } from "../parts/dialogs.js";
import { briefError, isEnded, readProgress, showTarget } from "../parts/jobs.js";
import { jobLog } from "../parts/job-log.js";
import { errorLedger } from "../parts/ledger.js";
import { jobLink, name, objectLink } from "../parts/names.js";
import { facts, failure, loaded, pageHead, panel } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { phaseLine } from "../parts/timeline.js";
import { go, link } from "../router.js";
import { rights } from "../session.js";

const REFRESH = "refresh";
// Somebody waits for their answers: they are not paused.
const AWAITED = new Set(["preview", "statement", "analysis"]);

// What is asked for again with a job.
const SAME = ["branch", "where", "read_version", "num_frags", "task_size", "concurrency", "commit_granularity", "force", "src_version", "output_limit"];
const WORDS = { starting: "starting Spark" };
const WORKED_ON = { refresh: "materialized_view", create_function: "function" };
const TONES = { queued: "idle", paused: "idle", planning: "calm", starting: "calm", finishing: "calm", committing: "good", verifying: "warn" };

export const title = ({ id }) => `Job ${id[0]}`;

export async function render({ id: [id], signal }) {
  const job = await post("/v1/jobs/describe", { job_id: id }, signal);
  const told = job.status;
  const table = findTable(told.target ?? "", job.spec ?? {});
  const [roles] = table.length ? await rights([{ kind: "table", id: table }], signal) : [[]];
  const marks = h("div", { class: "marks" });
  const actions = h("div", { class: "actions" });
  const live = h("div", { class: "live" });
  const sum = h("div", {});
  let shown = "";
  let status = "";
  let part = "";
  let last = told;

  const line = h("div", {});
  let known = [];
  const phases = loaded(
    () => get(`/v1/jobs/${encodeURIComponent(id)}/phases`, signal),
    (found) => {
      known = found.phases;
      return fill(line, showPhases(known));
    },
    { signal },
  );
  const log = jobLog(id, signal);
  const errors = h("div", {});
  const errorsPanel = panel("Rows that failed", {}, errors);
  errorsPanel.hidden = true;

  function draw(properties, now) {
    const text = JSON.stringify([properties, now]);
    if (text === shown) return;
    shown = text;
    last = properties;
    fill(marks, state(now), asked(properties));
    fill(live, showProgress(properties, now));
    fill(sum, showFacts(job, properties, table));
    fill(actions, buttons(properties, now));
    if (now !== status) {
      status = now;
      part = properties.phase;
      phases.reload();
      log.look();
      drawErrors(properties, now);
      return;
    }
    if (Number(properties.rows_failed)) drawErrors(properties, now);
    if (properties.phase === part) return;
    part = properties.phase;
    phases.reload();
  }

  let ledgerOf = "";
  function drawErrors(properties, now) {
    const key = `${properties.rows_failed ?? 0} ${now}`;
    if (key === ledgerOf || !table.length) return;
    ledgerOf = key;
    if (!Number(properties.rows_failed) && now !== "FAILED") return;
    errorsPanel.hidden = false;
    fill(errors, errorLedger(table, { job_id: id }, signal));
  }

  function buttons(properties, now) {
    if (!roles.includes("writer")) return null;
    if (isEnded(now)) {
      const failed = Number(properties.rows_failed) > 0 && properties.kind === "backfill";
      return [
        failed ? h("button", { type: "button", class: "button primary", onclick: () => retry(true) }, "Retry only failed") : null,
        now === "SUCCEEDED" || !canRepeat(properties) ? null : h("button", { type: "button", class: "button", onclick: () => retry(false) }, "Request again"),
      ];
    }
    const act = (word) => () => change(`/v1/jobs/${word}`, { job_id: id }).then(again, refused);
    return [
      AWAITED.has(properties.kind) || properties.cancel_requested ? null : pauseButton(properties, now, act),
      h("button", { type: "button", class: "button danger", onclick: cancel }, "Cancel"),
    ];
  }

  function pauseButton(properties, now, act) {
    const rests = now === "PAUSED" || properties.pause_requested;
    const props = { type: "button", class: ["button", rests && "primary"], onclick: act(rests ? "resume" : "pause") };
    return h("button", props, rests ? "Resume" : "Pause");
  }

  function canRepeat(properties) {
    return properties.kind === "backfill" || (properties.kind === REFRESH && !job.spec.alteration);
  }

  async function retry(onlyFailed) {
    try {
      const { job_id: next } = await request(job, table, onlyFailed);
      toast("Queued as ", jobLink(next));
      go(link("job", [next]));
    } catch (error) {
      refused(error);
    }
  }

  function cancel() {
    confirm({
      title: "Cancel this job",
      text: "What it has not committed is not in the table. Values that were computed are kept for the next job of the same column or view, as far as they are kept at all.",
      button: "Cancel the job",
      act: () => change("/v1/jobs/cancel", { job_id: id }),
      done: again,
    });
  }

  function refused(error) {
    open("It was refused", failure(error), { class: "narrow" });
  }

  async function again() {
    const found = await post("/v1/jobs/describe", { job_id: id }, signal);
    const now = found.status.status ?? stateOf(found);
    draw(found.status, now);
  }

  draw(told, stateOf(job));
  watch();

  function watch() {
    if (isEnded(stateOf(job))) return;
    let over = isEnded(status);
    follow(
      id,
      (event) => draw(event.properties, event.status),
      (what) => {
        live.dataset.stream = what;
        over = over || what === "ended";
        // A refused stream tells no reason; a request does, and finds a session that ended.
        if (what === "refused") poll(again, 3, signal);
        if (what === "lost") again().catch(() => {});
      },
      signal,
    );
    poll(() => (over ? null : log.look()), 2, signal);
    const tick = setInterval(() => {
      if (isEnded(status)) return clearInterval(tick);
      if (document.hidden) return;
      fill(live, showProgress(last, status));
      fill(line, showPhases(known));
    }, 1000);
    signal.addEventListener("abort", () => clearInterval(tick));
  }

  return [
    pageHead({
      above: h("nav", { class: "crumbs", "aria-label": "Where it is" }, h("a", { href: link("jobs") }, "Jobs")),
      kind: "jobs",
      title: [told.kind ?? job.job_type, " of ", name(showTarget(told.target ?? id))],
      marks,
      actions,
    }),
    h("div", { class: "panels job" }, panel("Progress", { wide: true }, live), panel("Phases", {}, phases), panel("About", {}, sum)),
    errorsPanel,
    log.panel,
  ];
}

/** The table of `a$b.column`: names may hold the signs between them, so what was asked for decides. */
function findTable(target, { table: asked = [], column, columns }) {
  if (!asked.length) return [];
  const filled = columns?.[0] ?? column;
  const known = asked.join("$") + (filled ? `.${filled}` : "");
  if (target === known) return asked;
  // It was renamed since.
  const rest = filled && target.endsWith(`.${filled}`) ? target.slice(0, -filled.length - 1) : target;
  return rest.split("$");
}

function stateOf(job) {
  const words = { DONE: "SUCCEEDED", CANCELLED: "CANCELED", FAILED: "FAILED", PAUSED: "PAUSED" };
  return words[job.job_state] ?? (job.status.started_at && !job.status.finished_at ? "RUNNING" : "QUEUED");
}

function asked(properties) {
  if (properties.cancel_requested) return state("canceled", "cancel requested");
  if (properties.pause_requested) return state("paused", "pause requested");
  return null;
}

function showProgress(properties, now) {
  const { unit, done, total } = readProgress(properties);
  const started = Number(properties.started_at) || null;
  const ended = Number(properties.finished_at) || Date.now();
  const seconds = started ? (ended - started) / 1000 : null;
  const take = (key) => (properties[key] === undefined ? null : Number(properties[key]));
  const [perSecond, left, calls, saved] = ["rows_per_second", "seconds_left", "function_calls", "calls_saved"].map(take);
  const cells = [
    done === null ? null : [total ? `${compact(done)} / ${compact(total)}` : compact(done), `${unit} done`],
    total ? [percent(done, total), "of the work"] : null,
    perSecond === null ? null : [compact(perSecond), "rows a second"],
    left === null ? null : [duration(left), "left, about"],
    seconds === null ? null : [duration(seconds), isEnded(now) ? "took" : "so far"],
    calls === null || (calls === 0 && !isEnded(now)) ? null : [compact(calls), "calls made"],
    saved === null ? null : [compact(saved), "calls saved"],
    Number(properties.rows_failed) ? [compact(Number(properties.rows_failed)), "rows failed"] : null,
  ];
  const bar = isEnded(now) || now === "RUNNING" ? progress(isEnded(now) && now === "SUCCEEDED" ? 1 : done, isEnded(now) && now === "SUCCEEDED" ? 1 : total, "Progress") : null;
  return [
    bar,
    h("div", { class: "figures small" }, cells.filter(Boolean).map(([value, what]) => h("div", { class: "figure" }, h("span", { class: "value" }, value), h("span", { class: "what" }, what)))),
    now === "QUEUED" ? h("p", { class: "quiet" }, "It waits for a runner.") : null,
    properties.phase ? h("p", { class: "quiet" }, "Now: ", showPhase(properties.phase)) : null,
    properties.error ? failed(properties.error) : null,
  ];
}

function failed(error) {
  return h("div", { class: "failure", role: "alert" }, h("div", {}, h("p", { class: "what" }, h("bdi", {}, briefError(error)))));
}

function showFacts(job, properties, table) {
  const time = (key) => (properties[key] ? moment(properties[key]) : null);
  const certificate = parse(properties.certificate);
  return facts([
    ["Works on", table.length ? objectLink(WORKED_ON[job.job_type] ?? "table", table) : null],
    properties.waiting ? ["Waits", h("bdi", {}, properties.waiting)] : null,
    ["Id", h("code", {}, job.job_id)],
    ["Mode", properties.mode ? `${properties.mode}: ${properties.reason ?? ""}` : null],
    ["Attempt", properties.attempt ? `${properties.attempt} of ${properties.max_attempts}` : null],
    ["Runner", properties.runner ? name(properties.runner) : null],
    ["Cluster", properties.cluster ? name(properties.cluster) : null],
    ["Requested", time("created_at")],
    ["Started", time("started_at")],
    ["Ended", time("finished_at")],
    ["Made version", properties.version],
    rowsChanged(properties),
    properties.rows_left && Number(properties.rows_left) ? ["Left for later", count(Number(properties.rows_left), "row")] : null,
    certificate ? ["Certificate", showCertificate(certificate)] : null,
  ]);
}

function rowsChanged(properties) {
  const words = ["inserted", "updated", "deleted"].filter((word) => properties[`rows_${word}`] !== undefined);
  return words.length ? ["Rows", words.map((word) => `${number(Number(properties[`rows_${word}`]))} ${word}`).join(", ")] : null;
}

/** "computing shop$view" as people read it. */
function showPhase(text) {
  const [word, ...view] = text.split(" ");
  return [WORDS[word] ?? word, view.length ? [" ", name(showTarget(view.join(" ")))] : null];
}

/** A lane for each thing that an attempt did, however often it came back to it. */
function showPhases(phases) {
  const lanes = new Map();
  for (const phase of phases) {
    for (const step of phase.steps ?? [phase]) {
      const label = [WORDS[step.name] ?? step.name, step.view ? showTarget(step.view) : null, phase.attempt > 1 ? `attempt ${phase.attempt}` : null].filter(Boolean).join(", ");
      if (!lanes.has(label)) lanes.set(label, { label, tone: TONES[step.name] ?? "busy", parts: [] });
      lanes.get(label).parts.push({ from: step.from, to: step.to ?? Date.now() });
    }
  }
  return phaseLine([...lanes.values()]);
}

/** The same once more; or of a backfill only the rows that failed. */
function request(job, table, onlyFailed) {
  const { spec } = job;
  const asked = Object.fromEntries(SAME.map((key) => [key, spec[key] || undefined]));
  asked.cluster = job.status.cluster || undefined;
  if (job.job_type === REFRESH) {
    const more = { mode: spec.mode, verify: spec.verify || undefined, verify_rows: spec.verify_rows ?? undefined, cascade: spec.upstream?.length ? true : undefined };
    return change(path("materialized_view", table, "refresh"), { ...asked, ...more });
  }
  return change(path("table", table, "backfill_column"), { ...asked, column: spec.column, errors_only: onlyFailed || undefined });
}
