// The beginning: finds out who is there, then shows the page of the address.

import { onAnswer } from "./api.js";
import { fill, h } from "./dom.js";
import { failure, skeleton } from "./parts/panels.js";
import { listenForSlash } from "./parts/search.js";
import { go, link, read, start } from "./router.js";
import { end, load, onSession, session } from "./session.js";
import { applyTheme, buildShell } from "./shell.js";
import { signInPage } from "./sign-in.js";

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

let frame = null;
let leaving = new AbortController();
let moved = false;

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

function reloadAdvice(cause) {
  throw Object.assign(new Error("the page could not be loaded", { cause }), {
    detail: "The server may have been upgraded, or does not answer. Reload the page.",
    status: 0,
  });
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
  onAnswer((what) => what === "ended" && end());
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
