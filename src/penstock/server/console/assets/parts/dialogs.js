// Dialogs: to look closer at a value, to ask before something is lost, and to say what came of it.

import { fill, h, newId } from "../dom.js";
import { failure, loaded } from "./panels.js";
import { icon } from "./icons.js";

/** Open a dialog; Escape and the cross close it. */
export function open(title, body, { class: more = "" } = {}) {
  const id = newId("dialog");
  const close = () => dialog.close();
  const dialog = h(
    "dialog",
    { class: `dialog ${more}`, "aria-labelledby": id },
    h(
      "header",
      {},
      h("h2", { id }, title),
      h(
        "button",
        { type: "button", class: "button quiet", "aria-label": "Close", onclick: close },
        icon("close"),
      ),
    ),
    h("div", { class: "dialog-body" }, body),
  );
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    before?.focus?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Ask, then act. `look` finds what would be lost and what depends on it and returns elements;
 * `word` has to be typed when it is given.
 */
export function confirm({ title, text = null, fields = null, act, button, look = null, word = null, danger = true, wide = false, done }) {
  const place = h("div", {});
  const told = look ? loaded(look, (found) => found, { lines: 2 }) : null;
  const typed = word === null ? null : h("input", { type: "text", autocomplete: "off", oninput: check });
  const yes = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}` }, button);
  function check() {
    yes.disabled = typed !== null && typed.value !== word;
  }
  check();
  const form = h(
    "form",
    { method: "dialog", onsubmit: run },
    text ? h("p", {}, text) : null,
    fields ? h("div", { class: "ask" }, fields) : null,
    told,
    typed ? h("label", { class: "field" }, h("span", {}, "Type ", h("bdi", { class: "mono" }, word), " to confirm"), typed) : null,
    place,
    h(
      "footer",
      {},
      h("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Keep"),
      yes,
    ),
  );
  const dialog = open(title, form, { class: wide ? "" : "narrow" });
  if (!danger) form.querySelector("footer .button").replaceChildren("Cancel");
  (typed ?? form.querySelector("footer .button")).focus();

  async function run(event) {
    event.preventDefault();
    yes.disabled = true;
    try {
      const answer = await act(form);
      dialog.close();
      await done?.(answer);
    } catch (error) {
      fill(place, failure(error));
      yes.disabled = false;
    }
  }
  return dialog;
}

/** A word at the edge of the page that goes by itself. */
export function toast(...children) {
  let region = document.querySelector(".toasts");
  if (!region) {
    region = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(region);
  }
  const item = h("div", { class: "toast" }, children);
  region.append(item);
  setTimeout(() => item.remove(), 8000);
}

/** A button that does something at once, and tells in its place what came of it. */
export function actionButton(text, act, { primary = false, title = null } = {}) {
  const button = h("button", { type: "button", class: ["button", primary && "primary"], title }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      if (error.name !== "AbortError") open("It was refused", failure(error), { class: "narrow" });
    } finally {
      button.disabled = false;
    }
  });
  return button;
}
