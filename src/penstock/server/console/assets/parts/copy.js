// Puts text into the clipboard.

import { fill, h } from "../dom.js";
import { icon } from "./icons.js";

export function copyButton(text, label = "Copy") {
  const button = h(
    "button",
    { type: "button", class: "button quiet copy", "aria-label": label, title: label },
    icon("copy"),
  );
  button.addEventListener("click", async () => {
    const done = await copy(text);
    fill(button, icon(done ? "check" : "cross"));
    setTimeout(() => fill(button, icon("copy")), 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages without TLS, but for those on loopback, have no clipboard of the newer kind.
    const area = h("textarea", { value: text, class: "visually-hidden" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
