// The query or function of a view, how to alter it, and what it was before.

import { change, path, post } from "../../api.js";
import { fill, h } from "../../dom.js";
import { ago, count, moment, number, parse } from "../../format.js";
import { copyButton } from "../../parts/copy.js";
import { confirm, toast } from "../../parts/dialogs.js";
import { jobLink, name } from "../../parts/names.js";
import { paged } from "../../parts/pager.js";
import { facts, loaded, panel } from "../../parts/panels.js";
import { showPlan } from "../../parts/plan.js";
import { go, link } from "../../router.js";

const KINDS = { query: "a query", udtf: "a function of tables", chunker: "a function that cuts rows into several" };

export function definitionTab(view) {
  const { told, roles } = view;
  const isQuery = told.kind === "query";
  return h(
    "div",
    { class: "panels" },
    panel(
      isQuery ? "Query" : "What it reads",
      {
        wide: true,
        hint: KINDS[told.kind] ?? told.kind,
        actions: [
          told.query ? copyButton(showQuery(told.query)) : null,
          isQuery && roles.includes("owner") && told.query
            ? h("button", { type: "button", class: "button", onclick: () => alter(view) }, "Alter")
            : null,
        ],
      },
      told.query ? sqlText(showQuery(told.query)) : h("p", { class: "quiet" }, "It is too long to be told."),
      facts([
        ["Made from", Object.entries(told.watermark ?? {}).map(([key, version]) => h("div", {}, name(key.replaceAll("$", ".")), ` at version ${version}`))],
      ]),
    ),
    panel("History", { wide: true, hint: "the newest first" }, history(view)),
  );
}

/** The SQL of a query, out of the JSON forms that a client may have sent it in. */
export function showQuery(text) {
  const told = parse(text);
  if (told && typeof told === "object") return typeof told.sql === "string" ? told.sql : JSON.stringify(told, null, 2);
  return text;
}

export function sqlText(text) {
  return h("pre", { class: "code", tabindex: "0" }, h("bdi", {}, text));
}

function history({ id, signal }) {
  const items = h("ul", { class: "stack" });
  const ask = async (token) => {
    const query = token ? { page_token: token } : {};
    const found = await post(path("materialized_view", id, "history", { limit: 20, ...query }), {}, signal);
    return { items: found.definitions, token: found.page_token };
  };
  const show = (found) =>
    items.append(
      ...found.map((each) =>
        h(
          "li",
          {},
          h(
            "details",
            {},
            h(
              "summary",
              {},
              h("strong", {}, `Edition ${each.edition}`),
              h("span", {}, `from version ${number(each.version)}`),
              h("time", { class: "quiet", title: moment(each.made_at) }, ago(each.made_at)),
              each.made_by ? h("span", { class: "quiet" }, "by ", name(each.made_by)) : null,
              each.changed?.length ? h("span", { class: "quiet" }, `changed ${each.changed.join(", ")}`) : null,
              each.job_id ? jobLink(each.job_id, "its job") : null,
            ),
            sqlText(showQuery(each.source_query)),
            each.function ? h("p", {}, "Function ", name(each.function)) : null,
          ),
        ),
      ),
    );
  return [items, paged(ask, show, () => h("p", { class: "quiet" }, "It is as it was made."), { signal })];
}

function alter({ id, told, signal }) {
  const box = h("textarea", { rows: 10, value: showQuery(told.query), spellcheck: "false", "aria-label": "Query" });
  const place = h("div", {});
  const dialect = parse(told.query)?.dialect;
  const query = () => (dialect ? JSON.stringify({ sql: box.value, dialect }) : box.value);
  const explain = () =>
    fill(
      place,
      loaded(() => post(path("materialized_view", id, "explain_alter"), { source_query: query() }, signal), showAlteration, { signal }),
    );
  confirm({
    title: ["Alter ", name(id.at(-1))],
    text: [box, h("button", { type: "button", class: "button", onclick: explain }, "Explain"), place],
    button: "Alter",
    danger: false,
    act: () => change(path("materialized_view", id, "alter"), { source_query: query() }),
    done: ({ job_id: job }) => {
      toast(job ? ["Altered by ", jobLink(job)] : "It means the same as before");
      go(job ? link("job", [job]) : location.pathname);
    },
  });
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
