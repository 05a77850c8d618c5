/** Asks for confirmation before an action that cannot be undone. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface Question {
  readonly title: string;
  readonly explanation: ComponentChildren;
  /** The label of the button that confirms. */
  readonly confirm: string;
}

function Confirmation({
  title,
  explanation,
  confirm,
  onAnswer,
}: Question & { readonly onAnswer: (isConfirmed: boolean) => void }) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => onAnswer(false)}>
      <h2 id={id}>{title}</h2>
      <p>{explanation}</p>
      <div class="row">
        <button type="button" class="danger" onClick={() => onAnswer(true)}>
          {confirm}
        </button>
        <button type="button" class="plain" autofocus onClick={() => onAnswer(false)}>
          Cancel
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
  const [asked, setAsked] = useState<Question & { readonly answer: (isConfirmed: boolean) => void }>();
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
