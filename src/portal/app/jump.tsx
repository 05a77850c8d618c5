/** The jump box: goes to a view, an endpoint, or the deliveries of an event, by keyboard alone. */

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Search, X } from "./components/icons.js";
import { usePage } from "./page-context.js";
import { texts } from "./texts.js";
import type { Target } from "./tone.js";
import type { View } from "./view.js";

const MAX_TYPED = 200;
/** So many results can be looked through; more are found by typing more. */
const MAX_SHOWN = 12;

interface Found extends Target {
  view: View;
}

/** Returns what matches every word of the text, then the views that can search for it. */
function findTargets(usable: View[], loaded: Found[], text: string): Found[] {
  const typed = text.trim();
  const words = typed.toLowerCase().split(/\s+/);
  const views = usable.flatMap((view): Found[] =>
    view.label === undefined ? [] : [{ view, label: view.label(), path: view.path }],
  );
  const matching = [...views, ...loaded].filter(({ label, detail = "" }) => {
    const name = `${label} ${detail}`.toLowerCase();
    return words.every((word) => name.includes(word));
  });
  const searches = usable.flatMap((view): Found[] =>
    typed === "" || view.label === undefined || view.searchPath === undefined
      ? []
      : [
          {
            view,
            label: texts.jump.search({ view: view.label(), text: typed }),
            path: view.searchPath(typed),
          },
        ],
  );
  return [...matching.slice(0, MAX_SHOWN - searches.length), ...searches];
}

/** Reads the targets of all views once; `undefined` until they were read. */
function useTargets(usable: View[]): [loaded: Found[] | undefined, failed: boolean] {
  const { api } = usePage();
  const [loaded, setLoaded] = useState<Found[]>();
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    const closed = new AbortController();
    const reads = usable.map(async (view): Promise<Found[]> => {
      const targets = (await view.readTargets?.(api.within(closed.signal))) ?? [];
      return targets.map((target) => ({ ...target, view }));
    });
    Promise.all(reads).then(
      (found) => setLoaded(found.flat()),
      () => setFailed(!closed.signal.aborted),
    );
    return () => closed.abort();
  }, [api, usable]);
  return [loaded, hasFailed];
}

function goTo(path: string): void {
  // The heading of the new view takes the focus if nothing else has it.
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  if (location.hash === `#${path}`) document.querySelector("h1")?.focus();
  else location.hash = path;
}

function Result({
  found,
  id,
  isActive,
  choose,
  point,
}: {
  found: Found;
  id: string;
  isActive: boolean;
  choose: () => void;
  point: () => void;
}) {
  const { icon: Icon } = found.view;
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isActive) element.current?.scrollIntoView({ block: "nearest" });
  }, [isActive]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox has the keys.
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox.
    <div role="option" id={id} aria-selected={isActive} ref={element} onClick={choose} onMouseMove={point}>
      {Icon !== undefined && <Icon />}
      <span>{found.label}</span>
      {found.detail !== undefined && <span class="quiet small">{found.detail}</span>}
    </div>
  );
}

function JumpDialog({ usable, onClose }: { usable: View[]; onClose: () => void }) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const [loaded, hasFailed] = useTargets(usable);
  useEffect(() => dialog.current?.showModal(), []);
  const found = findTargets(usable, loaded ?? [], text);
  const count = found.length;
  const choose = (target: Found | undefined): void => {
    if (target === undefined) return;
    dialog.current?.close();
    goTo(target.path);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === "Enter") choose(found[active]);
    else if (event.key === "ArrowDown") setActive(count === 0 ? 0 : (active + 1) % count);
    else if (event.key === "ArrowUp") setActive(count === 0 ? 0 : (active + count - 1) % count);
    else return;
    event.preventDefault();
  };
  const isReading = loaded === undefined && !hasFailed;
  const summary = count === 0 ? texts.jump.nothing : texts.jump.resultCount({ count });
  return (
    <dialog ref={dialog} class="jump" aria-label={texts.jump.title} onClose={onClose}>
      <div class="jump-input">
        <Search />
        <input
          type="text"
          role="combobox"
          autofocus
          autocomplete="off"
          spellcheck={false}
          maxLength={MAX_TYPED}
          placeholder={texts.jump.placeholder}
          aria-label={texts.jump.label}
          aria-autocomplete="list"
          aria-expanded={count > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={count > 0 ? `${id}-${active}` : undefined}
          value={text}
          onInput={({ currentTarget: { value } }) => {
            setText(value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
        />
        <button
          type="button"
          class="bare icon-only"
          aria-label={texts.common.close}
          onClick={() => dialog.current?.close()}
        >
          <X />
        </button>
      </div>
      <div role="listbox" id={`${id}-list`} aria-label={texts.jump.results}>
        {found.map((target, index) => (
          <Result
            key={target.path}
            found={target}
            id={`${id}-${index}`}
            isActive={index === active}
            choose={() => choose(target)}
            point={() => setActive(index)}
          />
        ))}
      </div>
      {/* The region of the page cannot be heard while the dialog is open. */}
      <p role="status" class={count === 0 || hasFailed ? "quiet small" : "unseen"}>
        {hasFailed ? texts.jump.noEndpoints : ""}
        {isReading ? "" : summary}
      </p>
    </dialog>
  );
}

const isMac = /^Mac|^iP/.test(navigator.platform);

/** A button that opens the jump box, as Ctrl K and Cmd K do. */
export function JumpBox({ usable }: { usable: View[] }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const isShortcut = (isMac ? event.metaKey : event.ctrlKey) && event.key.toLowerCase() === "k";
      if (!isShortcut || event.shiftKey || event.altKey || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setOpen(true);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <>
      <button
        type="button"
        class="plain jump-button"
        aria-haspopup="dialog"
        aria-keyshortcuts={isMac ? "Meta+K" : "Control+K"}
        onClick={() => setOpen(true)}
      >
        <Search />
        <span class="jump-label">{texts.jump.open}</span>
        <span class="keys" aria-hidden="true">
          {isMac ? "⌘ K" : "Ctrl K"}
        </span>
      </button>
      {isOpen && <JumpDialog usable={usable} onClose={() => setOpen(false)} />}
    </>
  );
}
