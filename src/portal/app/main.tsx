/** The page: its frame, and the view that the address names. */

import "./styles.css";
import "./content/content.css";
import "./webhooks/overview.css";
import "./webhooks/deliveries.css";
import "./webhooks/settings.css";
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SessionJson } from "../shapes.js";
import { type Api, createApi } from "./api.js";
import { LiveRegion, NO_STATUS, type Status } from "./components/live.js";
import { getMessage, Heading, isAbort } from "./components/small.js";
import { contentViews } from "./content/views.js";
import { FrameHeader, usePreferences } from "./frame.js";
import { PageContext } from "./page-context.js";
import { chooseTexts, texts } from "./texts.js";
import { matchPath, readAccount, useLocation, type View } from "./view.js";
import { AccountBar, accountsView } from "./webhooks/accounts.js";
import { webhookViews } from "./webhooks/views.js";

const views: View[] = [accountsView, ...webhookViews, ...contentViews];

/** An operator who looks at an account sees what its subscribers see. */
const hasPart = ({ parts, isOperator = false, account }: SessionJson, part: View["part"]): boolean =>
  part === "accounts" ? isOperator && account === undefined : parts[part];

/** Relative to this script, so that it holds below any mount point. */
const api = createApi(new URL("api/", import.meta.url), readAccount());

interface FrameProps {
  usable: View[];
  path: string;
}

/** The view at a path, or what stands in its place. */
function CurrentView({ usable, path, query }: FrameProps & { query: URLSearchParams }) {
  const first = usable.find(({ label }) => label !== undefined);
  useEffect(() => {
    if (path === "/" && first !== undefined) location.replace(`#${first.path}`);
  }, [path, first]);
  if (usable.length === 0)
    return (
      <>
        <Heading title={texts.page.nothingToShow} />
        <p>{texts.page.nothingForYou}</p>
      </>
    );
  for (const { path: pattern, component: Component, key } of usable) {
    const params = matchPath(pattern, path);
    if (params !== undefined) return <Component key={key?.(params) ?? path} params={params} query={query} />;
  }
  if (path === "/") return null;
  return (
    <>
      <Heading title={texts.page.notFound} />
      <p>
        {texts.page.noSuchPage} <a href="#/">{texts.page.goToStart}</a>
      </p>
    </>
  );
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

function Page({ session, offsetMs }: { session: SessionJson; offsetMs: number }) {
  const { path, query } = useLocation();
  const { status, say, fail, go } = useStatus(path);
  const preferences = usePreferences();
  const { zone } = preferences;
  const functions = useRef({ say, fail, go, now: () => Date.now() + offsetMs }).current;
  const page = useMemo(
    () => ({ session, api: api satisfies Api, zone, ...functions }),
    [session, zone, functions],
  );
  // A long view may have been scrolled.
  useLayoutEffect(() => scrollTo(0, 0), [path]);
  const usable = useMemo(
    () => views.filter(({ part, isOffered }) => hasPart(session, part) && (isOffered?.(session) ?? true)),
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
        {texts.page.skip}
      </a>
      <FrameHeader usable={usable} path={path} {...preferences} />
      <main id="main">
        {session.account !== undefined && <AccountBar account={session.account} />}
        <LiveRegion status={status} dismiss={() => say("")} />
        <CurrentView usable={usable} path={path} query={query} />
      </main>
    </PageContext.Provider>
  );
}

/** Reads the texts that the page names. The browser has them already, or reads them with this script. */
async function loadTexts(): Promise<void> {
  const { lang, dataset } = document.documentElement;
  const response = await fetch(new URL(dataset["texts"] ?? "", import.meta.url));
  chooseTexts(lang, await response.json());
}

const showFailure = (title: string, message: string): void =>
  render(
    <main>
      <h1>{title}</h1>
      <p role="alert" class="outcome failed">
        {message}
      </p>
    </main>,
    document.body,
  );

async function start(): Promise<void> {
  try {
    await loadTexts();
  } catch {
    const { title = "", error = "" } = document.documentElement.dataset;
    return showFailure(title, error);
  }
  try {
    const session = await api.get<SessionJson>("session");
    const offsetMs = Date.parse(session.now) - Date.now();
    render(<Page session={session} offsetMs={offsetMs} />, document.body);
  } catch (error) {
    showFailure(texts.page.cannotBeShown, getMessage(error));
  }
}

void start();
