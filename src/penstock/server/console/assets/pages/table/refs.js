// Tags, branches and indexes of a table: what is there, and for writers how to change it.

import { change, path, post } from "../../api.js";
import { h } from "../../dom.js";
import { number } from "../../format.js";
import { confirm, toast } from "../../parts/dialogs.js";
import { name } from "../../parts/names.js";
import { list, loaded, panel } from "../../parts/panels.js";
import { state } from "../../parts/states.js";
import { link } from "../../router.js";

export function refsTab(about) {
  return h("div", { class: "panels" }, tags(about), branches(about), indexes(about));
}

function page({ properties }) {
  return properties["penstock.kind"] ? "view" : "table";
}

function tags(about) {
  const { id, signal, roles } = about;
  const mayWrite = roles.includes("writer");
  const place = loaded(
    () => post(path("table", id, "tags/list"), {}, signal),
    ({ tags: found = {} }) => {
      const rows = Object.entries(found).map(([tag, told]) => [
        h("a", { href: link(page(about), id, { version: told.version, branch: told.branch }) }, name(tag)),
        `version ${told.version}`,
        isKept(tag) ? h("span", { class: "quiet" }, "kept for a job or view") : mayWrite ? remove(`tag ${tag}`, () => change(path("table", id, "tags/delete"), { tag }), place) : "",
      ]);
      return rows.length
        ? list(["Tag", "Is", ""], rows, { label: "Tags" })
        : h("p", { class: "quiet" }, "No tags. A tag keeps a version from being cleaned up.");
    },
    { signal },
  );
  return panel("Tags", {}, place, mayWrite ? tagForm(about, place) : null);
}

/** Whether a tag is there for a job's or view's sake: without it they would compute again. */
export function isKept(tag) {
  return tag.startsWith("penstock-");
}

function tagForm({ id, version, at }, place) {
  const box = h("input", { type: "text", "aria-label": "Name of a new tag", placeholder: "Name", required: true });
  const number_ = h("input", { type: "number", min: 1, value: String(at.version ?? version ?? 1), "aria-label": "Version to tag" });
  return form([box, h("label", {}, "version", number_)], "Tag it", async () => {
    await change(path("table", id, "tags/create"), { tag: box.value, version: Number(number_.value), branch: at.branch });
    box.value = "";
    place.reload();
  });
}

function branches(about) {
  const { id, signal, roles } = about;
  const mayWrite = roles.includes("writer");
  const place = loaded(
    () => post(path("table", id, "branches/list"), {}, signal),
    ({ branches: found = {} }) => {
      const rows = Object.entries(found).map(([branch, told]) => [
        h("a", { href: link(page(about), id, { branch }) }, name(branch)),
        `from version ${told.parentVersion}`,
        mayWrite ? remove(`branch ${branch}`, () => change(path("table", id, "branches/delete"), { name: branch }), place) : "",
      ]);
      return rows.length ? list(["Branch", "", ""], rows, { label: "Branches" }) : h("p", { class: "quiet" }, "Only main.");
    },
    { signal },
  );
  return panel("Branches", {}, place, mayWrite ? branchForm(about, place) : null);
}

function branchForm({ id, at }, place) {
  const box = h("input", { type: "text", "aria-label": "Name of a new branch", placeholder: "Name", required: true });
  return form([box], at.version ? `Branch from version ${at.version}` : "Branch from the newest", async () => {
    await change(path("table", id, "branches/create"), { name: box.value, from_version: at.version, from_branch: at.branch });
    box.value = "";
    place.reload();
  });
}

function indexes(about) {
  const { id, signal, roles, at } = about;
  const mayWrite = roles.includes("writer") && !at.version;
  const place = loaded(
    () => post(path("table", id, "index/list"), at, signal),
    ({ indexes: found = [] }) => {
      const rows = found.map((each) => [
        name(each.index_name),
        (each.columns ?? []).map((column, index) => [index ? ", " : "", name(column)]),
        each.index_type ?? "",
        coverage(about, each.index_name),
        mayWrite
          ? remove(`index ${each.index_name}`, () => change(indexPath(id, each.index_name, "drop", at.branch ? { branch: at.branch } : {})), place)
          : "",
      ]);
      return rows.length
        ? list(["Index", "Columns", "Kind", "Rows in it", ""], rows, { label: "Indexes" })
        : h("p", { class: "quiet" }, "No indexes. Searches look at all rows.");
    },
    { signal },
  );
  return panel("Indexes", {}, place);
}

function indexPath(id, index, action, params = {}) {
  return path("table", id, `index/${encodeURIComponent(index)}/${action}`, params);
}

function coverage({ id, at, signal }, index) {
  return loaded(
    () => post(indexPath(id, index, "stats"), at, signal),
    ({ num_indexed_rows: known = 0, num_unindexed_rows: left = 0 }) =>
      left ? state("stale", `${number(known)}, ${number(left)} not yet`) : state("fresh", `all ${number(known)}`),
    { signal, lines: 1 },
  );
}

function form(fields, text, act) {
  const told = h("p", { class: "error-line", role: "alert" });
  return h(
    "form",
    {
      class: "toolbar",
      onsubmit: async (event) => {
        event.preventDefault();
        told.replaceChildren();
        await act().catch((error) => told.append(error.message, error.detail ? `: ${error.detail}` : ""));
      },
    },
    fields,
    h("button", { type: "submit", class: "button" }, text),
    told,
  );
}

function remove(what, act, place) {
  const ask = () =>
    confirm({
      title: ["Remove ", name(what)],
      text: "Rows stay where they are; what refers to it by name does not find it any more.",
      button: "Remove it",
      act,
      done: () => {
        toast(name(what), " was removed");
        place.reload();
      },
    });
  return h("button", { type: "button", class: "button quiet", "aria-label": `Remove ${what}`, onclick: ask }, "Remove");
}

