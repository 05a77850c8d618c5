/** The frame of the page: its header, navigation and the preferences of the visitor. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Clock, Menu, Monitor, Moon, Sun, X } from "./components/icons.js";
import { JumpBox } from "./jump.js";
import { usePage } from "./page-context.js";
import { texts } from "./texts.js";
import { nameZone, type Zone } from "./times.js";
import type { View } from "./view.js";

/** Colours: those of the system, or always the same. */
export type Theme = "system" | "light" | "dark";

const ZONE_KEY = "postbell-zone";
const THEME_KEY = "postbell-theme";

const isZone = (text: unknown): text is Zone => text === "local" || text === "UTC";
const isTheme = (text: unknown): text is Theme => text === "system" || text === "light" || text === "dark";

/** Returns a choice that this browser keeps, if it does. */
function usePreference<T extends string>(
  key: string,
  isValid: (text: unknown) => text is T,
  otherwise: T,
): [T, (choice: T) => void] {
  const [choice, setChoice] = useState<T>(() => {
    try {
      const stored = localStorage.getItem(key);
      return isValid(stored) ? stored : otherwise;
    } catch {
      // A browser may refuse storage to a page in a frame.
      return otherwise;
    }
  });
  const choose = (next: T): void => {
    setChoice(next);
    try {
      localStorage.setItem(key, next);
    } catch {
      // As above: then the choice holds for this page only.
    }
  };
  return [choice, choose];
}

export interface Preferences {
  zone: Zone;
  setZone: (zone: Zone) => void;
  theme: Theme;
  setTheme: (theme: Theme) => void;
}

/** Returns the preferences of the visitor, and gives the page its colours. */
export function usePreferences(): Preferences {
  const [zone, setZone] = usePreference(ZONE_KEY, isZone, "local");
  const [theme, setTheme] = usePreference(THEME_KEY, isTheme, "system");
  // Before the page is painted: the other colours would flash.
  useLayoutEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return { zone, setZone, theme, setTheme };
}

const COUNT_MS = 60_000;

/** Reads how much needs attention, now and every minute while the page is visible. */
function useCount({ readCount }: View): number {
  const { api } = usePage();
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (readCount === undefined) return undefined;
    const left = new AbortController();
    const refresh = (): void => {
      if (document.visibilityState !== "visible") return;
      // A view announces that the server cannot be reached; here the last count stays.
      readCount(api.within(left.signal)).then(setCount, () => {});
    };
    refresh();
    const timer = setInterval(refresh, COUNT_MS);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }, [api, readCount]);
  return count;
}

const isBelow = (path: string, target: string): boolean => path.startsWith(`${target}/`);

function NavigationLink({ view, path }: { view: View; path: string }) {
  const { path: target, icon: Icon } = view;
  const count = useCount(view);
  return (
    <li>
      <a
        href={`#${target}`}
        aria-current={path === target ? "page" : isBelow(path, target) ? "true" : undefined}
      >
        {Icon !== undefined && <Icon />}
        {view.label?.()}
        {count > 0 && (
          <span class="badge bad">
            {count}
            <span class="unseen">{texts.frame.needAttention}</span>
          </span>
        )}
      </a>
    </li>
  );
}

interface SideProps extends Preferences {
  usable: View[];
  path: string;
}

const THEME_ICONS: Record<Theme, typeof Monitor> = { system: Monitor, light: Sun, dark: Moon };

/** Navigation, preferences and the visitor's name. */
function Side({ usable, path, zone, setZone, theme, setTheme }: SideProps) {
  const { session } = usePage();
  const labelled = usable.filter(({ label }) => label !== undefined);
  const content = labelled.filter(({ part }) => part === "content");
  const webhooks = labelled.filter(({ part }) => part !== "content");
  const isContent = content.some(({ path: target }) => path === target || isBelow(path, target));
  const ThemeIcon = THEME_ICONS[theme];
  return (
    <div class="side">
      <nav aria-label={texts.frame.parts}>
        {[webhooks, content].map(
          (views, index) =>
            views.length > 0 && (
              <>
                {index > 0 && webhooks.length > 0 && <h2>{texts.frame.content}</h2>}
                <ul>
                  {views.map((view) => (
                    <NavigationLink key={view.path} view={view} path={path} />
                  ))}
                </ul>
              </>
            ),
        )}
      </nav>
      <div class="preferences">
        {/* Content has the site's times. */}
        {session.parts.webhooks && !isContent && nameZone("local") !== "UTC" && (
          <label>
            <Clock />
            <select
              aria-label={texts.frame.timeZone}
              value={zone}
              onChange={({ currentTarget: { value } }) => isZone(value) && setZone(value)}
            >
              <option value="UTC">UTC</option>
              <option value="local">{nameZone("local")}</option>
            </select>
          </label>
        )}
        <label>
          <ThemeIcon />
          <select
            aria-label={texts.frame.colours}
            value={theme}
            onChange={({ currentTarget: { value } }) => isTheme(value) && setTheme(value)}
          >
            {(["system", "light", "dark"] as const).map((name) => (
              <option key={name} value={name}>
                {texts.frame[name]}
              </option>
            ))}
          </select>
        </label>
        {session.name !== "" && <p>{texts.frame.signedInAs({ name: session.name })}</p>}
      </div>
    </div>
  );
}

function MenuDialog({ onClose, ...side }: SideProps & { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const { path } = side;
  const opened = useRef(path).current;
  useEffect(() => {
    if (path !== opened) onClose();
  }, [path, opened, onClose]);
  return (
    <dialog ref={dialog} class="frame-menu" aria-label={texts.frame.menu} onClose={onClose}>
      <button type="button" class="bare icon-only" aria-label={texts.frame.closeMenu} onClick={onClose}>
        <X />
      </button>
      <Side {...side} />
    </dialog>
  );
}

/** The header: a sidebar on wide screens, a bar with a menu on narrow ones. */
export function FrameHeader(side: SideProps) {
  const { session } = usePage();
  const [isMenuOpen, setMenuOpen] = useState(false);
  return (
    <header class="frame-header">
      <p class="brand">
        {session.logo !== null && <img src={session.logo} alt="" class="logo" />}
        {session.title}
      </p>
      <JumpBox usable={side.usable} />
      <button
        type="button"
        class="bare icon-only menu-button"
        aria-label={texts.frame.menu}
        aria-haspopup="dialog"
        onClick={() => setMenuOpen(true)}
      >
        <Menu />
      </button>
      <Side {...side} />
      {isMenuOpen && <MenuDialog {...side} onClose={() => setMenuOpen(false)} />}
    </header>
  );
}
