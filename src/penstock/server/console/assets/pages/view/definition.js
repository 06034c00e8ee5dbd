// The query or function of a view, how to alter it, and what it was before.

import { path, post } from "../../api.js";
import { fill, h } from "../../dom.js";
import { ago, moment, number } from "../../format.js";
import { copyButton } from "../../parts/copy.js";
import { jobLink, name } from "../../parts/names.js";
import { paged } from "../../parts/pager.js";
import { facts, list, panel } from "../../parts/panels.js";
import { showQuery, sqlText } from "../../parts/queries.js";
import { alterDefinition, alterProperties } from "./alter.js";

const KINDS = { query: "a query", udtf: "a function of tables", chunker: "a function that cuts rows into several" };

export function definitionTab(view) {
  const { told, roles } = view;
  const isQuery = told.kind === "query";
  const mayAlter = roles.includes("owner") && !view.at.version && !view.at.branch;
  const maker = h("span", {});
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
          mayAlter ? h("button", { type: "button", class: "button", onclick: () => alterDefinition(view) }, "Alter") : null,
        ],
      },
      told.query ? sqlText(showQuery(told.query)) : h("p", { class: "quiet" }, "It is too long to be told."),
      facts([
        isQuery ? null : ["Function", maker],
        madeFrom(told.watermark),
      ]),
    ),
    propertiesPanel(view, mayAlter),
    panel("History", { wide: true, hint: "the newest first" }, history(view, maker)),
  );
}

function madeFrom(watermark) {
  const known = Object.entries(watermark ?? {});
  if (!known.length) return null;
  return ["Made from", known.map(([key, version]) => h("div", {}, name(key.replaceAll("$", ".")), ` at version ${version}`))];
}

function propertiesPanel(view, mayAlter) {
  const pairs = Object.entries(view.properties).filter(([key]) => !key.startsWith("penstock."));
  const actions = mayAlter ? h("button", { type: "button", class: "button", onclick: () => alterProperties(view, pairs) }, "Change properties") : null;
  const rows = pairs.map(([key, value]) => [name(key), h("code", {}, h("bdi", {}, value))]);
  return panel("Properties", { wide: true, actions }, rows.length ? list(["Key", "Value"], rows, { label: "Properties" }) : h("p", { class: "quiet" }, "None."));
}

/** What it was; `maker` is told the function of today. */
function history({ id, signal }, maker) {
  const items = h("ul", { class: "stack" });
  const ask = async (token) => {
    const query = token ? { page_token: token } : {};
    const found = await post(path("materialized_view", id, "history", { limit: 20, ...query }), {}, signal);
    return { items: found.definitions, token: found.page_token };
  };
  const show = (found) => {
    if (found[0]?.function && !items.childElementCount) fill(maker, name(found[0].function));
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
  };
  return [items, paged(ask, show, () => h("p", { class: "quiet" }, "It is as it was made."), { signal })];
}
