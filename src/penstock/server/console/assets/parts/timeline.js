// What happened, each in a lane of its own, above each other on one line of time.

import { h, s } from "../dom.js";
import { clock, duration, number } from "../format.js";

const MOST = 60;

/** lanes: [{label, tone, parts: [{from, to}]}] in milliseconds; `to` may be now. */
export function phaseLine(lanes) {
  if (!lanes.length) return h("p", { class: "quiet" }, "It has not begun.");
  const shown = lanes.slice(0, MOST);
  const parts = lanes.flatMap((lane) => lane.parts);
  const first = Math.min(...parts.map((part) => part.from));
  const last = Math.max(...parts.map((part) => part.to), first + 1);
  const x = (at) => (1000 * (at - first)) / (last - first);
  const rows = shown.map((lane) => {
    const sum = lane.parts.reduce((all, part) => all + part.to - part.from, 0) / 1000;
    const title = lane.parts.slice(0, 10).map((part) => `${clock(part.from)} – ${clock(part.to)}`).join(", ");
    return h(
      "li",
      {},
      h("span", { class: "phase-label", title: lane.label }, h("bdi", {}, lane.label)),
      s(
        "svg",
        { viewBox: "0 0 1000 10", preserveAspectRatio: "none", class: `phase ${lane.tone}`, "aria-hidden": "true" },
        s("rect", { class: "track", width: 1000, height: 10 }),
        lane.parts.map((part) =>
          s("rect", { class: "value", x: Math.min(x(part.from), 997), width: Math.max(x(part.to) - x(part.from), 3), height: 10 }),
        ),
      ),
      h("span", { class: "phase-time", title }, duration(sum)),
    );
  });
  const more = lanes.length - shown.length;
  return [h("ol", { class: "phases" }, rows), more ? h("p", { class: "quiet" }, `and ${number(more)} more`) : null];
}
