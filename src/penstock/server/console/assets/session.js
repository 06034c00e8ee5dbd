// Who uses the console, and what they may do.

import { get, post, send, setCsrf } from "./api.js";

const PATH = "/console/api/session";
const UNKNOWN = { authentication: false, signed_in: true, roles: [], sign_in: [] };
let current = UNKNOWN;
const listeners = new Set();

export function session() {
  return current;
}

export function onSession(listener) {
  listeners.add(listener);
}

/** Ask the server who we are. */
export async function load() {
  keep(await get(PATH));
}

export async function signIn(key) {
  keep(await post(PATH, { key }));
}

export async function signOut() {
  await send("DELETE", PATH);
  await load();
}

/** The server says that the session has ended. */
export function end() {
  if (current.authentication && current.signed_in) keep({ ...current, signed_in: false, ended: true });
}

/** Whether a role on the whole catalog lets us do something. */
export function has(role) {
  return current.roles.includes(role);
}

/** The roles that we have on objects: rights([{kind, id}]) answers a list for each. */
export async function rights(objects, signal) {
  if (!current.authentication) return objects.map(() => current.roles);
  return (await post("/v1/rights/describe", { objects }, signal)).roles;
}

function keep(told) {
  current = told;
  setCsrf(told.csrf);
  for (const listener of listeners) listener(current);
}
