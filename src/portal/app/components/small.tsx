/** Small parts of views: facts, times, badges, tabs, copying, problems. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api.js";
import { usePage } from "../page-context.js";
import { formatExactTime, formatRelativeTime, formatTime } from "../times.js";

/** The meaning of a badge, which decides its colour. */
export type Tone = "good" | "bad" | "warn" | "info" | "neutral";

/** A list of terms with their values. Rows without a value are left out. */
export function Facts({
  rows,
}: {
  readonly rows: readonly (readonly [term: string, value: ComponentChildren])[];
}) {
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
export function RelativeTime({ at }: { readonly at: string }) {
  const { now, zone } = usePage();
  return (
    <time dateTime={at} title={formatExactTime(at, zone)}>
      {formatRelativeTime(at, now())}
    </time>
  );
}

/** A time of day, with the exact time as its title. */
export function Time({ at }: { readonly at: string }) {
  const { zone } = usePage();
  return (
    <time dateTime={at} title={formatExactTime(at, zone)}>
      {formatTime(at, zone)}
    </time>
  );
}

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Links to the parts of one thing. Each part has an address of its own. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  readonly label: string;
  readonly tabs: readonly (readonly [path: string, text: string])[];
  readonly current: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([path, text]) => (
        <a key={path} href={`#${path}`} aria-current={path === current ? "page" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

/** Copies a text. Without the permission to do so, it says so, and the visitor copies by hand. */
export function CopyButton({
  text,
  label,
  children = "Copy",
}: {
  readonly text: string;
  /** What is copied: `secret`, `event ID`. */
  readonly label: string;
  readonly children?: ComponentChildren;
}) {
  const { say } = usePage();
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
      say(`The ${label} was copied.`);
    } catch {
      // No permission, or no HTTPS.
      say(`This browser did not allow copying: select the ${label} and copy it with the keyboard.`, "failed");
    }
  };
  return (
    <button type="button" class="plain small" aria-label={`Copy the ${label}`} onClick={() => void copy()}>
      {isCopied ? "Copied" : children}
    </button>
  );
}

/** A text of several lines, with a button that copies it. */
export function CodeBlock({ text, label }: { readonly text: string; readonly label: string }) {
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

/** What is shown in place of a view that could not be read. */
export function ErrorMessage({ error }: { readonly error: unknown }) {
  return (
    <p role="alert" class="outcome failed">
      {getMessage(error)}
    </p>
  );
}

/** What is shown until a view has been read. */
export const Loading = () => <p class="quiet">Loading …</p>;

/** Returns the message for a visitor about something thrown. */
export const getMessage = (error: unknown): string =>
  error instanceof ApiError ? error.message : "Something went wrong on this page; reload it.";

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
  readonly title: string;
  /** The tab that is shown, which the title of the document begins with. */
  readonly part?: string;
  /** What is shown in place of the title. */
  readonly children?: ComponentChildren;
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
