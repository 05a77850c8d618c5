/** The heading of a view. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { usePage } from "../page-context.js";

let isFirst = true;

/**
 * Shows the heading and sets the title of the document. Once the visitor has moved to another view,
 * the heading takes the focus if nothing else has it, so that screen readers begin there.
 */
export function Heading({
  title,
  children,
}: {
  readonly title: string;
  /** What is shown in place of the title. */
  readonly children?: ComponentChildren;
}) {
  const { session } = usePage();
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – ${session.title}`;
  }, [title, session.title]);
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
