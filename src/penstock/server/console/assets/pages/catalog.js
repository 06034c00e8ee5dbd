// The tree of namespaces, and what is in one of them, page by page.

import { change, path, post } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, moment } from "../format.js";
import { confirm, toast } from "../parts/dialogs.js";
import { KINDS, name, objectLink } from "../parts/names.js";
import { paged } from "../parts/pager.js";
import { empty, pageHead, panel } from "../parts/panels.js";
import { namespaceTree } from "../parts/tree.js";
import { go, link, note } from "../router.js";
import { rights } from "../session.js";

const PAGE = 100;
const WAIT = 200;
const CHIPS = ["table", "materialized_view", "iceberg_table", "view", "function", "namespace"];

export const title = ({ id }) => (id.length ? id.join(".") : "Catalog");

export async function render({ id, query, signal }) {
  let text = query.get("q") ?? "";
  let kinds = (query.get("kinds") ?? "").split(",").filter((each) => CHIPS.includes(each));
  let timer = 0;
  let listing = new AbortController();
  signal.addEventListener("abort", () => listing.abort());

  const place = h("div", { class: "loaded" });
  const box = h("input", {
    type: "search",
    value: text,
    class: "grow",
    "data-slash": true,
    placeholder: id.length ? `Search in ${id.join(".")} and below` : "Search all names",
    "aria-label": "Search names",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        text = box.value.trim();
        look();
      }, WAIT);
    },
  });
  const chips = CHIPS.map((kind) => {
    const chip = h(
      "button",
      { type: "button", class: "button chip", "aria-pressed": String(kinds.includes(kind)), onclick: flip },
      `${KINDS[kind]}s`,
    );
    function flip() {
      kinds = kinds.includes(kind) ? kinds.filter((each) => each !== kind) : [...kinds, kind];
      chip.setAttribute("aria-pressed", String(kinds.includes(kind)));
      look();
    }
    return chip;
  });

  function look() {
    note({ q: text, kinds: kinds.join(",") });
    listing.abort();
    listing = new AbortController();
    fill(place, entries({ id, text, kinds, signal: listing.signal }));
  }
  look();

  const roles = id.length ? (await rights([{ kind: "namespace", id }], signal))[0] : [];
  const actions = roles.includes("owner")
    ? h("button", { type: "button", class: "button danger", onclick: () => drop(id) }, "Drop namespace")
    : null;
  return [
    pageHead({
      above: id.length ? above(id) : null,
      kind: id.length ? "namespace" : null,
      title: id.length ? name(id.at(-1)) : "Catalog",
      actions,
    }),
    h(
      "div",
      { class: "catalog" },
      h("aside", { class: "catalog-tree" }, namespaceTree((ns, token) => children(ns, token, signal), id)),
      h(
        "div",
        {},
        h("div", { class: "toolbar" }, box),
        h("div", { class: "toolbar", role: "group", "aria-label": "Kinds" }, chips),
        panel(id.length ? "In this namespace" : "At the root", { class: "entries" }, place),
      ),
    ),
  ];
}

function above(id) {
  return h(
    "nav",
    { class: "crumbs", "aria-label": "Where it is" },
    h("a", { href: link("catalog") }, "Catalog"),
    id.slice(0, -1).map((part, index) => [
      h("span", { class: "dot" }, "/"),
      h("a", { href: link("catalog", id.slice(0, index + 1)) }, name(part)),
    ]),
  );
}

async function children(namespace, token, signal) {
  const body = { kinds: ["namespace"], limit: PAGE, page_token: token ?? undefined };
  const found = await post(path("namespace", namespace, "names/list"), body, signal);
  return { items: found.names.map((each) => each.id), token: found.page_token };
}

function entries({ id, text, kinds, signal }) {
  const body = h("tbody", {});
  const table = h(
    "table",
    { class: "list", hidden: true },
    h(
      "thead",
      {},
      h("tr", {}, ["Name", "Kind", "Version", "Changed"].map((head) => h("th", { scope: "col" }, head))),
    ),
    body,
  );
  const ask = async (token) => {
    const common = { kinds: kinds.length ? kinds : undefined, limit: PAGE, page_token: token ?? undefined };
    const found = text
      ? await post(path("namespace", id, "names/search"), { ...common, text }, signal)
      : await post(path("namespace", id, "names/list"), common, signal);
    return { items: found.names, token: found.page_token };
  };
  const show = (items) => {
    table.hidden = table.hidden && !items.length;
    body.append(...items.map((each) => row(each, id, Boolean(text))));
  };
  const more = paged(ask, show, () => nothing(id, text, kinds), { signal, more: `Show ${PAGE} more` });
  return [h("div", { class: "scroller" }, table), more];
}

function row(each, id, isSearch) {
  const shown = isSearch ? each.id : each.id.slice(id.length);
  const anchor = objectLink(each.kind, each.id);
  if (!isSearch) fill(anchor.querySelector(".id"), name(shown.join(".")));
  const at = each.updated_at ?? each.created_at;
  return h(
    "tr",
    {},
    h("td", {}, anchor),
    h("td", { class: "quiet tight" }, KINDS[each.kind] ?? each.kind),
    h("td", { class: "tight" }, each.version ?? ""),
    h("td", { class: "tight quiet" }, at ? h("time", { title: moment(at), datetime: new Date(at).toISOString() }, ago(at)) : ""),
  );
}

function nothing(id, text, kinds) {
  if (text) return empty("Nothing has such a name", "Search looks for any part of a name, whatever its case.");
  if (kinds.length) return empty("Nothing of this kind here", null);
  const where = id.length ? `${id.join(".")}.first` : "first";
  return empty(id.length ? "This namespace is empty" : "The catalog is empty", "Make a table in it, from Python:", [
    `import penstock\n\nlake = penstock.connect("${location.origin}")\nlake.create_table(${JSON.stringify(where)}, [{"id": 1}])`,
  ]);
}

function drop(id) {
  confirm({
    title: ["Drop ", name(id.at(-1))],
    text: "The namespace goes, and with it everything in it: tables with all their rows and versions, views, functions and the namespaces below. The files of Iceberg tables stay.",
    look: async () => {
      const found = await post(path("namespace", id, "names/list"), { limit: 1000 });
      const more = found.page_token ? "more than " : "";
      return [
        h("p", {}, h("strong", {}, `${more}${count(found.names.length, "name")} directly in it`)),
        h("ul", { class: "stack" }, found.names.slice(0, 10).map((each) => h("li", {}, objectLink(each.kind, each.id)))),
        h("p", { class: "quiet" }, "If views outside it read what is in it, it is refused and they are named."),
      ];
    },
    word: id.at(-1),
    button: "Drop it",
    act: () => change(path("namespace", id, "drop", { behavior: "Cascade" })),
    done: () => {
      toast(name(id.at(-1)), " was dropped");
      go(link("catalog", id.slice(0, -1)));
    },
  });
}

