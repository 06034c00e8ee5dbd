// Who may do what: keys, grants, and the audit log, for those who may see them.

import { change, post } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, moment } from "../format.js";
import { confirm, toast } from "../parts/dialogs.js";
import { name, objectLink } from "../parts/names.js";
import { paged } from "../parts/pager.js";
import { command, empty, facts, list, loaded, pageHead, panel, tabs } from "../parts/panels.js";
import { state } from "../parts/states.js";
import { has, session } from "../session.js";

const ROLES = ["reader", "writer", "owner", "functions"];
const TARGETS = ["catalog", "namespace", "table", "view", "function"];
const PAGE = 100;

export const title = () => "Access";

export async function render({ query, signal }) {
  const told = session();
  if (!told.authentication) {
    return [
      pageHead({ title: "Access" }),
      panel(
        "Authentication is off",
        {},
        empty("Everybody who reaches this server may do everything", "Switch it on in the settings, and make a first key:", [
          "[auth]\nenabled = true",
          "penstock token create alice\npenstock grant alice owner",
        ]),
      ),
    ];
  }
  const owns = has("owner");
  return [
    pageHead({ title: "Access" }),
    tabs(
      [
        ["me", "You", () => mine(signal)],
        ["grants", "Grants", () => grants(signal, owns)],
        owns ? ["keys", "Keys", () => keys(signal)] : null,
        owns ? ["audit", "Audit", () => audit(signal)] : null,
      ],
      query.get("tab"),
    ),
  ];
}

function mine(signal) {
  const told = session();
  return h(
    "div",
    { class: "panels" },
    panel(
      "This session",
      {},
      facts([
        ["Principal", name(told.principal)],
        told.groups?.length ? ["Groups", told.groups.map((each, index) => [index ? ", " : "", name(each)])] : null,
        ["On the whole catalog", told.roles.length ? told.roles.join(", ") : "no role"],
        told.expires_at ? ["Ends", h("time", { title: moment(told.expires_at) }, ago(told.expires_at))] : null,
      ]),
    ),
    panel("Your grants", {}, loaded(() => post("/v1/grants/list", {}, signal), (found) => grantTable(found.grants), { signal })),
  );
}

function targetOf(grant) {
  const kind = TARGETS.find((each) => grant[each]);
  return kind === "catalog" ? "the whole catalog" : objectLink(kind, grant[kind]);
}

function grantTable(found, revoke = null) {
  if (!found.length) return h("p", { class: "quiet" }, "No grants.");
  const rows = found.map((each) => [
    name(each.principal),
    each.role,
    targetOf(each),
    h("span", { class: "quiet" }, "by ", name(each.created_by || "the operator"), ", ", h("time", { title: moment(each.created_at) }, ago(each.created_at))),
    revoke ? h("button", { type: "button", class: "button quiet", "aria-label": `Revoke ${each.role} of ${each.principal}`, onclick: () => revoke(each) }, "Revoke") : "",
  ]);
  return list(["Principal", "Role", "On", "Given", ""], rows, { label: "Grants" });
}

function grants(signal, owns) {
  const kind = h("select", { "aria-label": "On what" }, TARGETS.map((each) => h("option", { value: each }, each === "catalog" ? "the whole catalog" : each)));
  const id = h("input", { type: "text", "aria-label": "Its name", placeholder: "shop.orders", class: "grow" });
  const principal = h("input", { type: "text", "aria-label": "Principal", placeholder: "alice", required: true });
  const role = h("select", { "aria-label": "Role" }, ROLES.map((each) => h("option", {}, each)));
  const place = h("div", {});
  kind.value = owns ? "catalog" : "namespace";

  const target = () => (kind.value === "catalog" ? { catalog: true } : { [kind.value]: id.value.trim().split(".") });
  function look() {
    const body = target();
    fill(place, loaded(() => post("/v1/grants/list", body, signal), (found) => grantTable(found.grants, revoke), { signal }));
  }
  function revoke(each) {
    const what = Object.fromEntries(TARGETS.filter((word) => each[word]).map((word) => [word, each[word]]));
    confirm({
      title: ["Revoke ", each.role, " of ", name(each.principal)],
      text: ["On ", targetOf(each), ". Views that read with this right fail at their next refresh."],
      button: "Revoke",
      act: () => change("/v1/grants/revoke", { principal: each.principal, role: each.role, ...what }),
      done: look,
    });
  }
  async function give(event) {
    event.preventDefault();
    const body = { principal: principal.value.trim(), role: role.value, ...target() };
    confirm({
      title: ["Grant ", body.role, " to ", name(body.principal)],
      text: kind.value === "catalog" ? "On the whole catalog." : ["On ", kind.value, " ", name(id.value), ", and all that is in it."],
      button: "Grant",
      danger: false,
      act: () => change("/v1/grants/create", body),
      done: () => {
        toast("Granted");
        look();
      },
    });
  }
  kind.addEventListener("change", () => {
    id.hidden = kind.value === "catalog";
  });
  id.hidden = kind.value === "catalog";
  if (owns) look();
  return [
    panel("Grants on", {}, h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); look(); } }, kind, id, h("button", { type: "submit", class: "button" }, "Show")), place),
    panel("Give a role on it", {}, h("form", { class: "toolbar", onsubmit: give }, principal, role, h("button", { type: "submit", class: "button primary" }, "Grant"))),
  ];
}

function keys(signal) {
  const place = loaded(
    () => post("/v1/keys/list", {}, signal),
    ({ keys: found }) => {
      const rows = found.map((each) => [
        name(each.principal),
        h("span", { class: "quiet" }, each.kind),
        keyState(each),
        each.note ? h("bdi", {}, each.note) : "",
        h("time", { class: "quiet", title: moment(each.created_at) }, ago(each.created_at)),
        each.used_at ? h("time", { class: "quiet", title: moment(each.used_at) }, ago(each.used_at)) : h("span", { class: "quiet" }, "never"),
        each.revoked_at ? "" : command(`penstock token revoke ${each.id}`),
      ]);
      return rows.length ? list(["Principal", "Kind", "State", "Note", "Made", "Used", "To revoke it"], rows, { label: "Keys" }) : empty("No keys", null);
    },
    { signal },
  );
  return panel("Keys", { hint: "an operator makes them" }, command("penstock token create NAME"), place);
}

function keyState(each) {
  if (each.revoked_at) return state("canceled", "revoked");
  if (each.expires_at && each.expires_at < Date.now()) return state("stale", "expired");
  return state("ok", each.expires_at ? `until ${moment(each.expires_at).slice(0, 10)}` : "valid");
}

function audit(signal) {
  const principal = h("input", { type: "text", "aria-label": "Principal", placeholder: "principal" });
  const operation = h("input", { type: "text", "aria-label": "Operation", placeholder: "operation, as DropTable" });
  const object = h("input", { type: "text", "aria-label": "Object", placeholder: "object" });
  const place = h("div", {});
  function look(event) {
    event?.preventDefault();
    const wanted = { principal: principal.value.trim(), operation: operation.value.trim(), object: object.value.trim() };
    const body = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
    const rows = h("tbody", {});
    const ask = async (token) => {
      const found = await post("/v1/audit/list", { ...body, limit: PAGE, ...(token ? { page_token: token } : {}) }, signal);
      return { items: found.entries, token: found.page_token };
    };
    const table = list(["When", "Who", "Operation", "Object", "Outcome"], [], { label: "Audit" });
    table.querySelector("tbody").replaceWith(rows);
    const more = paged(ask, (found) => rows.append(...found.map(entry)), () => h("p", { class: "quiet" }, "No entry is like that."), { signal });
    fill(place, table, more);
  }
  look();
  return panel(
    "Audit",
    { hint: "the newest first" },
    h("form", { class: "toolbar", role: "search", onsubmit: look }, principal, operation, object, h("button", { type: "submit", class: "button" }, "Show")),
    place,
  );
}

function entry(each) {
  const refused = each.status >= 400;
  return h(
    "tr",
    {},
    h("td", { class: "tight" }, h("time", {}, moment(each.at))),
    h("td", {}, name(each.principal ?? "")),
    h("td", {}, each.operation ?? ""),
    h("td", {}, h("bdi", {}, each.object ?? "")),
    h("td", {}, state(refused ? "failed" : "ok", `${each.outcome} ${each.status}`)),
  );
}
