// States by colour, shape and word together.

import { h } from "../dom.js";
import { icon } from "./icons.js";

const STATES = {
  fresh: ["check", "good"],
  stale: ["half", "warn"],
  late: ["clock", "bad"],
  failed: ["cross", "bad"],
  unfilled: ["ring", "idle"],
  unknown: ["ring", "idle"],
  queued: ["clock", "idle"],
  running: ["run", "busy"],
  paused: ["pause", "idle"],
  succeeded: ["check", "good"],
  canceled: ["cross", "idle"],
  ok: ["check", "good"],
  down: ["cross", "bad"],
};

/** A badge: state("failed"), state("failed", "3 failed"). */
export function state(word, text = word) {
  const key = word.toLowerCase();
  const [shape, tone] = STATES[key] ?? STATES.unknown;
  const spins = key === "running" ? "spins" : "";
  return h("span", { class: `state ${tone}`, "data-state": key }, icon(shape, spins), text.toLowerCase());
}

/** Only the shape, for what is written beside it. */
export function mark(word, label = word) {
  const [shape, tone] = STATES[word.toLowerCase()] ?? STATES.unknown;
  return h("span", { class: `mark ${tone}`, role: "img", "aria-label": label, title: label }, icon(shape));
}

/** Counts by state as one bar with its legend. */
export function stateBar(counts, total) {
  const shown = counts.filter(([, value]) => value > 0);
  const sum = total ?? shown.reduce((all, [, value]) => all + value, 0);
  const parts = shown.map(([word, value]) =>
    h("span", {
      class: `part ${(STATES[word] ?? STATES.unknown)[1]}`,
      style: { flex: `${value} 0 0px` },
    }),
  );
  const words = shown.map(([word, value]) => state(word, `${value.toLocaleString("en-US")} ${word}`));
  return h(
    "div",
    { class: "state-bar" },
    h("div", { class: "bar", "aria-hidden": "true" }, sum ? parts : null),
    h("div", { class: "legend" }, words.length ? words : h("span", { class: "quiet" }, "no rows")),
  );
}
