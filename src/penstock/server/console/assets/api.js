// Asks the server's REST API, the same that every client uses.

const DELIMITER = "\u001f";

/** An answer of the server that is no success, in the server's own words. */
export class ApiError extends Error {
  constructor(status, body) {
    // The Iceberg protocol has the words one level further down.
    super(body?.error?.message ?? body?.error ?? `the server answered ${status}`);
    this.status = status;
    this.detail = body?.detail ?? "";
    this.code = body?.code;
    this.instance = body?.instance ?? "";
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {
  constructor() {
    super("the server does not answer");
    this.status = 0;
    this.isAway = true;
    this.detail = "It may be starting again. The console goes on by itself when it is back.";
  }
}

const listeners = new Set();
let csrf = "";

/** Hear of each answer: "ok", "away" (no answer) or "ended" (the session). */
export function onAnswer(listener) {
  listeners.add(listener);
}

export function setCsrf(token) {
  csrf = token ?? "";
}

/** `/v1/table/<id>/rows` and its like; names keep every character they have. */
export function path(kind, id, action, params = {}) {
  const joined = id.length ? id.map(encodeURIComponent).join("%1F") : "%1F";
  const query = new URLSearchParams({ ...params, delimiter: DELIMITER });
  return `/v1/${kind}/${joined}/${action}?${query}`;
}

/** The Iceberg protocol's address of a table. */
export function icebergPath(id, params = {}) {
  const namespace = id.slice(0, -1).map(encodeURIComponent).join("%1F");
  const query = new URLSearchParams(params);
  return `/iceberg/v1/namespaces/${namespace}/tables/${encodeURIComponent(id.at(-1))}${query.size ? `?${query}` : ""}`;
}

/** GET JSON whose whole numbers may be too large for this language: those come as text. */
export async function getExact(url, signal) {
  const answer = await send("GET", url, undefined, signal);
  return JSON.parse(quoteLarge(await answer.text()));
}

/** Strings are stepped over, so that only numbers are changed. */
function quoteLarge(text) {
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  return text.replace(tokens, (each) => (/^-?\d{16,}$/.test(each) ? `"${each}"` : each));
}

/** POST a JSON body, and return the JSON of the answer. */
export function post(url, body = {}, signal = undefined) {
  return ask("POST", url, body, signal);
}

export function get(url, signal = undefined) {
  return ask("GET", url, undefined, signal);
}

/** DELETE, once however often a browser sends it. */
export function remove(url) {
  return ask("DELETE", url, undefined, undefined, { "idempotency-key": crypto.randomUUID?.() ?? uuid() });
}

/** POST what changes something: sent again by a browser, it still takes place once. */
export function change(url, body = {}) {
  return ask("POST", url, body, undefined, { "idempotency-key": crypto.randomUUID?.() ?? uuid() });
}

function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

async function ask(method, url, body, signal, more = {}) {
  const answer = await send(method, url, body, signal, more);
  if (answer.status === 204) return null;
  const type = answer.headers.get("content-type") ?? "";
  return type.includes("json") ? answer.json() : answer.text();
}

/** Ask for rows as JSON. */
export function rows(url, body, signal) {
  return ask("POST", url, body, signal, { accept: "application/vnd.penstock.rows+json" });
}

/** The answer itself, for what is no JSON. */
export async function send(method, url, body, signal, more = {}) {
  const headers = { accept: "application/json", ...more };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && csrf) headers["x-penstock-csrf"] = csrf;
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell("away");
    throw new Unreachable();
  }
  if (answer.ok) {
    tell("ok");
    return answer;
  }
  const told = await answer.json().catch(() => null);
  tell(answer.status === 401 ? "ended" : "ok");
  throw new ApiError(answer.status, told);
}

function tell(what) {
  for (const listener of listeners) listener(what);
}
