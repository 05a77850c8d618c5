/** Small parts of views: facts, times, badges, copying, problems. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatExactTime, formatRelativeTime, formatTime } from "../times.js";
import type { Tone } from "../tone.js";
import type { ReadFailure } from "../use-resource.js";
import { ActionButton } from "./button.js";
import { Check, Copy, RotateCcw } from "./icons.js";
import { announce } from "./live.js";

/** A list of terms with their values. Rows without a value are left out. */
export function Facts({ rows }: { rows: [term: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A time relative to now, with the exact time as its title. */
export function RelativeTime({ at }: { at: string }) {
  const { now, zone } = usePage();
  return (
    <time dateTime={at} title={formatExactTime(at, zone)}>
      {formatRelativeTime(at, now())}
    </time>
  );
}

/** A time of day, with the exact time as its title. */
export function Time({ at }: { at: string }) {
  const { zone } = usePage();
  return (
    <time dateTime={at} title={formatExactTime(at, zone)}>
      {formatTime(at, zone)}
    </time>
  );
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/**
 * Returns a function that copies a text, says so, and resolves with true. Without the permission to
 * do so, it says that, and the visitor copies by hand. `label`: what is copied, such as `event ID`.
 * `tell`: says that it was copied. Default: on the page.
 */
export function useCopy(tell?: (text: string) => void): (text: string, label: string) => Promise<boolean> {
  const { say } = usePage();
  return async (text, label) => {
    try {
      await navigator.clipboard.writeText(text);
      (tell ?? say)(texts.common.copied({ label }));
      return true;
    } catch {
      // No permission, or no HTTPS.
      say(texts.common.copyRefused({ label }), "failed");
      return false;
    }
  };
}

/** Copies a text. */
export function CopyButton({
  text,
  label,
  children,
}: {
  text: string;
  /** What is copied: `secret`, `event ID`. */
  label: string;
  /** A text behind the icon. */
  children?: ComponentChildren;
}) {
  // Its icon shows it.
  const copy = useCopy(announce);
  const [isCopied, setCopied] = useState(false);
  const act = async (): Promise<void> => {
    if (!(await copy(text, label))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  const name = texts.common.copy({ label });
  return (
    <button
      type="button"
      class={children === undefined ? "bare small icon-only" : "plain small"}
      aria-label={children === undefined ? name : undefined}
      title={name}
      onClick={() => void act()}
    >
      {isCopied ? <Check /> : <Copy />}
      {children}
    </button>
  );
}

/** A text of several lines, with a button that copies it. */
export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is too wide. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

/** What is shown in place of a view that could not be read, with a button that tries again. */
export function ErrorMessage({ error: { cause, retry } }: { error: ReadFailure }) {
  const element = useRef<HTMLDivElement>(null);
  // The button goes once the view was read; whoever pressed it goes on at the heading.
  useLayoutEffect(
    () => () => {
      if (element.current?.contains(document.activeElement)) document.querySelector("h1")?.focus();
    },
    [],
  );
  return (
    <div role="alert" class="outcome failed" ref={element}>
      <p>{getMessage(cause)}</p>
      <ActionButton act={retry} busyLabel={texts.common.reading}>
        <RotateCcw /> {texts.common.retry}
      </ActionButton>
    </div>
  );
}

/** What is shown until a view was read: the shape of a table. It appears if that takes a moment. */
export const Loading = ({ lines = 5 }: { lines?: number }) => (
  <div class="skeleton">
    <p class="unseen">{texts.common.loading}</p>
    {Array.from({ length: lines }, (_, index) => (
      <div key={index} />
    ))}
  </div>
);

/** Returns the message for a visitor about something thrown. */
export const getMessage = (error: unknown): string =>
  error instanceof ApiError ? error.message : texts.page.somethingWrong;

/** True for requests that were aborted because the view was left. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";

let isFirst = true;

/**
 * Shows the heading and sets the title of the document. Once the visitor has moved to another view,
 * the heading takes the focus if nothing else has it, so that screen readers begin there.
 */
export function Heading({
  title,
  part,
  children,
}: {
  title: string;
  /** The tab that is shown, which the title of the document begins with. */
  part?: string;
  /** What is shown in place of the title. */
  children?: ComponentChildren;
}) {
  const { session } = usePage();
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = [part, title, session.title].filter(Boolean).join(" – ");
  }, [part, title, session.title]);
  useEffect(() => {
    if (!isFirst && document.activeElement === document.body) element.current?.focus();
    isFirst = false;
  }, []);
  return (
    <h1 tabIndex={-1} ref={element}>
      {children ?? title}
    </h1>
  );
}
