/** Chooses the event types of a webhook: all, or some by name. */

import { h } from "../dom.js";
import { type FormField, newId } from "../forms.js";

export interface TypeChoice {
  readonly field: FormField;
  /** `undefined`: all types, also future ones. */
  readonly chosen: () => readonly string[] | undefined;
}

export const formatEventTypes = (types: readonly string[] | null): string =>
  types === null || types.includes("*") ? "All types" : types.join(", ");

/** `given`: what is chosen at first; `null`: all. */
export function typeChoice(catalogue: readonly string[], given: readonly string[] | null): TypeChoice {
  const name = newId();
  const isAll = given === null || given.includes("*");
  const radio = (value: string, checked: boolean) =>
    h("input", { type: "radio", name, value, checked, onchange: () => show() });
  const all = radio("all", isAll);
  const some = radio("some", !isAll);
  // Patterns such as `patient.*` are chosen as they stand.
  const names = [...new Set([...(isAll ? [] : given), ...catalogue])].sort();
  const boxes = names.map((value) =>
    h("input", { type: "checkbox", value, checked: !isAll && given.includes(value) }),
  );
  const list = h(
    "div",
    { class: "choices", hidden: isAll, role: "group", "aria-label": "Event types" },
    boxes.map((box) => h("label", {}, box, " ", box.value)),
  );
  const problem = h("p", { class: "problem", id: `${name}-problem`, hidden: true });
  const show = (): void => {
    list.hidden = all.checked;
  };
  const element = h(
    "fieldset",
    { class: "field", "aria-describedby": `${name}-problem` },
    h("legend", {}, "Event types"),
    h("label", {}, all, " All types, also future ones"),
    h("br"),
    h("label", {}, some, " Only these"),
    list,
    problem,
  );
  return {
    field: {
      element,
      problem(text) {
        problem.textContent = text;
        problem.hidden = text === "";
      },
      focus: () => (all.checked ? all : some).focus(),
    },
    chosen: () =>
      all.checked ? undefined : boxes.filter(({ checked }) => checked).map(({ value }) => value),
  };
}
