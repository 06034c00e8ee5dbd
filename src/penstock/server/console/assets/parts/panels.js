// What pages are made of: panels, what is loading, what failed, what is empty, tabs and facts.

import { fill, h, newId } from "../dom.js";
import { note } from "../router.js";
import { copyButton } from "./copy.js";
import { icon } from "./icons.js";

/** A titled part of a page. */
export function panel(title, { actions = null, hint = null, wide = false, class: more = "" } = {}, ...body) {
  const id = newId("panel");
  return h(
    "section",
    { class: ["panel", wide && "wide", more], "aria-labelledby": id },
    h(
      "header",
      { class: "panel-head" },
      h("h2", { id }, title),
      hint ? h("span", { class: "hint" }, hint) : null,
      actions ? h("div", { class: "actions" }, actions) : null,
    ),
    h("div", { class: "panel-body" }, body),
  );
}

/** Lines that stand where text will be. */
export function skeleton(lines = 3) {
  const widths = ["w1", "w2", "w3"];
  return h(
    "div",
    { class: "skeleton", role: "status" },
    h("span", { class: "visually-hidden" }, "Loading"),
    Array.from({ length: lines }, (_, index) => h("div", { class: `line ${widths[index % 3]}` })),
  );
}

/** An error in its place, in the server's own words. */
export function failure(error, again = null) {
  return h(
    "div",
    { class: ["failure", error.isAway && "away"], role: "alert" },
    icon("warn"),
    h(
      "div",
      {},
      h("p", { class: "what" }, h("bdi", {}, error.message)),
      error.detail ? h("p", { class: "remedy" }, h("bdi", {}, error.detail)) : null,
      error.instance ? h("p", { class: "quiet" }, "request ", h("code", {}, error.instance)) : null,
      again ? h("button", { class: "button", type: "button", onclick: again }, "Try again") : null,
    ),
  );
}

/** What says that there is nothing yet, and what to do first. */
export function empty(title, text, commands = []) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "title" }, title),
    text ? h("p", {}, text) : null,
    commands.map((each) => command(each)),
  );
}

/** A command to copy. */
export function command(text) {
  return h("div", { class: "command" }, h("pre", { tabindex: "0" }, h("code", {}, text)), copyButton(text));
}

/** A place that shows a skeleton, then what `build` makes of what `ask` finds, or its error. */
export function loaded(ask, build, { lines = 3, signal } = {}) {
  const place = h("div", { class: "loaded", "aria-busy": "true" });
  async function load() {
    if (!place.childElementCount) fill(place, skeleton(lines));
    place.setAttribute("aria-busy", "true");
    try {
      const found = await ask();
      if (signal?.aborted) return;
      fill(place, await build(found));
    } catch (error) {
      if (error.name === "AbortError" || signal?.aborted) return;
      if (!error.status && error.status !== 0) console.error(error);
      fill(place, failure(error, load));
    } finally {
      place.setAttribute("aria-busy", "false");
    }
  }
  place.reload = load;
  load();
  return place;
}

/** Names and values, two columns. */
export function facts(pairs) {
  const shown = pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined);
  return h("dl", { class: "facts" }, shown.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
}

/** Tabs; each is made when it is first shown, and its name stands in the address. */
export function tabs(list, chosen) {
  const shown = list.filter(Boolean);
  const place = h("div", { class: "tab-body" });
  const made = new Map();
  const buttons = shown.map(([key, title], index) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${key}`,
        class: "tab",
        onclick: () => show(key),
        onkeydown: (event) => step(event, index),
      },
      title,
    ),
  );

  function step(event, index) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = (index + by + shown.length) % shown.length;
    buttons[next].focus();
    show(shown[next][0]);
  }

  function show(key, { quietly = false } = {}) {
    const found = shown.find((each) => each[0] === key) ?? shown[0];
    if (!made.has(found[0])) {
      made.set(
        found[0],
        h("div", { role: "tabpanel", "aria-labelledby": `tab-${found[0]}` }, found[2]()),
      );
    }
    buttons.forEach((button, index) => {
      const is = shown[index][0] === found[0];
      button.setAttribute("aria-selected", String(is));
      button.tabIndex = is ? 0 : -1;
    });
    fill(place, made.get(found[0]));
    if (!quietly) note({ tab: found[0] === shown[0][0] ? "" : found[0] });
  }

  show(chosen, { quietly: true });
  const whole = h("div", { class: "tabs" }, h("div", { role: "tablist", class: "tab-list" }, buttons), place);
  whole.show = show;
  return whole;
}

/** The head of a page: what it is about, and what can be done with it. */
export function pageHead({ above = null, kind = null, title, marks = [], actions = [] }) {
  return h(
    "header",
    { class: "page-head" },
    above,
    h(
      "div",
      { class: "page-title" },
      kind ? icon(kind) : null,
      h("h1", { tabindex: "-1" }, title),
      h("div", { class: "marks" }, marks),
      h("div", { class: "actions" }, actions),
    ),
  );
}

/** A table of a page, not of the lake: heads and rows of cells. */
export function list(heads, rows, { label, class: more = "" } = {}) {
  return h(
    "div",
    { class: "scroller", tabindex: "0", role: "group", "aria-label": label },
    h(
      "table",
      { class: `list ${more}` },
      h("thead", {}, h("tr", {}, heads.map((head) => headCell(head)))),
      h("tbody", {}, rows.map((row) => (row instanceof Node ? row : h("tr", {}, row.map(cell))))),
    ),
  );
}

function headCell(head) {
  const [text, more] = Array.isArray(head) ? head : [head, ""];
  if (text) return h("th", { scope: "col", class: more }, text);
  return h("td", { class: more });
}

function cell(value) {
  return value instanceof HTMLTableCellElement ? value : h("td", {}, value);
}

/** A number's cell. */
export function num(value) {
  return h("td", { class: "num" }, value);
}
