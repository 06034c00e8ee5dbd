// The beginning: finds out who is there, then shows the page of the address.

import { onAnswer } from "./api.js";
import { fill, h } from "./dom.js";
import { poll } from "./live.js";
import { failure, skeleton } from "./parts/panels.js";
import { listenForSlash } from "./parts/search.js";
import { go, link, read, start } from "./router.js";
import { end, load, onSession, session } from "./session.js";
import { applyTheme, buildShell } from "./shell.js";
import { signInPage, takePlace } from "./sign-in.js";

const PAGES = {
  overview: () => import("./pages/overview.js"),
  catalog: () => import("./pages/catalog.js"),
  table: () => import("./pages/table.js"),
  view: () => import("./pages/view.js"),
  "iceberg-view": () => import("./pages/iceberg-view.js"),
  "iceberg-table": () => import("./pages/iceberg-table.js"),
  function: () => import("./pages/function.js"),
  lineage: () => import("./pages/lineage.js"),
  jobs: () => import("./pages/jobs.js"),
  job: () => import("./pages/job.js"),
  sql: () => import("./pages/sql.js"),
  access: () => import("./pages/access.js"),
};

const AWAY_SECONDS = 2;

let frame = null;
let leaving = new AbortController();
let moved = false;
let waiting = null;
let needsReload = false;

async function show(address) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  if (!session().signed_in) {
    frame = null;
    document.title = "Sign in – Penstock";
    fill(document.body, signInPage());
    return;
  }
  // Where a refused sign-in came back to, which has nothing to show to who is signed in.
  if (address.page === "sign-in") return go(link("overview"), { replace: true });
  if (!frame) {
    frame = buildShell();
    fill(document.body, frame.shell);
  }
  const { main, choose } = frame;
  choose(address.page);
  main.setAttribute("aria-busy", "true");
  fill(main, skeleton(6));
  try {
    if (!Object.hasOwn(PAGES, address.page)) throw Object.assign(new Error("there is no such page"), { status: 0 });
    const page = await PAGES[address.page]().catch(reloadAdvice);
    if (signal.aborted) return;
    document.title = `${page.title(address)} – Penstock`;
    const made = await page.render({ ...address, signal });
    if (signal.aborted) return;
    fill(main, made);
    scrollTo(0, 0);
    // Who moves by keyboard or hears the page goes on at its head.
    if (moved) main.querySelector("h1")?.focus({ preventScroll: true });
    moved = true;
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    if (error.status === undefined) console.error(error);
    fill(main, h("h1", { class: "visually-hidden" }, "Error"), failure(error, () => show(read())));
  } finally {
    if (!signal.aborted) main.setAttribute("aria-busy", "false");
  }
}

/** A module that did not come: the server is away, or was upgraded and has other modules now. */
function reloadAdvice(cause) {
  needsReload = true;
  awaitServer();
  throw Object.assign(new Error("the page could not be loaded", { cause }), {
    detail: "The server may have been upgraded, or does not answer. The console goes on by itself when it is back.",
    status: 0,
    isAway: true,
  });
}

/** Ask until the server is back; then what could not be shown is shown. */
function awaitServer() {
  if (waiting) return;
  waiting = new AbortController();
  const { signal } = waiting;
  const ask = async () => {
    await load();
    waiting.abort();
    waiting = null;
    if (needsReload) return reload();
    if (document.querySelector("main .failure.away")) show(read());
  };
  setTimeout(() => poll(ask, AWAY_SECONDS, signal), AWAY_SECONDS * 1000);
}

/** Once for each set of modules: one that is broken is not asked for again and again. */
function reload() {
  needsReload = false;
  if (sessionStorage.getItem("penstock.reloaded") === import.meta.url) return;
  sessionStorage.setItem("penstock.reloaded", import.meta.url);
  location.reload();
}

async function begin() {
  applyTheme();
  addEventListener("storage", applyTheme);
  try {
    await load();
  } catch (error) {
    fill(document.body, h("main", { class: "gate" }, h("div", { class: "gate-card" }, failure(error, begin))));
    return;
  }
  let signedIn = session().signed_in;
  const wanted = signedIn ? takePlace() : null;
  if (wanted) history.replaceState(null, "", wanted);
  onAnswer((what) => {
    if (what === "ended") end();
    if (what === "away") awaitServer();
  });
  onSession((told) => {
    frame?.tellSession();
    if (told.signed_in === signedIn) return;
    signedIn = told.signed_in;
    frame = null;
    show(read());
  });
  listenForSlash();
  start(show);
}

begin();
