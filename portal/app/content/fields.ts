/** The fields of a form: label, input, hint, and in words what is wrong with what was entered. */

import { ApiError } from "../api.js";
import { h } from "../dom.js";

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

export interface Field {
  readonly box: HTMLElement;
  readonly input: Input;
  /** An empty text: nothing is wrong. */
  readonly problem: (text: string) => void;
}

export function field(name: string, label: string, input: Input, hint = ""): Field {
  const id = `field-${name}`;
  const problem = h("p", { class: "problem", id: `${id}-problem` });
  input.id = id;
  input.name = name;
  input.setAttribute("aria-describedby", `${id}-problem ${id}-hint`);
  return {
    input,
    box: h(
      "div",
      { class: "field" },
      h("label", { for: id }, label),
      input,
      h("p", { class: "hint", id: `${id}-hint` }, hint),
      problem,
    ),
    problem(text) {
      problem.textContent = text;
      if (text === "") input.removeAttribute("aria-invalid");
      else input.setAttribute("aria-invalid", "true");
    },
  };
}

/** Says an error next to its field, and goes there; false where it is no field's. */
export function sayAtField(fields: ReadonlyMap<string, Field>, error: unknown): boolean {
  const at = error instanceof ApiError && error.field !== undefined ? fields.get(error.field) : undefined;
  if (at === undefined) return false;
  at.problem((error as ApiError).message);
  at.input.focus();
  return true;
}
