// Rows that functions failed on: the row, its inputs, and the function's own traceback.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { ago, count, moment, number } from "../format.js";
import { jobLink, name } from "./names.js";
import { facts, loaded } from "./panels.js";
import { state } from "./states.js";

const MOST = 100;

/** The newest entries for a table; `only` narrows them to a job, a column or a branch. */
export function errorLedger(id, only, signal) {
  return loaded(
    () => post(path("table", id, "errors"), { ...only, limit: MOST }, signal),
    ({ records, truncated }) =>
      records.length
        ? [
            h("p", { class: "quiet" }, truncated ? `the newest ${MOST}` : count(records.length, "row")),
            h("ul", { class: "ledger" }, records.map((each) => h("li", {}, entry(each, !only.job_id)))),
          ]
        : h("p", { class: "row" }, state("fresh", "none"), "No row has failed."),
    { signal },
  );
}

function entry(each, withJob) {
  return h(
    "details",
    {},
    h(
      "summary",
      {},
      h("span", { class: "mono" }, `row ${number(each.row_id)}`),
      h("span", { class: "error-line" }, h("strong", {}, name(each.error_type)), " ", h("bdi", {}, each.error_message)),
      h("time", { class: "quiet", title: moment(each.created_at_millis) }, ago(each.created_at_millis)),
    ),
    facts([
      ["Column", name(each.column)],
      ["Function", [name(each.function), " ", h("code", {}, each.function_version)]],
      ["Row", `id ${number(each.row_id)}, fragment ${number(each.fragment_id)} at ${number(each.row_offset)}, in version ${each.table_version}`],
      ["Tries", number(each.tries)],
      withJob ? ["Job", jobLink(each.job_id)] : null,
      ["Inputs", h("pre", { class: "code" }, h("bdi", {}, each.inputs))],
      ["Traceback", h("pre", { class: "code", tabindex: "0" }, h("bdi", {}, each.traceback))],
    ]),
  );
}
