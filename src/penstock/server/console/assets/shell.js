// The frame around the pages: navigation, theme, who is signed in, and what is wrong with the server.

import { onAnswer } from "./api.js";
import { fill, h } from "./dom.js";
import { icon } from "./parts/icons.js";
import { openSearch } from "./parts/search.js";
import { link } from "./router.js";
import { has, session, signOut } from "./session.js";

const SECTIONS = [
  ["overview", "Overview"],
  ["catalog", "Catalog"],
  ["lineage", "Lineage"],
  ["jobs", "Jobs"],
  ["sql", "SQL"],
  ["access", "Access"],
];
const BELONGS = { table: "catalog", view: "catalog", "iceberg-view": "catalog", "iceberg-table": "catalog", function: "catalog", job: "jobs" };
const LOGO = new URL("./icon.svg", import.meta.url).pathname;

/** Build the frame; returns it, where pages go, and how to say which section is shown. */
export function buildShell() {
  const main = h("main", { id: "main", tabindex: "-1" });
  const banner = h("div", { role: "status" });
  const links = new Map(
    SECTIONS.map(([key, title]) => [
      key,
      h("a", { class: "section", href: link(key) }, icon(key), title),
    ]),
  );
  const foot = h("div", { class: "side-foot" });
  const opener = h(
    "button",
    { type: "button", class: "button quiet", "aria-label": "Menu", "aria-expanded": "false", onclick: () => draw(true) },
    icon("menu"),
  );
  const side = h(
    "nav",
    { class: "side", "aria-label": "Console" },
    brand(),
    h(
      "button",
      { type: "button", class: "search-open", onclick: openSearch },
      icon("search"),
      "Search",
      h("kbd", {}, "/"),
    ),
    [...links.values()],
    foot,
  );
  const shell = h(
    "div",
    { class: "shell" },
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the page"),
    h("button", { class: "curtain", tabindex: "-1", "aria-label": "Close the menu", onclick: () => draw(false) }),
    h(
      "header",
      { class: "top" },
      opener,
      brand(),
      h(
        "button",
        { type: "button", class: "button quiet", "aria-label": "Search", onclick: openSearch },
        icon("search"),
      ),
    ),
    side,
    h("div", { class: "content" }, banner, main),
  );

  function skip(event) {
    event.preventDefault();
    main.focus();
  }
  function draw(isOpen) {
    shell.classList.toggle("drawn", isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
    (isOpen ? side.querySelector("a.section") : opener).focus();
  }
  shell.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && shell.classList.contains("drawn")) draw(false);
  });
  onAnswer((what) => {
    const away = what === "away";
    if (away === Boolean(banner.childElementCount)) return;
    fill(banner, away ? h("div", { class: "banner" }, icon("warn"), "The server does not answer. Trying again …") : null);
  });

  function choose(page) {
    const current = BELONGS[page] ?? page;
    for (const [key, anchor] of links) {
      if (key === current) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
    shell.classList.remove("drawn");
    opener.setAttribute("aria-expanded", "false");
  }

  function tellSession() {
    const told = session();
    links.get("access").hidden = !told.authentication && !has("owner");
    fill(
      foot,
      told.authentication && told.signed_in
        ? h(
            "div",
            { class: "row" },
            h("span", {}, "Signed in as ", h("bdi", {}, told.principal)),
            h(
              "button",
              { type: "button", class: "button quiet", "aria-label": "Sign out", title: "Sign out", onclick: () => signOut() },
              icon("out"),
            ),
          )
        : h("div", {}, "No authentication"),
      h("div", { class: "row" }, h("span", {}, `Penstock ${told.version ?? ""}`), themeButton()),
    );
  }
  tellSession();
  return { shell, main, choose, tellSession };
}

export function brand() {
  return h("a", { class: "brand", href: link("overview") }, h("img", { src: LOGO, alt: "" }), "Penstock");
}

const THEMES = { "": "as the system", light: "light", dark: "dark" };

/** Use the theme that was chosen before. */
export function applyTheme() {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  return chosen ?? "";
}

function themeButton() {
  const button = h("button", { type: "button", class: "button quiet" }, icon("theme"));
  const tell = (chosen) => {
    button.title = `Theme: ${THEMES[chosen]}`;
    button.setAttribute("aria-label", button.title);
  };
  tell(applyTheme());
  button.addEventListener("click", () => {
    const keys = Object.keys(THEMES);
    const next = keys[(keys.indexOf(applyTheme()) + 1) % keys.length];
    if (next) localStorage.setItem("penstock.theme", next);
    else localStorage.removeItem("penstock.theme");
    tell(applyTheme());
  });
  return button;
}
