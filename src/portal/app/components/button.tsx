/** Buttons that run an action, menus of them, and the question before one that cannot be undone. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { Ellipsis } from "./icons.js";

/** How long a button is disabled after it has sent something, so that a second press does not send it twice. */
const COOLDOWN_MS = 2_000;

/**
 * Runs an action once at a time and announces its errors. `cooldownMs`: how long it then does nothing.
 */
export function useAction<A extends unknown[]>(
  act: (...parameters: A) => Promise<unknown>,
  cooldownMs = 0,
): [isRunning: boolean, run: (...parameters: A) => void, isCoolingDown: boolean] {
  const { fail } = usePage();
  const [isRunning, setRunning] = useState(false);
  const [isCoolingDown, setCoolingDown] = useState(false);
  // The state lags behind two clicks in a row.
  const isStarted = useRef(false);
  const run = (...parameters: A): void => {
    if (isStarted.current) return;
    isStarted.current = true;
    setRunning(true);
    act(...parameters)
      .catch(fail)
      .finally(() => {
        setRunning(false);
        setCoolingDown(cooldownMs > 0);
        const enable = (): void => {
          isStarted.current = false;
          setCoolingDown(false);
        };
        if (cooldownMs > 0) setTimeout(enable, cooldownMs);
        else enable();
      });
  };
  return [isRunning, run, isCoolingDown];
}

export interface ActionButtonProps {
  act: () => Promise<unknown>;
  kind?: "primary" | "plain" | "danger";
  /** Why the action is not possible now. The button stays focusable, so that this can be read. */
  disabledReason?: string | undefined;
  /** Keeps the button disabled for two seconds after its action, which sends something. */
  hasCooldown?: boolean;
  /** What is shown while the action runs. */
  busyLabel?: string | undefined;
  /** The name for screen readers, where the label alone does not say what it acts on. */
  label?: string | undefined;
  children: ComponentChildren;
}

/** A button that runs `act`. It stays disabled until the action has ended. */
export function ActionButton({
  act,
  kind = "plain",
  disabledReason,
  hasCooldown = false,
  busyLabel,
  label,
  children,
}: ActionButtonProps) {
  const [isRunning, run, isCoolingDown] = useAction(act, hasCooldown ? COOLDOWN_MS : 0);
  const id = useId();
  const isDisabled = isRunning || isCoolingDown || disabledReason !== undefined;
  return (
    <>
      <button
        type="button"
        class={kind}
        aria-disabled={isDisabled}
        aria-describedby={disabledReason === undefined ? undefined : id}
        aria-label={label}
        title={disabledReason}
        onClick={() => disabledReason === undefined && run()}
      >
        {isRunning ? (busyLabel ?? children) : children}
      </button>
      {disabledReason !== undefined && (
        <span id={id} class="reason">
          {disabledReason}
        </span>
      )}
    </>
  );
}

// Asks for confirmation before an action that cannot be undone.

interface Question {
  title: string;
  explanation: ComponentChildren;
  /** The label of the button that confirms. */
  confirm: string;
}

function Confirmation({
  title,
  explanation,
  confirm,
  onAnswer,
}: Question & { onAnswer: (isConfirmed: boolean) => void }) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const isConfirmed = useRef(false);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  /** A dialog that is closed gives the focus back; one that is only removed does not. */
  const answer = (confirmed: boolean): void => {
    isConfirmed.current = confirmed;
    dialog.current?.close();
  };
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => onAnswer(isConfirmed.current)}>
      <h2 id={id}>{title}</h2>
      <p>{explanation}</p>
      <div class="row">
        <button type="button" class="danger" onClick={() => answer(true)}>
          {confirm}
        </button>
        <button type="button" class="plain" autofocus onClick={() => answer(false)}>
          {texts.common.cancel}
        </button>
      </div>
    </dialog>
  );
}

/**
 * Returns a function that asks, and the element to render. The function resolves with true if the
 * visitor confirms. Leaving the view cancels.
 */
export function useConfirmation() {
  const [asked, setAsked] = useState<Question & { answer: (isConfirmed: boolean) => void }>();
  const ask = (question: Question): Promise<boolean> =>
    new Promise((resolve) => setAsked({ ...question, answer: resolve }));
  const element =
    asked === undefined ? null : (
      <Confirmation
        {...asked}
        onAnswer={(isConfirmed) => {
          setAsked(undefined);
          asked.answer(isConfirmed);
        }}
      />
    );
  return [ask, element] as const;
}

export interface MenuAction {
  text: string;
  /** Why it is not possible now. */
  disabledReason?: string | undefined;
  isDangerous?: boolean;
  act: () => unknown;
}

/** The place of the menu: a style sheet, because the page has no inline styles. */
const menuSheet = new CSSStyleSheet();

/** The items of a menu, in the top layer, so that no table cuts them off. */
function MenuList({
  label,
  items,
  anchor,
  onClose,
}: {
  label: string;
  items: MenuAction[];
  anchor: DOMRect;
  onClose: () => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  const [, run] = useAction(async (item: MenuAction) => item.act());
  useLayoutEffect(() => {
    const menu = list.current;
    if (menu === null) return undefined;
    menu.showPopover();
    const { width, height } = menu.getBoundingClientRect();
    const isBelow = anchor.bottom + height < innerHeight;
    const top = Math.max(0, isBelow ? anchor.bottom : anchor.top - height);
    const left = Math.max(0, Math.min(anchor.right, innerWidth) - width);
    // One menu is open at a time.
    menuSheet.replaceSync(`.action-menu { top: ${top}px; left: ${left}px }`);
    document.adoptedStyleSheets = [menuSheet];
    menu.querySelector<HTMLElement>("button")?.focus();
    const onToggle = (event: Event): void => {
      if ((event as ToggleEvent).newState === "closed") onClose();
    };
    menu.addEventListener("toggle", onToggle);
    // What it belongs to has moved away from it.
    const close = (): void => menu.hidePopover();
    addEventListener("scroll", close, { once: true, capture: true });
    return () => {
      menu.removeEventListener("toggle", onToggle);
      removeEventListener("scroll", close, { capture: true });
    };
  }, []);
  const move = (event: KeyboardEvent): void => {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const index = buttons.indexOf(document.activeElement as HTMLElement);
    const places: Record<string, number> = {
      ArrowDown: index + 1,
      ArrowUp: index - 1 + buttons.length,
      Home: 0,
      End: buttons.length - 1,
    };
    const place = places[event.key];
    // The focus goes back to the button, and from there on.
    if (event.key === "Tab") list.current?.hidePopover();
    if (place === undefined) return;
    event.preventDefault();
    buttons[place % buttons.length]?.focus();
  };
  return (
    <div ref={list} popover="auto" role="menu" aria-label={label} class="action-menu" onKeyDown={move}>
      {items.map((item) => (
        <button
          type="button"
          role="menuitem"
          key={item.text}
          tabIndex={-1}
          class={item.isDangerous ? "danger" : "plain"}
          aria-disabled={item.disabledReason !== undefined}
          title={item.disabledReason}
          onClick={() => {
            if (item.disabledReason !== undefined) return;
            list.current?.hidePopover();
            run(item);
          }}
        >
          {item.text}
        </button>
      ))}
    </div>
  );
}

/**
 * A button with a menu of further actions. Arrow keys, Home and End move in it; Escape and leaving
 * it close it.
 */
export function Menu({
  label,
  items,
  class: look = "bare small icon-only",
  children = <Ellipsis class="icon" aria-hidden="true" />,
}: {
  label: string;
  items: MenuAction[];
  class?: string;
  children?: ComponentChildren;
}) {
  const [anchor, setAnchor] = useState<DOMRect>();
  const button = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button
        ref={button}
        type="button"
        class={look}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={anchor !== undefined}
        onClick={() => setAnchor(button.current?.getBoundingClientRect())}
      >
        {children}
      </button>
      {anchor !== undefined && (
        <MenuList label={label} items={items} anchor={anchor} onClose={() => setAnchor(undefined)} />
      )}
    </>
  );
}
