/** Buttons that run an action. */

import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { usePage } from "../page-context.js";

/** Runs an action once at a time and announces its errors. */
export function useAction<A extends readonly unknown[]>(
  act: (...given: A) => Promise<unknown>,
): readonly [isRunning: boolean, run: (...given: A) => void] {
  const { fail } = usePage();
  const [isRunning, setRunning] = useState(false);
  // The state lags behind two clicks in a row.
  const isStarted = useRef(false);
  const run = (...given: A): void => {
    if (isStarted.current) return;
    isStarted.current = true;
    setRunning(true);
    act(...given)
      .catch(fail)
      .finally(() => {
        isStarted.current = false;
        setRunning(false);
      });
  };
  return [isRunning, run];
}

export interface ActionButtonProps {
  readonly act: () => Promise<unknown>;
  readonly kind?: "primary" | "plain" | "danger";
  /** Why the action is not possible now. The button stays focusable, so that this can be read. */
  readonly disabledReason?: string | undefined;
  /** What is shown while the action runs. */
  readonly busyLabel?: string | undefined;
  /** The name for screen readers, where the label alone does not say what it acts on. */
  readonly label?: string | undefined;
  readonly children: ComponentChildren;
}

/** A button that runs `act`. It stays disabled until the action has ended. */
export function ActionButton({
  act,
  kind = "plain",
  disabledReason,
  busyLabel,
  label,
  children,
}: ActionButtonProps) {
  const [isRunning, run] = useAction(act);
  const id = useId();
  const isDisabled = isRunning || disabledReason !== undefined;
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
