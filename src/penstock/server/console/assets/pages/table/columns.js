// Computed columns: what is fresh, and what can be done about what is not.

import { change, path, post } from "../../api.js";
import { fill, h } from "../../dom.js";
import { count, number } from "../../format.js";
import { errorLedger } from "../../parts/ledger.js";
import { actionButton, confirm, toast } from "../../parts/dialogs.js";
import { jobLink, name } from "../../parts/names.js";
import { facts, loaded, panel } from "../../parts/panels.js";
import { showPlan } from "../../parts/plan.js";
import { stateBar } from "../../parts/states.js";
import { go, link } from "../../router.js";

export function columnsTab(about) {
  const { id, at, signal } = about;
  const ask = async () => {
    const found = await post(path("table", id, "describe"), { count_rows: true, branch: at.branch, vend_credentials: false }, signal);
    return JSON.parse(found.properties["penstock.columns"] ?? "{}");
  };
  return loaded(
    ask,
    (bound) => [
      h("div", { class: "panels" }, Object.entries(bound).map(([column, told]) => columnPanel(about, column, told))),
      panel("Rows that functions failed on", {}, errorLedger(id, { branch: at.branch }, signal)),
    ],
    { signal, lines: 6 },
  );
}

function columnPanel(about, column, told) {
  const { id, at, signal, roles, fields } = about;
  const counts = told.rows_by_state;
  const field = fields.find((each) => each.name === column);
  const expression = field?.metadata?.["computed_column.expression"];
  const plan = h("div", {});
  const wanted = { column, branch: at.branch };
  const explain = () =>
    fill(plan, loaded(() => post(path("table", id, "explain_backfill"), wanted, signal), showPlan, { signal }));
  const mayFill = roles.includes("writer");
  return panel(
    [name(column)],
    {
      hint: told.auto_backfill ? "fills itself" : null,
      actions: [
        h("button", { type: "button", class: "button", onclick: explain }, "Explain"),
        mayFill ? actionButton("Backfill", () => backfill(about, wanted), { primary: needsWork(counts) }) : null,
        mayFill && counts?.failed ? actionButton("Retry failed", () => begin(id, { ...wanted, errors_only: true })) : null,
      ],
    },
    facts([
      ["Computed by", expression ? h("code", {}, h("bdi", {}, expression)) : ["function ", name(told.function ?? "")]],
      ["From", told.inputs.map((input, index) => [index ? ", " : "", name(input)])],
      told.watermark === null ? null : ["Filled up to", `version ${told.watermark}`],
    ]),
    counts
      ? stateBar(["fresh", "stale", "failed", "unfilled"].map((word) => [word, counts[word] ?? 0]))
      : h("p", { class: "quiet" }, "Its rows are not counted yet."),
    reasons(told.stale_by_reason),
    plan,
  );
}

function reasons(told) {
  const known = Object.entries(told ?? {}).filter(([, value]) => value);
  if (!known.length) return null;
  return h("p", { class: "quiet" }, "Stale because: ", known.map(([why, value]) => `${why.replaceAll("_", " ")} (${number(value)})`).join(", "));
}

function needsWork(counts) {
  return Boolean(counts && (counts.stale || counts.unfilled || counts.failed));
}

/** Ask with the plan at hand when there is something to compute. */
async function backfill({ id, signal }, wanted) {
  const plan = await post(path("table", id, "explain_backfill"), wanted, signal);
  if (plan.mode === "none") return begin(id, wanted);
  confirm({
    title: ["Backfill ", name(wanted.column)],
    text: `${count(plan.function_calls, "row")} to compute.`,
    look: async () => showPlan(plan),
    button: "Backfill",
    danger: false,
    act: () => begin(id, wanted),
  });
}

async function begin(id, wanted) {
  const { job_id: job } = await change(path("table", id, "backfill_column"), wanted);
  toast("Queued as ", jobLink(job));
  go(link("job", [job]));
}
