// The log of a job, as it comes.

import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { clock, moment } from "../format.js";
import { failure, panel } from "./panels.js";

const PAGE = 500;
const MOST = 5000;

/** {panel, look}: `look()` fetches what has come since. */
export function jobLog(id, signal) {
  const lines = h("div", { class: "log", tabindex: "0", role: "log", "aria-label": "Log" });
  const none = h("p", { class: "quiet" }, "No lines yet.");
  const place = h("div", {}, none);
  let seen = 0;
  let token = null;
  let busy = false;

  async function look() {
    if (busy || signal.aborted) return;
    busy = true;
    try {
      await fetchMore();
    } catch (error) {
      if (error.name !== "AbortError" && !seen) fill(place, failure(error));
    } finally {
      busy = false;
    }
  }

  async function fetchMore() {
    for (;;) {
      const query = new URLSearchParams({ limit: PAGE, ...(token ? { page_token: token } : {}) });
      const found = await get(`/v1/jobs/${encodeURIComponent(id)}/logs?${query}`, signal);
      const fresh = found.lines.filter((line) => line.number > seen);
      if (fresh.length) append(fresh);
      if (!found.page_token) return;
      token = found.page_token;
    }
  }

  function append(fresh) {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    seen = fresh.at(-1).number;
    if (!lines.isConnected) fill(place, lines);
    lines.append(...fresh.map(show));
    while (lines.childElementCount > MOST) lines.firstChild.remove();
    if (atEnd) lines.scrollTop = lines.scrollHeight;
  }

  return { panel: panel("Log", {}, place), look };
}

function show(line) {
  return h(
    "div",
    { class: `level-${line.level}` },
    h("time", { title: moment(line.at) }, clock(line.at)),
    h("span", { class: "attempt", title: `attempt ${line.attempt}` }, line.attempt > 1 ? `#${line.attempt}` : ""),
    h("bdi", {}, line.text),
  );
}
