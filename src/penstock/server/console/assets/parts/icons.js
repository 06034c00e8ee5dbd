// Icons, drawn here: 16 by 16, strokes in the text's colour.

import { s } from "../dom.js";

const PATHS = {
  overview: "M2 9h3l2-6 3 10 2-4h2",
  catalog: "M2 3h5v4H2zM2 10h5v3H2zM10 3h4v3h-4zM10 9h4v4h-4z",
  jobs: "M2 4h8M2 8h12M2 12h6M13 3v3M13 11v2",
  lineage: "M3.5 3.5h2v2h-2zM3.5 10.5h2v2h-2zM10.5 7h2v2h-2zM5.5 4.5c3 0 2 3.5 5 3.5M5.5 11.5c3 0 2-3.5 5-3.5",
  sql: "M3 4l3 4-3 4M8 12h5",
  access: "M5.5 10.5a3 3 0 1 1 2.600-4.5H14v3h-2v1.5h-2V9H8.100a3 3 0 0 1-2.600 1.5zM5.5 7.5h0",
  namespace: "M2 4.5V12.5h12V5.5H8L6.5 3.5H2z",
  table: "M2 3h12v10H2zM2 6.5h12M2 9.750h12M6 6.5V13",
  materialized_view: "M2 3h12v10H2zM2 6.5h12M8.5 8l-2 2.2h3l-2 2.300",
  view: "M1.5 8S4 4 8 4s6.5 4 6.5 4S12 12 8 12 1.5 8 1.5 8zM8 6.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
  iceberg_table: "M8 2l5.5 8.5h-11zM2 13h12M5.5 6.5L8 8l2.5-1.5",
  function: "M10.5 3C8 2.5 8 4.5 7.700 6.5L7 11c-.3 1.700-1 2.5-2.5 2M5 7h5",
  column: "M5.5 2.5h5v11h-5zM5.5 6h5",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5L14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  theme: "M8 2.5a5.5 5.5 0 1 1 0 11zM8 2.5a5.5 5.5 0 0 0 0 11",
  copy: "M5.5 5.5V2.5h8v8h-3M2.5 5.5h8v8h-8z",
  chevron: "M6 3.5L10.5 8 6 12.5",
  out: "M9.5 3H3v10h6.5M6.5 8H14M11.5 5.5L14 8l-2.5 2.5",
  refresh: "M13 8a5 5 0 1 1-1.5-3.600M13 2v3h-3",
  check: "M3 8.5l3.5 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  warn: "M8 2.5L14.5 13.5h-13zM8 6.5v3.5M8 11.700v.1",
  half: "M8 3a5 5 0 1 1 0 10zM8 3a5 5 0 0 0 0 10",
  ring: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2 1.300",
  run: "M8 2.5A5.5 5.5 0 1 1 2.5 8",
  download: "M8 2.5v7.5M5 7.5L8 10.5l3-3M2.5 13.5h11",
  tag: "M2.5 2.5H8l5.5 5.5L8 13.5 2.5 8zM5.5 5.5h0",
  plus: "M8 3v10M3 8h10",
};

/** An icon that says nothing by itself: what it means stands beside it, or in a label. */
export function icon(name, more = "") {
  const path = s("path", { d: PATHS[name] ?? PATHS.table });
  const props = { viewBox: "0 0 16 16", class: `icon ${more}`, "aria-hidden": "true" };
  return s("svg", { ...props, focusable: "false" }, path);
}
