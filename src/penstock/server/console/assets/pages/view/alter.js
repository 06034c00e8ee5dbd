// Alters a view: its query, its function, its freshness and its properties; what it would cost is shown first.

import { change, path, post } from "../../api.js";
import { fill, h } from "../../dom.js";
import { count, parse } from "../../format.js";
import { confirm, toast } from "../../parts/dialogs.js";
import { jobLink, name } from "../../parts/names.js";
import { facts, loaded } from "../../parts/panels.js";
import { showPlan } from "../../parts/plan.js";
import { showQuery } from "../../parts/queries.js";
import { go, link } from "../../router.js";

const MOST = 200;

/** A dialog over what a view is made from; it alters only what was explained as it stands. */
export function alterDefinition({ id, told, signal }) {
  const known = told.query === undefined ? "" : showQuery(told.query);
  const box = h("textarea", { rows: 8, value: known, spellcheck: "false", "aria-label": "Query", placeholder: "as it is" });
  const chosen = functionFields(told.kind, signal);
  const place = h("div", { "aria-live": "polite" });
  const explain = h("button", { type: "button", class: "button", onclick: () => look() }, "Explain");
  let explained = "";

  function read() {
    const dialect = parse(told.query ?? "")?.dialect;
    const sent = box.value.trim();
    const query = sent && sent !== known.trim() ? { source_query: dialect ? JSON.stringify({ sql: sent, dialect }) : sent } : {};
    return { ...query, ...chosen.read() };
  }

  async function look() {
    explained = "";
    check();
    const body = read();
    const text = JSON.stringify(body);
    if (text === "{}") return fill(place, h("p", { class: "quiet" }, "Nothing is different yet."));
    fill(
      place,
      loaded(
        async () => {
          const plan = await post(path("materialized_view", id, "explain_alter"), body, signal);
          explained = text;
          check();
          return plan;
        },
        showAlteration,
        { signal },
      ),
    );
  }

  const dialog = confirm({
    title: ["Alter ", name(id.at(-1))],
    fields: [
      h("label", { class: "field" }, "Query", box),
      chosen.fields,
      h("span", { class: "quiet" }, "Columns and rows that stay what they are keep their values. A new function is tried on some rows first, which may take half a minute."),
      h("div", { class: "toolbar" }, explain),
      place,
    ],
    button: "Alter",
    danger: false,
    wide: true,
    act: () => change(path("materialized_view", id, "alter"), { ...read(), ...chosen.preview() }),
    done: ({ job_id: job, not_previewed: untried }) => {
      toast(job ? ["Altered by ", jobLink(job)] : "It means the same as before");
      if (untried) toast("Its function was not tried before: ", h("bdi", {}, untried));
      go(job ? link("job", [job]) : location.pathname);
    },
  });
  const yes = dialog.querySelector("button[type=submit]");
  /** What was not explained as it stands is not done. */
  function check() {
    yes.disabled = !explained || explained !== JSON.stringify(read());
    yes.title = yes.disabled ? "Explain it first" : "";
  }
  dialog.addEventListener("input", check);
  check();
}

/** Which function with a name makes the rows, for views that a function makes. */
function functionFields(kind, signal) {
  if (kind === "query") return { fields: null, read: () => ({}), preview: () => ({}) };
  const ids = new Map();
  const names = h("datalist", { id: "functions-with-a-name" });
  const box = h("input", { type: "text", list: "functions-with-a-name", class: "mono", placeholder: "as it is", autocomplete: "off", spellcheck: "false" });
  const version = h("input", { type: "number", min: 1, placeholder: "the newest" });
  const tried = h("input", { type: "checkbox", checked: true });
  post(path("namespace", [], "names/search"), { text: "", kinds: ["function"], limit: MOST }, signal)
    .then(({ names: found }) => {
      for (const each of found) {
        ids.set(each.id.join("."), each.id);
        names.append(h("option", { value: each.id.join(".") }));
      }
    })
    // Its name can be written all the same.
    .catch(() => {});
  return {
    fields: [
      h("label", { class: "field" }, "Function with a name", box),
      names,
      h("label", { class: "field" }, "Version of the function", version),
      h("label", { class: "row" }, tried, " try a new function on some rows first"),
    ],
    read: () => {
      const text = box.value.trim();
      if (!text) return {};
      const number = version.value ? { function_version: Number(version.value) } : {};
      return { udtf_spec: { function: ids.get(text) ?? text.split("."), ...number } };
    },
    preview: () => (tried.checked ? {} : { preview: false }),
  };
}

function showAlteration(plan) {
  const columns = (word) => plan[`columns_${word}`] ?? [];
  return [
    showPlan(plan),
    facts(
      ["kept", "computed", "dropped"].map((word) =>
        columns(word).length ? [`Columns ${word}`, columns(word).map((each, index) => [index ? ", " : "", name(each)])] : null,
      ),
    ),
    plan.rows_staying ? h("p", { class: "quiet" }, `${count(plan.rows_staying, "row")} stay where they are.`) : null,
  ];
}

/** A dialog over the freshness contract. */
export function alterContract({ id, told }) {
  const target = h("input", { type: "number", min: 1, value: told.target ?? "", placeholder: "none" });
  const automatic = h("input", { type: "checkbox", checked: told.automatic });
  const schedule = h("input", { type: "text", value: told.schedule ?? "", placeholder: "0 6 * * MON-FRI", class: "mono" });
  const zone = h("input", { type: "text", value: told.schedule ? told.zone ?? "" : "", placeholder: "UTC" });
  confirm({
    title: "How fresh it has to be",
    fields: [
      h("label", { class: "field" }, "At most so many seconds behind", target),
      h("label", { class: "field" }, "Refreshed by this schedule (cron)", schedule),
      h("label", { class: "field" }, "Time zone of the schedule", zone),
      h("label", { class: "row" }, automatic, " refresh by itself after changes"),
    ],
    button: "Save",
    danger: false,
    act: () =>
      change(path("materialized_view", id, "alter"), {
        target_lag_seconds: target.value ? Number(target.value) : null,
        auto_refresh: automatic.checked,
        refresh_schedule: schedule.value.trim() || null,
        ...(schedule.value.trim() && zone.value.trim() ? { refresh_schedule_timezone: zone.value.trim() } : {}),
      }),
    done: saved,
  });
}

/** A dialog over the properties that people gave a view; one that is emptied is removed. */
export function alterProperties({ id }, properties) {
  const rows = h("div", { class: "stack" });
  const before = new Map(properties);
  function add(key = "", value = "") {
    const isNew = !before.has(key);
    rows.append(
      h(
        "div",
        { class: "toolbar" },
        h("input", { type: "text", class: "mono key", value: key, "aria-label": "Key", placeholder: "key", readonly: !isNew }),
        h("input", { type: "text", class: "mono grow value", value, "aria-label": isNew ? "Value" : `Value of ${key}`, placeholder: isNew ? "value" : "removed" }),
      ),
    );
  }
  for (const [key, value] of before) add(key, value);
  add();
  function read() {
    const found = {};
    for (const line of rows.children) {
      const [key, value] = ["key", "value"].map((which) => line.querySelector(`.${which}`).value);
      if (key.trim() && value !== (before.get(key) ?? "")) found[key.trim()] = value === "" ? null : value;
    }
    return found;
  }
  confirm({
    title: ["Properties of ", name(id.at(-1))],
    fields: [rows, h("div", { class: "toolbar" }, h("button", { type: "button", class: "button", onclick: () => add() }, "One more")), h("span", { class: "quiet" }, "A value that is emptied removes its property.")],
    button: "Save",
    danger: false,
    act: async () => {
      const found = read();
      if (Object.keys(found).length) await change(path("materialized_view", id, "alter"), { properties: found });
    },
    done: saved,
  });
}

function saved() {
  toast("Saved");
  go(location.pathname + location.search);
}
