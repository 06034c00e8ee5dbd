// What a verification found: whether a view is its query.

import { h } from "../dom.js";
import { count, moment, number } from "../format.js";
import { name } from "./names.js";
import { facts } from "./panels.js";
import { state } from "./states.js";

export function showCertificate(told, at = null) {
  const how = told.one_in > 1 ? `one row in ${number(told.one_in)} was compared` : "every row was compared";
  return h(
    "div",
    { class: "certificate" },
    h(
      "p",
      { class: "row" },
      state(told.is_equal ? "fresh" : "failed", told.is_equal ? "equal" : "not equal"),
      told.is_equal ? `The view is its query; ${how}.` : `The view is not its query; ${how}.`,
    ),
    told.error ? h("p", { class: "error-line" }, h("bdi", {}, told.error)) : null,
    facts([
      ["Rows", `${number(told.rows)} of the view, ${number(told.rows_expected)} expected`],
      told.rows_missing || told.rows_extra ? ["Differ", `${number(told.rows_missing)} missing, ${number(told.rows_extra)} too many`] : null,
      ["View", `version ${told.view_version}`],
      ["Made from", Object.entries(told.source_versions ?? {}).map(([key, version], index) => [index ? ", " : "", name(key.replaceAll("$", ".")), ` at ${version}`])],
      told.columns?.length ? ["Columns", count(told.columns.length, "column")] : null,
      told.digest ? ["Digest", h("code", {}, told.digest)] : null,
      at ? ["Verified", moment(at)] : null,
    ]),
  );
}
