/** A field for a time of 24 hours in the zone of the page. */

import { usePage } from "../page-context.js";
import { fromTimeInput, nameZone, TIME_INPUT_LENGTH, type Zone } from "../times.js";
import { FieldError } from "./form.js";
import { TextField } from "./text-field.js";

/** Reads a time field. Throws a FieldError for a text that is no time. */
export function readTimeField(name: string, text: string, zone: Zone): string | undefined {
  const read = fromTimeInput(text, zone);
  if (read === null) throw new FieldError(name, "Write the time like 2026-11-22 14:05.");
  return read;
}

export function TimeField({
  label,
  name,
  value,
  onChange,
  hint,
}: {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string;
}) {
  const { zone } = usePage();
  return (
    <TextField
      label={`${label} (${nameZone(zone)})`}
      names={[name]}
      hint={hint}
      inputMode="numeric"
      autocomplete="off"
      placeholder="2026-11-22 14:05"
      maxLength={TIME_INPUT_LENGTH}
      size={17}
      value={value}
      onChange={onChange}
    />
  );
}
