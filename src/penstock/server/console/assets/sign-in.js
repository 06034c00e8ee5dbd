// Signing in, by a key or at the organisation's own place.

import { fill, h } from "./dom.js";
import { failure } from "./parts/panels.js";
import { session, signIn } from "./session.js";
import { brand } from "./shell.js";

const REFUSED = { message: "The issuer did not sign you in", detail: "Try again, or sign in with a key." };

const WANTED = "penstock.wanted";

/** Whoever comes back from the issuer goes on where they wanted to be. */
function keepPlace() {
  sessionStorage.setItem(WANTED, location.pathname + location.search);
}

/** Where somebody wanted to be before they went to the issuer; tells it once. */
export function takePlace() {
  const found = sessionStorage.getItem(WANTED) ?? "";
  sessionStorage.removeItem(WANTED);
  return found.startsWith("/console/") && !found.startsWith("/console/sign-in") ? found : null;
}

/** The page that asks who you are; what was asked for is shown afterwards. */
export function signInPage() {
  const { sign_in: ways = ["key"], ended } = session();
  const refused = new URLSearchParams(location.search).has("refused");
  const place = h("div", {}, refused ? failure(REFUSED) : null);
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
    // For keepers of passwords, which look for a name beside one.
    h("input", { type: "text", name: "username", autocomplete: "username", value: "key", hidden: true }),
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
            h("a", { class: "button primary", href: "/console/api/sign-in", target: "_self", onclick: keepPlace }, "Sign in with your organisation"),
            h("p", { class: "or" }, "or"),
          ]
        : null,
      form,
      place,
      h("p", { class: "quiet" }, "An operator makes keys with ", h("code", {}, "penstock token create NAME"), "."),
    ),
  );
}
