/** The page: its frame, its navigation over one table of views, and the life of a view. */

import type { SessionJson } from "../shapes.js";
import { ApiError, createApi } from "./api.js";
import { contentViews } from "./content/views.js";
import { h, patch } from "./dom.js";
import { zone } from "./format.js";
import { getMessage, match, type PageContext, type View } from "./view.js";
import { webhookViews } from "./webhooks/views.js";

const views: readonly View[] = [...webhookViews, ...contentViews];

const FRESH_MS = 5_000;
/** Relative to this script, so that it holds below any mount point. */
const apiBase = new URL("api/", import.meta.url);

const heading = h("h1", { tabindex: "-1" });
const status = h("p", { role: "status", class: "outcome" });
const root = h("div");
const links = h("ul");
const visitor = h("p", { class: "visitor" });
const brand = h("p", { class: "brand" });

let documentTitle = "";
let leave = new AbortController();
/** True while a view goes to another one, whose message then stays readable. */
let isStep = false;

function say(text: string, kind: "done" | "failed" = "done"): void {
  status.className = text === "" ? "outcome" : `outcome ${kind}`;
  status.textContent = text;
}

function fail(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  say(getMessage(error), "failed");
}

function title(text: string): void {
  heading.textContent = text;
  document.title = `${text} – ${documentTitle}`;
}

const pathNow = (): string => location.hash.slice(1).split("?")[0] || "/";

/** Calls `load` every few seconds while the page is visible, one call at a time. */
function keepFresh(load: () => Promise<void>, signal: AbortSignal): void {
  let hasFailed = false;
  const again = async (): Promise<void> => {
    if (signal.aborted) return;
    if (document.visibilityState === "visible") {
      try {
        await load();
        if (hasFailed) say("The page is up to date again.");
        hasFailed = false;
      } catch (error) {
        if (!hasFailed && !signal.aborted) fail(error);
        hasFailed = true;
      }
    }
    if (!signal.aborted) setTimeout(() => void again(), FRESH_MS);
  };
  setTimeout(() => void again(), FRESH_MS);
}

async function show(session: SessionJson, isFirst: boolean): Promise<void> {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const path = pathNow();
  const usable = views.filter(({ part }) => session.parts[part]);
  const found = usable
    .map((view) => ({ view, params: match(view.path, path) }))
    .find(({ params }) => params !== undefined);
  const first = usable.find(({ label }) => label !== undefined);
  if (!found && path === "/" && first) {
    location.replace(`#${first.path}`);
    return;
  }
  const labelled = usable.filter(({ label }) => label !== undefined);
  const within = labelled.some((view) => view.path === path)
    ? undefined
    : labelled.find((view) => path.startsWith(`${view.path}/`))?.path;
  patch(
    links,
    labelled.map(({ label, path: target }) =>
      h(
        "li",
        {},
        h(
          "a",
          {
            href: `#${target}`,
            "aria-current": path === target ? "page" : target === within ? "true" : null,
          },
          label,
        ),
      ),
    ),
  );
  root.replaceChildren();
  if (!isStep) say("");
  isStep = false;
  if (!found?.params) {
    title(usable.length === 0 ? "Nothing to show" : "Not found");
    root.append(
      h(
        "p",
        {},
        usable.length === 0
          ? "You are signed in, but there is nothing here that you may see."
          : "There is no such page.",
      ),
    );
    return;
  }
  const { view, params } = found;
  title(view.title);
  if (!isFirst) heading.focus({ preventScroll: false });
  const page: PageContext = {
    api: createApi(apiBase, signal),
    signal,
    title: (text) => {
      if (!signal.aborted) title(text);
    },
    say: (text, kind) => {
      if (!signal.aborted) say(text, kind);
    },
    fail: (error) => {
      if (!signal.aborted) fail(error);
    },
    go: (target) => {
      isStep = true;
      location.hash = target;
    },
    keepFresh: (load) => keepFresh(load, signal),
  };
  const own = h("div");
  root.append(own);
  try {
    await view.render(own, params, page);
  } catch (error) {
    if (signal.aborted) return;
    own.replaceChildren(h("p", { role: "alert", class: "outcome failed" }, getMessage(error)));
    if (error instanceof ApiError && error.status === 404) title("Not found");
  }
}

async function start(): Promise<void> {
  const main = h("main", { id: "main" }, heading, status, root);
  const skip = (event: Event): void => {
    event.preventDefault();
    heading.focus();
  };
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    h("header", {}, brand, h("nav", { "aria-label": "Parts of this page" }, links), visitor),
    main,
    h("footer", {}, `Times of webhooks are those of ${zone()}.`),
  );
  let session: SessionJson;
  try {
    session = await createApi(apiBase).get<SessionJson>("session");
  } catch (error) {
    heading.textContent = "The page cannot be shown";
    fail(error);
    return;
  }
  documentTitle = session.title;
  brand.textContent = session.title;
  visitor.textContent = `Signed in as ${session.name}`;
  addEventListener("hashchange", () => void show(session, false));
  await show(session, true);
}

void start();
