// Refresh a view, verify it, and show beforehand what a refresh would do.

import { change, path, post } from "../../api.js";
import { h } from "../../dom.js";
import { actionButton, confirm, open, toast } from "../../parts/dialogs.js";
import { jobLink, name } from "../../parts/names.js";
import { loaded } from "../../parts/panels.js";
import { showPlan } from "../../parts/plan.js";
import { go, link } from "../../router.js";

/** Buttons for those who may: refresh and verify for writers, explain for readers. */
export function refreshButtons(view) {
  const { roles, told, at } = view;
  if (at.version || at.branch) return [];
  const mayWrite = roles.includes("writer");
  return [
    h("button", { type: "button", class: "button", onclick: () => explain(view) }, "Explain"),
    mayWrite ? h("button", { type: "button", class: "button", onclick: () => verify(view) }, "Verify") : null,
    mayWrite ? actionButton("Refresh", () => refresh(view, {}), { primary: told.stale || told.refreshedAt === null }) : null,
    mayWrite && Object.keys(told.through ?? {}).length
      ? actionButton("Refresh with its views", () => refresh(view, { cascade: true }), { title: "Also refreshes the views that it reads" })
      : null,
  ];
}

/** What a refresh would do, as a picture, loaded in its place. */
export function explained({ id, signal }, body = {}) {
  return loaded(() => post(path("materialized_view", id, "explain"), body, signal), showPlan, { signal, lines: 5 });
}

function explain(view) {
  open(["What a refresh of ", name(view.id.at(-1)), " would do"], explained(view));
}

async function refresh({ id }, body) {
  const { job_id: job } = await change(path("materialized_view", id, "refresh"), body);
  toast("Queued as ", jobLink(job));
  go(link("job", [job]));
}

function verify(view) {
  const few = h("input", { type: "radio", name: "much", value: "1000", checked: true });
  const all = h("input", { type: "radio", name: "much", value: "" });
  confirm({
    title: ["Verify ", name(view.id.at(-1))],
    text: [
      "The view is refreshed, and then compared with its query computed anew. The job has a certificate.",
      h("span", { class: "choices" }, h("label", {}, few, " about 1,000 rows"), h("label", {}, all, " every row")),
      view.told.kind === "udtf" ? h("span", { class: "warn-line" }, "Its function is called again for that.") : null,
    ],
    button: "Verify",
    danger: false,
    act: () => refresh(view, few.checked ? { verify_rows: 1000 } : { verify: true }),
  });
}
