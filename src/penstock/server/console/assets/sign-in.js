// Signing in, by a key or at the organisation's own place.

import { fill, h } from "./dom.js";
import { failure } from "./parts/panels.js";
import { session, signIn } from "./session.js";
import { brand } from "./shell.js";

/** The page that asks who you are; what was asked for is shown afterwards. */
export function signInPage() {
  const { sign_in: ways = ["key"], ended } = session();
  const place = h("div", {});
  const key = h("input", {
    type: "password",
    name: "key",
    autocomplete: "current-password",
    required: true,
    placeholder: "pstk_…",
    spellcheck: "false",
  });
  const button = h("button", { type: "submit", class: "button primary" }, "Sign in");
  const form = h(
    "form",
    { class: "field", onsubmit: send },
    h("label", { class: "field" }, "Key", key),
    button,
  );

  async function send(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      await signIn(key.value.trim());
    } catch (error) {
      fill(place, failure(error));
      key.select();
    } finally {
      button.disabled = false;
    }
  }

  queueMicrotask(() => key.focus());
  return h(
    "div",
    { class: "gate" },
    h(
      "main",
      { class: "gate-card" },
      brand(),
      h("h1", {}, ended ? "Your session has ended" : "Sign in"),
      ways.includes("oidc")
        ? [
            h("a", { class: "button primary", href: "/console/api/sign-in", target: "_self" }, "Sign in with your organisation"),
            h("p", { class: "or" }, "or"),
          ]
        : null,
      form,
      place,
      h("p", { class: "quiet" }, "An operator makes keys with ", h("code", {}, "penstock token create NAME"), "."),
    ),
  );
}
