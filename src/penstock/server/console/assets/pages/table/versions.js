// The versions of a table as a line through time, travel to any of them, and the difference of two.

import { change, path, post } from "../../api.js";
import { fill, h } from "../../dom.js";
import { ago, count, moment } from "../../format.js";
import { bars, timeChart } from "../../parts/charts.js";
import { confirm, toast } from "../../parts/dialogs.js";
import { jobLink, name } from "../../parts/names.js";
import { paged } from "../../parts/pager.js";
import { empty, list, loaded, panel } from "../../parts/panels.js";
import { go, link } from "../../router.js";
import { isKept } from "./refs.js";

const PAGE = 50;

export function versionsTab(about) {
  const { id, at, signal, roles, properties } = about;
  const items = h("ol", { class: "versions" });
  const difference = h("div", {});
  const chosen = [];
  const page = properties["penstock.kind"] ? "view" : "table";
  const mayRestore = roles.includes("writer") && page === "table";

  const tagged = tagsByVersion(about);
  const growth = h("div", {});
  const points = [];
  let newer = null;
  let newest = null;

  const ask = async (token) => {
    const body = { branch: at.branch, limit: PAGE, page_token: token ?? undefined };
    const [found, tags] = await Promise.all([post(path("table", id, "version/history"), body, signal), tagged]);
    const named = found.versions.map((each) => ({ ...each, tags: tags.get(each.version) }));
    return { items: named, token: found.page_token };
  };

  function show(found) {
    for (const each of found) {
      if (newer) showGrowth(newer.place, newer.rows, each.rows);
      newer = { place: h("span", {}), rows: each.rows };
      newest ??= each.version;
      items.append(line(each, newer.place));
      if (each.rows !== undefined) points.unshift({ at: each.at, value: each.rows });
    }
    fill(growth, timeChart(points, { label: "Rows" }));
  }

  function line(each, grown) {
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Compare version ${each.version}`,
      onchange: () => choose(each.version, box),
    });
    const isShown = at.version === each.version;
    return h(
      "li",
      { class: isShown ? "chosen" : null },
      h("span", { class: "knot", "aria-hidden": "true" }),
      box,
      h(
        "a",
        { href: link(page, id, { ...at, version: each.version }), "aria-current": isShown ? "true" : null },
        `Version ${each.version}`,
      ),
      h("span", { class: "operation" }, WORDS[each.operation] ?? each.operation),
      each.job_id ? jobLink(each.job_id, each.job_type ?? "job") : null,
      grown,
      h("span", { class: "quiet" }, each.rows === undefined ? "" : count(each.rows, "row")),
      h("time", { class: "quiet", title: moment(each.at), datetime: new Date(each.at).toISOString() }, ago(each.at)),
      h("span", { class: "row" }, (each.tags ?? []).map(showTag)),
      mayRestore && each.version !== newest
        ? h("button", { type: "button", class: "button quiet", onclick: () => restore(about, each.version) }, "Restore")
        : null,
    );
  }

  function choose(version, box) {
    if (box.checked) chosen.push({ version, box });
    else chosen.splice(chosen.findIndex((each) => each.version === version), 1);
    // Two at a time: a third takes the place of the first.
    if (chosen.length > 2) chosen.shift().box.checked = false;
    if (chosen.length !== 2) return fill(difference, h("p", { class: "quiet" }, "Mark two versions to see what is different."));
    const [from, to] = chosen.map((each) => each.version).sort((a, b) => a - b);
    fill(difference, loaded(() => post(path("table", id, "version/compare"), { from, to, branch: at.branch }, signal), (found) => showDifference(from, to, found), { signal }));
  }

  fill(difference, h("p", { class: "quiet" }, "Mark two versions to see what is different."));
  return [
    h("div", { class: "panels" }, panel("Difference", {}, difference), panel("Rows", { hint: "over the versions below" }, growth)),
    panel("Versions", { hint: "the newest first" }, items, paged(ask, show, () => empty("No versions yet"), { signal })),
  ];
}

/** Jobs keep the versions that they read by tags of their own, which tell people little. */
function showTag(tag) {
  const isOurs = isKept(tag);
  return h("span", { class: `tag ${isOurs ? "ours" : ""}`, title: tag }, isOurs ? "kept for a job or view" : name(tag));
}

const WORDS = {
  change_columns: "columns changed",
  change_schema: "schema changed",
  replace_data: "values filled",
  update_metadata: "metadata",
};

function showGrowth(place, rows, before) {
  if (rows === undefined || before === undefined || rows === before) return;
  const grown = rows - before;
  place.className = grown > 0 ? "grown" : "shrunk";
  fill(place, `${grown > 0 ? "+" : "−"}${count(Math.abs(grown), "row")}`);
}

/** The names of tags by the version of this branch that they are on. */
async function tagsByVersion({ id, at, signal }) {
  const found = new Map();
  const { tags = {} } = await post(path("table", id, "tags/list"), {}, signal);
  for (const [tag, { version, branch }] of Object.entries(tags)) {
    if ((branch ?? "") === (at.branch ?? "")) found.set(version, [...(found.get(version) ?? []), tag]);
  }
  return found;
}

function showDifference(from, to, { schema, rows, why }) {
  const columns = [
    ...schema.added.map((each) => [name(each.name), h("span", { class: "grown" }, "added"), h("code", {}, each.type)]),
    ...schema.removed.map((each) => [name(each.name), h("span", { class: "shrunk" }, "dropped"), h("code", {}, each.type ?? "")]),
    ...schema.changed.map((each) => [
      each.old_name ? [name(each.old_name), " → ", name(each.name)] : name(each.name),
      "changed",
      h("code", {}, each.old_type ? `${each.old_type} → ${each.type}` : each.type),
    ]),
  ];
  const counts = rows
    ? bars([
        { label: "inserted", value: rows.inserted, tone: "good" },
        { label: "updated", value: rows.updated, tone: "warn" },
        { label: "deleted", value: rows.deleted, tone: "bad" },
      ])
    : h("p", { class: "quiet" }, why ?? "The rows were not counted.");
  return [
    h("p", {}, `From version ${from} to version ${to}:`),
    counts,
    columns.length
      ? list(["Column", "", "Type"], columns, { label: "Columns that differ" })
      : h("p", { class: "quiet" }, "The columns are the same."),
  ];
}

function restore({ id, at }, version) {
  confirm({
    title: `Restore version ${version}`,
    text: "A new version becomes what that one was. The versions in between stay, and can be restored in turn.",
    button: "Restore it",
    danger: false,
    act: () => change(path("table", id, "restore"), { version, branch: at.branch }),
    done: () => {
      toast(`Version ${version} is restored`);
      go(link("table", id, { branch: at.branch, tab: "versions" }));
    },
  });
}

