// The tree of namespaces, opened branch by branch and page by page.

import { fill, h } from "../dom.js";
import { link } from "../router.js";
import { icon } from "./icons.js";
import { name } from "./names.js";
import { failure } from "./panels.js";

/** `ask(namespace, token)` answers {items: [id…], token}; `current` is shown as chosen. */
export function namespaceTree(ask, current) {
  const isAbove = (id) => id.every((part, index) => current[index] === part);

  function branch(id) {
    const children = h("ul", {});
    let loaded = false;
    const opened = isAbove(id) && id.length <= current.length;
    const toggle = h(
      "button",
      { type: "button", class: "twist", "aria-expanded": "false", "aria-label": `Open ${id.at(-1)}`, onclick: flip },
      icon("chevron"),
    );
    const here = id.length === current.length && isAbove(id);
    const item = h(
      "li",
      {},
      h(
        "div",
        { class: "branch" },
        toggle,
        h("a", { href: link("catalog", id), "aria-current": here ? "page" : null }, icon("namespace"), name(id.at(-1))),
      ),
      children,
    );
    function flip() {
      const isOpen = toggle.getAttribute("aria-expanded") === "true";
      toggle.setAttribute("aria-expanded", String(!isOpen));
      children.hidden = isOpen;
      if (!loaded) more(id, children, null);
      loaded = true;
    }
    if (opened) flip();
    return item;
  }

  async function more(id, place, token) {
    const wait = h("li", { class: "quiet" }, "…");
    place.append(wait);
    try {
      const found = await ask(id, token);
      wait.remove();
      for (const each of found.items) place.append(branch(each));
      if (!place.childElementCount) fill(place, h("li", { class: "quiet" }, "no namespaces in it"));
      if (found.token) {
        const next = h("button", { type: "button", class: "button quiet", onclick: go }, "more …");
        const line = h("li", {}, next);
        function go() {
          line.remove();
          more(id, place, found.token);
        }
        place.append(line);
      }
    } catch (error) {
      wait.remove();
      place.append(h("li", {}, failure(error)));
    }
  }

  const root = h("ul", { class: "tree" });
  more([], root, null);
  return h("nav", { "aria-label": "Namespaces" }, root);
}
