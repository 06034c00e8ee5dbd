// Which page an address means. Names are segments of the path, so that any name has an address.

const BASE = "/console";
let show = () => {};

/** Begin: `handler` shows the page of an address whenever that changes. */
export function start(handler) {
  show = handler;
  addEventListener("popstate", () => show(read()));
  document.addEventListener("click", follow);
  show(read());
}

/** The address as {page, id, query}. */
export function read() {
  const segments = location.pathname.slice(BASE.length).split("/").filter(Boolean);
  const names = segments.map(decode);
  return {
    page: names[0] ?? "overview",
    id: names.slice(1),
    query: new URLSearchParams(location.search),
  };
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The address of a page: link("table", ["a", "b"], {tab: "rows"}). */
export function link(page, id = [], query = {}) {
  const told = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const path = [BASE, page, ...id.map(encodeURIComponent)].join("/");
  return told.size ? `${path}?${told}` : path;
}

export function go(address, { replace = false } = {}) {
  if (address !== location.pathname + location.search) {
    history[replace ? "replaceState" : "pushState"](null, "", address);
  }
  show(read());
}

/** Note in the address what is chosen on the page, without showing the page again. */
export function note(changes) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  history.replaceState(null, "", location.pathname + (query.size ? `?${query}` : ""));
}

/** The page's own link to an object of the catalog. */
export function linkTo(kind, id, query = {}) {
  const page = { namespace: "catalog", materialized_view: "view", view: "iceberg-view", iceberg_table: "iceberg-table" };
  return link(page[kind] ?? kind, id, query);
}

function follow(event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) {
    return;
  }
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || anchor.getAttribute("target") || anchor.hasAttribute("download")) return;
  // Read as it is written: what SVG's own links have as their address is no text.
  const url = new URL(anchor.getAttribute("href"), location.href);
  if (url.origin !== location.origin || !(url.pathname + "/").startsWith(`${BASE}/`)) return;
  event.preventDefault();
  go(url.pathname + url.search);
}

