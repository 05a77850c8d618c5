/** The fields of a record: their inputs, and their texts as they are read and sent. */

import type { RecordJson } from "../../content-shapes.js";
import { Field, SelectField, TextField } from "../components/form.js";
import { type FieldName, labelStatus } from "./kinds.js";

/** The texts of fields, by their names. */
export type FieldTexts = { readonly [name in FieldName]?: string };

export const LABELS: Readonly<Record<FieldName, string>> = {
  title: "Title",
  content: "Content",
  excerpt: "Excerpt",
  status: "Status",
  date: "Date",
  slug: "Slug",
  alt_text: "Alternative text",
  caption: "Caption",
  description: "Description",
};

const HINTS: FieldTexts = {
  date: "The site’s time. A published post with a future date is scheduled.",
  slug: "The last part of the address. Leave it empty to derive it from the title.",
  alt_text: "A description for people who cannot see the picture.",
};

/** Fields of several lines, with their heights. */
const ROWS: { readonly [name in FieldName]?: number } = {
  content: 18,
  excerpt: 3,
  caption: 3,
  description: 5,
};

export const mayPublish = ({ _links }: RecordJson): boolean => _links?.["wp:action-publish"] !== undefined;

function getStatusOptions(record: RecordJson): readonly (readonly [status: string, label: string])[] {
  const usual = ["draft", "pending", ...(mayPublish(record) ? ["publish", "future", "private"] : [])];
  const all = usual.includes(record.status) ? usual : [...usual, record.status];
  return all.map((status) => [status, labelStatus(status)]);
}

/** Returns the text of a field as its input shows it: a date without seconds if they are 0. */
export function readFieldText(record: RecordJson, name: FieldName): string {
  const value = record[name] ?? "";
  const text = typeof value === "string" ? value : (value.raw ?? "");
  return name === "date" && text.endsWith(":00") ? text.slice(0, -3) : text;
}

/** Returns those of the typed texts that differ from the record. */
export const getChanges = (record: RecordJson, typed: FieldTexts): FieldTexts =>
  Object.fromEntries(
    Object.entries(typed).filter(([name, text]) => text !== readFieldText(record, name as FieldName)),
  );

/**
 * Returns the body of a request that saves `texts`. The API needs the seconds of a date, which the
 * input omits if they are 0; an empty date becomes null, which lets the service choose.
 */
export function toRequestBody({ date, ...texts }: FieldTexts): object {
  if (date === undefined) return texts;
  if (date === "") return { ...texts, date: null };
  return { ...texts, date: date.length === 16 ? `${date}:00` : date };
}

export function RecordFieldInput({
  name,
  value,
  onChange,
  record,
}: {
  readonly name: FieldName;
  readonly value: string;
  readonly onChange: (text: string) => void;
  /** Absent for a new record, whose status is not chosen. */
  readonly record?: RecordJson;
}) {
  const shared = { label: LABELS[name], names: [name], hint: HINTS[name] };
  if (name === "status" && record !== undefined)
    return <SelectField {...shared} value={value} onChange={onChange} options={getStatusOptions(record)} />;
  const rows = ROWS[name];
  const type = name === "date" ? ({ type: "datetime-local", step: 1 } as const) : { class: "wide" };
  if (rows === undefined) return <TextField {...shared} {...type} value={value} onChange={onChange} />;
  return (
    <Field {...shared}>
      {(attributes) => (
        <textarea
          {...attributes}
          rows={rows}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
