// Jobs as lists and pages show them.

import { h } from "../dom.js";
import { compact, duration, percent } from "../format.js";
import { link } from "../router.js";
import { progress } from "./charts.js";
import { name } from "./names.js";

const ENDED = new Set(["SUCCEEDED", "FAILED", "CANCELED"]);

export function isEnded(status) {
  return ENDED.has(status);
}

/** A link to a job by what it works on. */
export function targetLink(job) {
  return h("a", { href: link("job", [job.job_id]) }, name(showTarget(job.target || job.table || job.job_id)));
}

/** What happened, without the traceback that the ledger lays out. */
export function briefError(error = "") {
  return error.split("; Traceback")[0];
}

/** `a$b.column` with dots, as everywhere on these pages. */
export function showTarget(target) {
  return target.replaceAll("$", ".");
}

/** How many of how many, in the unit that the job counts in. */
export function readProgress(told = {}) {
  const take = (key) => (told[key] === undefined || told[key] === null ? null : Number(told[key]));
  for (const unit of ["rows", "fragments"]) {
    const total = take(`${unit}_total`);
    if (total) return { unit, done: take(`${unit}_done`) ?? 0, total };
  }
  return { unit: "rows", done: take("rows_done"), total: null };
}

/** How long the rest takes, as far as the server knows. */
export function timeLeft(job) {
  const left = job.progress?.seconds_left;
  return left === undefined || left === null ? null : `${duration(Number(left))} left`;
}

/** A running job's bar, with what it has done and how long that took. */
export function progressOf(job) {
  const { unit, done, total } = readProgress(job.progress);
  const seconds = job.started_at_millis ? (Date.now() - job.started_at_millis) / 1000 : null;
  const text = [
    total ? `${compact(done)} of ${compact(total)} ${unit} · ${percent(done, total)}` : done === null ? showTarget(job.progress?.phase ?? "starting") : `${compact(done)} ${unit}`,
    [seconds === null ? null : duration(seconds), timeLeft(job)].filter(Boolean).join(" · "),
  ];
  return [
    progress(done, total, `Progress of ${job.target}`),
    h("div", { class: "row between quiet small" }, h("span", {}, text[0]), h("span", {}, text[1])),
  ];
}
