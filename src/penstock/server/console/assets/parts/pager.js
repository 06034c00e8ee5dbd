// Lists that come in pages: what is there, and a button for more of it.

import { fill, h } from "../dom.js";
import { failure, skeleton } from "./panels.js";

/** `ask(token)` answers {items, token}; `show(items)` appends them, `none()` stands for nothing. */
export function paged(ask, show, none, { signal, more = "Show more" } = {}) {
  const state = h("div", { class: "pager" });
  let token = null;
  let seen = 0;

  async function next() {
    fill(state, skeleton(seen ? 1 : 4));
    try {
      const found = await ask(token);
      if (signal?.aborted) return;
      seen += found.items.length;
      token = found.token ?? null;
      show(found.items);
      if (!seen && !token) fill(state, none());
      else if (token) fill(state, h("button", { type: "button", class: "button", onclick: next }, more));
      else fill(state);
    } catch (error) {
      if (error.name === "AbortError" || signal?.aborted) return;
      if (error.status === undefined) console.error(error);
      fill(state, failure(error, next));
    }
  }
  next();
  return state;
}
