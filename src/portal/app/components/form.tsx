/** Forms: fields with their errors, and the button that sends them. */

import { type ComponentChildren, createContext, type InputHTMLAttributes } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, getFieldName } from "../api.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { fromTimeInput, nameZone, TIME_INPUT_LENGTH, type Zone } from "../times.js";
import { useAction } from "./button.js";

/** Thrown by the action of a form for what the visitor typed. */
export class FieldError extends Error {
  override name = "FieldError";
  field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

interface FormProblem {
  /** The field at fault, as the API names it. */
  field: string;
  message: string;
  /** The message of the API, in English, if `message` is in another language. */
  detail?: string | undefined;
}

interface FormState {
  problem: FormProblem | undefined;
  /** A field registers its names here, so that its errors are shown next to it. */
  names: Set<string>;
  isRunning: boolean;
  run: (act: () => Promise<unknown>) => void;
}

const FormContext = createContext<FormState>({
  problem: undefined,
  names: new Set(),
  isRunning: false,
  run: () => {},
});

const fieldOf = (error: unknown): string | undefined =>
  (error instanceof ApiError || error instanceof FieldError) && error.field !== undefined
    ? getFieldName(error.field)
    : undefined;

/**
 * A form. An error of one of its fields is shown beside the field, which takes the focus. Other
 * errors are announced.
 */
export function Form({
  act,
  submit,
  label,
  isRow = false,
  disabledReason,
  kind = "primary",
  more,
  children,
}: {
  act: () => Promise<unknown>;
  /** The label of its button. */
  submit: string;
  /** Its name for screen readers. */
  label: string;
  /** Puts the fields into one row. */
  isRow?: boolean;
  disabledReason?: string | undefined;
  kind?: "primary" | "plain" | "danger";
  /** Further buttons, which stand behind the first one. */
  more?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { say } = usePage();
  const [problem, setProblem] = useState<FormProblem>();
  const names = useRef(new Set<string>()).current;
  const reasonId = useId();
  const [isRunning, run] = useAction(async (asked: () => Promise<unknown>) => {
    setProblem(undefined);
    say("");
    try {
      await asked();
    } catch (error) {
      const field = fieldOf(error);
      if (field === undefined || !names.has(field)) throw error;
      if (error instanceof ApiError) setProblem({ field, message: error.message, detail: error.detail });
      else if (error instanceof FieldError) setProblem({ field, message: error.message });
    }
  });
  return (
    <FormContext.Provider value={{ problem, names, isRunning, run }}>
      <form
        noValidate
        class={isRow ? "row" : undefined}
        aria-label={label}
        onSubmit={(event) => {
          event.preventDefault();
          if (disabledReason === undefined) run(act);
        }}
      >
        {children}
        <button
          type="submit"
          class={kind}
          aria-disabled={isRunning || disabledReason !== undefined}
          aria-describedby={disabledReason === undefined ? undefined : reasonId}
        >
          {submit}
        </button>
        {more}
        {disabledReason !== undefined && (
          <span id={reasonId} class="reason">
            {disabledReason}
          </span>
        )}
      </form>
    </FormContext.Provider>
  );
}

/** A further button of a form. The errors of its action are shown like those of the form. */
export function FormButton({
  act,
  kind = "plain",
  children,
}: {
  act: () => Promise<unknown>;
  kind?: "primary" | "plain" | "danger";
  children: ComponentChildren;
}) {
  const { isRunning, run } = useContext(FormContext);
  return (
    <button type="button" class={kind} aria-disabled={isRunning} onClick={() => run(act)}>
      {children}
    </button>
  );
}

/** What the input of a field must carry, so that its label, hint and error belong to it. */
export interface InputAttributes {
  id: string;
  "aria-describedby": string;
  "aria-invalid"?: true;
}

/** Returns the error of a field if it has one, and registers the field with its form. */
export function useFieldProblem(names: string[]): FormProblem | undefined {
  const form = useContext(FormContext);
  for (const name of names) form.names.add(name);
  return form.problem !== undefined && names.includes(form.problem.field) ? form.problem : undefined;
}

/** Shows the error of a field, with what the API says of it if that is in another language. */
export function FieldProblem({
  id,
  problem,
  role,
}: {
  id: string;
  problem: FormProblem | undefined;
  role?: "alert";
}) {
  return (
    <p class="problem" id={id} hidden={problem === undefined} role={role}>
      {problem?.message}
      {problem?.detail !== undefined && (
        <span class="detail" lang="en">
          {problem.detail}
        </span>
      )}
    </p>
  );
}

/** A label with its input, its hint and its error. */
export function Field({
  label,
  names = [],
  hint,
  children,
}: {
  label: string;
  /** The names that the API and the form use for the field. */
  names?: string[];
  hint?: ComponentChildren;
  children: (attributes: InputAttributes) => ComponentChildren;
}) {
  const id = useId();
  const problem = useFieldProblem(names);
  useEffect(() => {
    if (problem !== undefined) document.getElementById(id)?.focus();
  }, [problem, id]);
  const attributes: InputAttributes = {
    id,
    "aria-describedby": hint === undefined ? `${id}-problem` : `${id}-hint ${id}-problem`,
    ...(problem !== undefined && { "aria-invalid": true }),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(attributes)}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <FieldProblem id={`${id}-problem`} problem={problem} />
    </div>
  );
}

/** A field with a list of choices. */
export function SelectField({
  label,
  value,
  onChange,
  options,
  names = [],
  hint,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [value: string, label: string])[];
  names?: string[];
  hint?: ComponentChildren;
}) {
  return (
    <Field label={label} names={names} hint={hint}>
      {(attributes) => (
        <select {...attributes} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

type PlainAttributes = Pick<
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
  ...inputAttributes
}: PlainAttributes & {
  type?: "datetime-local" | "search" | "text" | "url";
  label: string;
  value: string;
  onChange: (value: string) => void;
  names?: string[];
  hint?: ComponentChildren;
}) {
  return (
    <Field label={label} names={names} hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          {...inputAttributes}
          // The types of Preact join each type of an input with its roles; there is no role here.
          type={type as "text"}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Reads a time field. Throws a FieldError for a text that is no time. */
export function readTimeField(name: string, text: string, zone: Zone): string | undefined {
  const read = fromTimeInput(text, zone);
  if (read === null) throw new FieldError(name, texts.parts.writeTime);
  return read;
}

export function TimeField({
  label,
  name,
  value,
  onChange,
  hint,
}: {
  label: string;
  name: string;
  value: string;
  onChange: (value: string) => void;
  hint?: string;
}) {
  const { zone } = usePage();
  return (
    <TextField
      label={texts.parts.withZone({ label, zone: nameZone(zone) })}
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
