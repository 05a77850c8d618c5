/** The page: its frame, and the view that the address names. */

import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SessionJson } from "../shapes.js";
import { type Api, createApi } from "./api.js";
import { getMessage, Heading, isAbort } from "./components/small.js";
import { contentViews } from "./content/views.js";
import { PageContext } from "./page-context.js";
import { nameZone, type Zone } from "./times.js";
import { matchPath, useLocation, type View } from "./view.js";
import { webhookViews } from "./webhooks/views.js";

const views: readonly View[] = [...webhookViews, ...contentViews];

/** Relative to this script, so that it holds below any mount point. */
const api = createApi(new URL("api/", import.meta.url));

interface Status {
  readonly text: string;
  readonly kind: "done" | "failed";
}

const NO_STATUS: Status = { text: "", kind: "done" };

interface FrameProps {
  readonly usable: readonly View[];
  readonly path: string;
}

/** The view at a path, or what stands in its place. */
function CurrentView({ usable, path, query }: FrameProps & { readonly query: URLSearchParams }) {
  const first = usable.find(({ label }) => label !== undefined);
  useEffect(() => {
    if (path === "/" && first !== undefined) location.replace(`#${first.path}`);
  }, [path, first]);
  if (usable.length === 0)
    return (
      <>
        <Heading title="Nothing to show" />
        <p>You are signed in, but there is nothing here that you may see.</p>
      </>
    );
  for (const { path: pattern, component: Component, key } of usable) {
    const params = matchPath(pattern, path);
    if (params !== undefined) return <Component key={key?.(params) ?? path} params={params} query={query} />;
  }
  if (path === "/") return null;
  return (
    <>
      <Heading title="Not found" />
      <p>
        There is no such page. <a href="#/">Go to the start.</a>
      </p>
    </>
  );
}

/** The links to the views that have a label. */
function Navigation({ usable, path }: FrameProps) {
  const labelled = usable.filter(({ label }) => label !== undefined);
  const within = (target: string): boolean => path.startsWith(`${target}/`);
  return (
    <nav aria-label="Parts of this page">
      <ul>
        {labelled.map(({ label, path: target }) => (
          <li key={target}>
            <a
              href={`#${target}`}
              aria-current={path === target ? "page" : within(target) ? "true" : undefined}
            >
              {label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const ZONE_KEY = "postbell-zone";

/** The zone that the visitor chose last in this browser. */
function readZone(): Zone {
  try {
    return localStorage.getItem(ZONE_KEY) === "local" ? "local" : "UTC";
  } catch {
    // A browser may refuse storage to a page in a frame.
    return "UTC";
  }
}

function useZone(): readonly [Zone, () => void] {
  const [zone, setZone] = useState(readZone);
  const change = (): void => {
    const other = zone === "UTC" ? "local" : "UTC";
    setZone(other);
    try {
      localStorage.setItem(ZONE_KEY, other);
    } catch {
      // As above: then the choice holds for this page only.
    }
  };
  return [zone, change];
}

/** Returns the status line, which a change of the view empties unless the view asked for it. */
function useStatus(path: string) {
  const [status, setStatus] = useState(NO_STATUS);
  const isKept = useRef(false);
  // Before the effects of the new view, which may announce something.
  useLayoutEffect(() => {
    if (!isKept.current) setStatus(NO_STATUS);
    isKept.current = false;
  }, [path]);
  return useMemo(() => {
    const say = (text: string, kind: Status["kind"] = "done"): void => setStatus({ text, kind });
    return {
      status,
      say,
      fail: (error: unknown): void => {
        if (!isAbort(error)) say(getMessage(error), "failed");
      },
      go: (path: string): void => {
        isKept.current = true;
        location.hash = path;
      },
    };
  }, [status]);
}

function Page({ session, offsetMs }: { readonly session: SessionJson; readonly offsetMs: number }) {
  const { path, query } = useLocation();
  const { status, say, fail, go } = useStatus(path);
  const [zone, changeZone] = useZone();
  const functions = useRef({ say, fail, go, now: () => Date.now() + offsetMs }).current;
  const page = useMemo(
    () => ({ session, api: api satisfies Api, zone, ...functions }),
    [session, zone, functions],
  );
  const usable = useMemo(
    () => views.filter(({ part, isOffered }) => session.parts[part] && (isOffered?.(session) ?? true)),
    [session],
  );
  const skip = (event: Event): void => {
    event.preventDefault();
    document.querySelector<HTMLElement>("h1")?.focus();
  };
  return (
    <PageContext.Provider value={page}>
      {/* biome-ignore lint/a11y/useValidAnchor: it moves within the page, whose address has a path. */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <p class="brand">
          {session.logo !== null && <img src={session.logo} alt="" class="logo" />}
          {session.title}
        </p>
        <Navigation usable={usable} path={path} />
        <p class="visitor">Signed in as {session.name}</p>
      </header>
      <main id="main">
        <p role="status" class={status.text === "" ? "outcome" : `outcome ${status.kind}`}>
          {status.text}
        </p>
        <CurrentView usable={usable} path={path} query={query} />
      </main>
      <footer>
        {session.parts.webhooks && (
          <p>
            Times are in {nameZone(zone)}.{" "}
            {nameZone("local") !== "UTC" && (
              <button type="button" class="link" onClick={changeZone}>
                {zone === "UTC" ? `Show them in ${nameZone("local")}` : "Show them in UTC"}
              </button>
            )}
          </p>
        )}
      </footer>
    </PageContext.Provider>
  );
}

async function start(): Promise<void> {
  try {
    const session = await api.get<SessionJson>("session");
    const offsetMs = Date.parse(session.now) - Date.now();
    render(<Page session={session} offsetMs={offsetMs} />, document.body);
  } catch (error) {
    render(
      <main>
        <h1>The page cannot be shown</h1>
        <p role="alert" class="outcome failed">
          {getMessage(error)}
        </p>
      </main>,
      document.body,
    );
  }
}

void start();
