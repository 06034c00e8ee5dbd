// Phases beside each other on one line of time.

import { h, s } from "../dom.js";
import { clock, duration } from "../format.js";

/** phases: [{label, from, to, tone, title}] in milliseconds; `to` may be now. */
export function phaseLine(phases) {
  if (!phases.length) return h("p", { class: "quiet" }, "It has not begun.");
  const first = Math.min(...phases.map((p) => p.from));
  const last = Math.max(...phases.map((p) => p.to), first + 1);
  const x = (at) => (1000 * (at - first)) / (last - first);
  const rows = phases.map((phase) => {
    const width = Math.max(x(phase.to) - x(phase.from), 3);
    const seconds = (phase.to - phase.from) / 1000;
    return h(
      "li",
      {},
      h("span", { class: "phase-label" }, phase.label),
      s(
        "svg",
        { viewBox: "0 0 1000 10", preserveAspectRatio: "none", class: `phase ${phase.tone ?? "busy"}`, "aria-hidden": "true" },
        s("rect", { class: "track", width: 1000, height: 10 }),
        s("rect", { class: "value", x: Math.min(x(phase.from), 997), width, height: 10 }),
      ),
      h("span", { class: "phase-time", title: `${clock(phase.from)} – ${clock(phase.to)}` }, duration(seconds)),
    );
  });
  return h("ol", { class: "phases" }, rows);
}
