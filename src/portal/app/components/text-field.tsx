/** A field for a line of text. */

import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { Field } from "./form.js";

type OwnAttributes = Pick<
  InputHTMLAttributes,
  "autocomplete" | "class" | "inputMode" | "maxLength" | "placeholder" | "size" | "step"
>;

/** Attributes that are not named here are those of the input. */
export function TextField({
  label,
  names = [],
  hint,
  onChange,
  type = "text",
  ...own
}: OwnAttributes & {
  readonly type?: "datetime-local" | "search" | "text" | "url";
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly names?: readonly string[];
  readonly hint?: ComponentChildren;
}) {
  return (
    <Field label={label} names={names} hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          {...own}
          // The types of Preact join each type of an input with its roles; there is no role here.
          type={type as "text"}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
