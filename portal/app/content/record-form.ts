/** The fields of a record: their inputs, and what the visitor has typed into them. */

import type { RecordJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";
import { h } from "../dom.js";
import { type FormField, field } from "../forms.js";
import { type FieldName, type Kind, statusWord } from "./kinds.js";

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

type RecordField = FormField & { readonly input: Input };

/** The texts of fields, by their names. */
export type FieldTexts = { [name in FieldName]?: string };

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

const HINTS: { readonly [name in FieldName]?: string } = {
  date: "The site’s time. A published post with a future date is scheduled.",
  slug: "The last part of the address. Leave it empty to derive it from the title.",
  alt_text: "A description for people who cannot see the picture.",
};

const ROWS: { readonly [name in FieldName]?: number } = {
  content: 18,
  excerpt: 3,
  caption: 3,
  description: 5,
};

export const mayPublish = ({ _links }: RecordJson): boolean => _links?.["wp:action-publish"] !== undefined;

function statusOptions(record: RecordJson): readonly string[] {
  const own = ["draft", "pending", ...(mayPublish(record) ? ["publish", "future", "private"] : [])];
  return own.includes(record.status) ? own : [...own, record.status];
}

function createInput(name: FieldName, record: RecordJson | undefined): Input {
  const rows = ROWS[name];
  if (name === "status" && record)
    return h(
      "select",
      {},
      statusOptions(record).map((value) => h("option", { value }, statusWord(value))),
    );
  if (rows !== undefined) return h("textarea", { rows });
  return h("input", name === "date" ? { type: "datetime-local", step: 1 } : { type: "text", class: "wide" });
}

/** Creates the input of a field with its label. `record` is absent for a record that is new. */
export function createRecordField(name: FieldName, record: RecordJson | undefined): RecordField {
  const input = createInput(name, record);
  input.name = name;
  return { ...field(LABELS[name], input, HINTS[name]), input };
}

/** Returns the text of a field as it is stored. */
export function readFieldText(record: RecordJson, name: FieldName): string {
  const value = record[name] ?? "";
  return typeof value === "string" ? value : (value.raw ?? "");
}

/**
 * Returns the body of a request that saves `texts`. The API needs the seconds of a date, which the
 * input omits if they are 0; an empty date becomes null, which lets the service choose.
 */
export function toRequestBody({ date, ...texts }: FieldTexts): object {
  if (date === undefined) return texts;
  if (date === "") return { ...texts, date: null };
  return { ...texts, date: date.length === 16 ? `${date}:00` : date };
}

/** Creates the fields of `record`, with `typed` typed into them. */
export function createRecordForm(kind: Kind, record: RecordJson, typed: FieldTexts) {
  const fields = new Map(kind.fields.map((name) => [name, createRecordField(name, record)]));
  /** The text of each field as it was read or saved. */
  const base: FieldTexts = {};
  const setBase = (name: FieldName, input: Input, from: RecordJson): void => {
    input.value = readFieldText(from, name);
    // Read back from the input, which writes a date without its seconds.
    base[name] = input.value;
  };
  for (const [name, { input }] of fields) {
    setBase(name, input, record);
    input.value = typed[name] ?? input.value;
  }

  return {
    base,
    elements: [...fields.values()].map(({ element }) => element),
    /** Returns the fields that differ from the record. */
    changes: (): FieldTexts =>
      Object.fromEntries(
        [...fields].flatMap(([name, { input }]) => (input.value === base[name] ? [] : [[name, input.value]])),
      ),
    texts: (): FieldTexts => Object.fromEntries([...fields].map(([name, { input }]) => [name, input.value])),
    clearProblems(): void {
      for (const { problem } of fields.values()) problem("");
    },
    /** Shows an error next to its field and focuses it. Returns false if it is about no field. */
    showProblem(error: unknown): boolean {
      if (!(error instanceof ApiError) || error.field === undefined) return false;
      const found = fields.get(error.field as FieldName);
      found?.problem(error.message);
      found?.focus();
      return found !== undefined;
    },
    /** Takes over a saved record, except where the visitor typed on while it was being saved. */
    accept(saved: RecordJson, before: FieldTexts): void {
      for (const [name, { input }] of fields) {
        const now = input.value;
        setBase(name, input, saved);
        if (now !== before[name]) input.value = now;
      }
    },
  };
}

export type RecordForm = ReturnType<typeof createRecordForm>;
