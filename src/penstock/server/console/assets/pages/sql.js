// SQL that is run once: its result as a table or a file, and what was asked before.

import { rows as askRows, send } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, duration } from "../format.js";
import { grid } from "../parts/grid.js";
import { empty, failure, pageHead, panel } from "../parts/panels.js";
import { save } from "../parts/save.js";
import { note } from "../router.js";
import { session } from "../session.js";

const LIMIT = 200;
const KEPT = 50;
const FILES = [
  ["CSV", "csv", "text/csv"],
  ["Parquet", "parquet", "application/vnd.apache.parquet"],
  ["Arrow", "arrow", "application/vnd.apache.arrow.file"],
];

export const title = () => "SQL";

export async function render({ query, signal }) {
  const box = h("textarea", {
    rows: 8,
    spellcheck: "false",
    value: query.get("q") ?? recall()[0]?.sql ?? "",
    placeholder: "SELECT customer, count(*) AS n FROM shop.orders GROUP BY customer",
    "aria-label": "SQL",
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    },
  });
  const place = h("div", { class: "loaded", "aria-live": "polite" }, hint());
  const past = h("ul", { class: "stack history" });
  const button = h("button", { type: "button", class: "button primary", onclick: run }, "Run");
  const stop = h("button", { type: "button", class: "button", hidden: true, onclick: () => asked.abort() }, "Stop");
  const told = h("span", { class: "quiet", role: "status" });
  let asked = new AbortController();
  signal.addEventListener("abort", () => asked.abort());

  async function run() {
    const sql = box.value.trim().replace(/;\s*$/, "");
    if (!sql) return box.focus();
    await during(async () => {
      const started = performance.now();
      note({ q: sql.length < 1500 ? sql : "" });
      const found = await askRows("/v1/sql", { sql, limit: LIMIT }, asked.signal);
      const seconds = (performance.now() - started) / 1000;
      remember({ sql, at: Date.now(), seconds, rows: found.rows.length });
      showPast();
      fill(place, result(found, seconds));
    });
  }

  async function download(ending, type) {
    const sql = box.value.trim().replace(/;\s*$/, "");
    await during(async () => {
      const answer = await send("POST", "/v1/sql", { sql }, asked.signal, { accept: type });
      save(await answer.blob(), `result.${ending}`);
    });
  }

  async function during(work) {
    asked = new AbortController();
    const started = Date.now();
    const tick = setInterval(() => fill(told, `running, ${duration((Date.now() - started) / 1000)}`), 250);
    button.disabled = true;
    stop.hidden = false;
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") fill(place, h("p", { class: "quiet" }, "It was stopped."));
      else {
        if (error.status === undefined) console.error(error);
        fill(place, failure(error));
      }
    } finally {
      clearInterval(tick);
      fill(told);
      button.disabled = false;
      stop.hidden = true;
    }
  }

  function result(found, seconds) {
    const cut = found.rows.length >= LIMIT || found.complete === false;
    return [
      h(
        "div",
        { class: "toolbar" },
        h("span", {}, `${cut ? "the first " : ""}${count(found.rows.length, "row")} in ${duration(seconds)}`),
        h("span", { class: "quiet" }, "all of it as"),
        FILES.map(([word, ending, type]) =>
          h("button", { type: "button", class: "button", onclick: () => download(ending, type) }, word),
        ),
      ),
      found.columns.length ? grid(found, { label: "Result" }) : h("p", { class: "quiet" }, "No columns."),
    ];
  }

  function showPast() {
    const all = recall();
    fill(
      past,
      all.length
        ? all.map((each) =>
            h(
              "li",
              {},
              h("button", { type: "button", class: "unfold", onclick: () => choose(each.sql) }, h("code", {}, h("bdi", {}, each.sql.slice(0, 200)))),
              h("span", { class: "quiet small" }, `${ago(each.at)} · ${count(each.rows, "row")} · ${duration(each.seconds)}`),
            ),
          )
        : h("li", { class: "quiet" }, "Nothing yet. It is kept in this browser only."),
    );
  }

  function choose(sql) {
    box.value = sql;
    box.focus();
  }

  showPast();
  return [
    pageHead({ title: "SQL" }),
    h(
      "div",
      { class: "sql" },
      h(
        "div",
        { class: "stack" },
        panel("Statement", { hint: "Spark's SQL, one query; Ctrl Enter runs it" }, box, h("div", { class: "toolbar" }, button, stop, told)),
        panel("Result", {}, place),
      ),
      panel("History", { actions: h("button", { type: "button", class: "button quiet", onclick: () => { forget(); showPast(); } }, "Forget") }, past),
    ),
  ];
}

function hint() {
  return empty("Nothing was run yet", "A statement reads tables, materialized views and Iceberg views by their full names, and leaves nothing behind.");
}

function place() {
  return `penstock.sql.${session().principal ?? ""}`;
}

function recall() {
  try {
    const found = JSON.parse(localStorage.getItem(place()) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function remember(each) {
  const others = recall().filter((other) => other.sql !== each.sql);
  // A statement may be longer than a browser keeps.
  if (each.sql.length < 20000) localStorage.setItem(place(), JSON.stringify([each, ...others].slice(0, KEPT)));
}

function forget() {
  localStorage.removeItem(place());
}
