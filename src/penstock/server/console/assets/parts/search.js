// The search over all names, opened by "/" from anywhere.

import { path, post } from "../api.js";
import { fill, h } from "../dom.js";
import { go, linkTo } from "../router.js";
import { open } from "./dialogs.js";
import { icon } from "./icons.js";
import { KINDS, showId } from "./names.js";
import { failure } from "./panels.js";

const WAIT = 150;

export function openSearch() {
  if (document.querySelector("dialog[open]")) return;
  const results = h("ul", { class: "results", role: "listbox", id: "search-results", "aria-label": "Names found" });
  const told = h("p", { class: "quiet", role: "status" }, "Names of tables, views, functions and namespaces");
  const box = h("input", {
    type: "search",
    "aria-label": "Search names",
    placeholder: "Search names",
    autocomplete: "off",
    spellcheck: "false",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "search-results",
    oninput: () => soon(),
    onkeydown: move,
  });
  let timer = 0;
  let asked = new AbortController();
  let found = [];
  let chosen = 0;

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT);
  }

  async function look() {
    asked.abort();
    asked = new AbortController();
    const text = box.value.trim();
    if (!text) return show([], "Names of tables, views, functions and namespaces");
    try {
      const answer = await post(path("namespace", [], "names/search"), { text, limit: 30 }, asked.signal);
      const more = answer.page_token ? ", the first ones" : "";
      show(answer.names, answer.names.length ? `${answer.names.length} found${more}` : "Nothing has such a name");
    } catch (error) {
      if (error.name !== "AbortError") fill(results, h("li", {}, failure(error)));
    }
  }

  function show(names, text) {
    found = names;
    chosen = 0;
    fill(told, text);
    fill(results, names.map((each, index) => line(each, index)));
    mark();
  }

  function line(each, index) {
    return h(
      "li",
      { role: "option", id: `result-${index}`, "aria-selected": "false" },
      h(
        "a",
        { href: linkTo(each.kind, each.id), tabindex: "-1", onclick: () => dialog.close() },
        icon(each.kind),
        showId(each.id),
        h("span", { class: "kind" }, KINDS[each.kind] ?? each.kind),
      ),
    );
  }

  function move(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && found.length) {
      event.preventDefault();
      chosen = (chosen + by + found.length) % found.length;
      mark();
    } else if (event.key === "Enter" && found[chosen]) {
      event.preventDefault();
      dialog.close();
      go(linkTo(found[chosen].kind, found[chosen].id));
    }
  }

  function mark() {
    [...results.children].forEach((each, index) => {
      each.setAttribute("aria-selected", String(index === chosen));
      if (index === chosen) each.scrollIntoView({ block: "nearest" });
    });
    if (found.length) box.setAttribute("aria-activedescendant", `result-${chosen}`);
    else box.removeAttribute("aria-activedescendant");
  }

  const dialog = open("Search", [box, told, results], { class: "search" });
  box.focus();
}

/** "/" opens it, unless somebody is writing. */
export function listenForSlash() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select, dialog")) return;
    event.preventDefault();
    const near = document.querySelector("main [data-slash]");
    if (near) near.focus();
    else openSearch();
  });
}
