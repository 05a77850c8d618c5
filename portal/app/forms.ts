/** Forms: fields with errors, buttons that wait, confirmation dialogs, tables and facts. */

import { ApiError } from "./api.js";
import { type Child, h } from "./dom.js";
import { getMessage, type PageContext } from "./view.js";

let made = 0;
/** Returns an id that is unique on the page. */
export const newId = (): string => `f${++made}`;

export interface FormField {
  readonly element: HTMLElement;
  /** Shows an error; the empty text removes it. */
  readonly problem: (text: string) => void;
  readonly focus: () => void;
}

/** Creates an input with its label, its hint and a place for its error. */
export function field(
  label: string,
  input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
  hint?: string,
): FormField {
  const id = newId();
  input.id = id;
  const problem = h("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const described = hint === undefined ? `${id}-problem` : `${id}-hint ${id}-problem`;
  input.setAttribute("aria-describedby", described);
  return {
    element: h(
      "div",
      { class: "field" },
      h("label", { for: id }, label),
      input,
      hint === undefined ? null : h("p", { class: "hint", id: `${id}-hint` }, hint),
      problem,
    ),
    problem(text) {
      problem.textContent = text;
      problem.hidden = text === "";
      if (text === "") input.removeAttribute("aria-invalid");
      else input.setAttribute("aria-invalid", "true");
    },
    focus: () => input.focus(),
  };
}

/**
 * Creates a button that runs `act` once at a time and says its errors. It stays focusable
 * meanwhile, so that the focus is not lost.
 */
export function button(
  label: string,
  page: Pick<PageContext, "fail">,
  act: () => Promise<unknown>,
  attributes: Readonly<Record<string, string>> = {},
): HTMLButtonElement {
  const onclick = (event: Event): void => void once(event.currentTarget as Element, page, act);
  return h("button", { type: "button", onclick, ...attributes }, label);
}

async function once(
  element: Element,
  { fail }: Pick<PageContext, "fail">,
  act: () => Promise<unknown>,
): Promise<void> {
  if (element.getAttribute("aria-disabled") === "true") return;
  element.setAttribute("aria-disabled", "true");
  try {
    await act();
  } catch (error) {
    fail(error);
  } finally {
    element.removeAttribute("aria-disabled");
  }
}

/**
 * Creates a form. An error of a field is shown next to it and moves the focus there; other errors
 * are announced. The keys of `fields` are the names of the API.
 */
export function form(
  page: Pick<PageContext, "fail" | "say">,
  {
    fields,
    content,
    submit,
    act,
    ...attributes
  }: {
    readonly fields: Readonly<Record<string, FormField>>;
    readonly content: readonly Child[];
    /** The label of its button. */
    readonly submit: string;
    readonly act: () => Promise<unknown>;
    readonly class?: string;
    readonly "aria-label"?: string;
  },
): HTMLFormElement {
  const run = async (): Promise<void> => {
    for (const one of Object.values(fields)) one.problem("");
    page.say("");
    try {
      await act();
    } catch (error) {
      const name = error instanceof ApiError ? error.field?.split(/[.[]/)[0] : undefined;
      const at = name === undefined ? undefined : fields[name];
      if (at === undefined) throw error;
      at.problem(getMessage(error));
      at.focus();
    }
  };
  const send = h("button", { type: "submit" }, submit);
  return h(
    "form",
    {
      novalidate: true,
      ...attributes,
      onsubmit: (event: Event) => {
        event.preventDefault();
        void once(send, page, run);
      },
    },
    content,
    send,
  );
}

/** Asks for a confirmation. Resolves with true if it is given. */
export function confirmed(question: string, explanation: string, label: string): Promise<boolean> {
  return new Promise((resolve) => {
    const id = newId();
    let answer = false;
    const close = (value: boolean) => () => {
      answer = value;
      dialog.close();
    };
    const dialog = h(
      "dialog",
      { "aria-labelledby": id },
      h("h2", { id }, question),
      h("p", {}, explanation),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "danger", onclick: close(true) }, label),
        h("button", { type: "button", class: "plain", autofocus: true, onclick: close(false) }, "Cancel"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    // A question about a view that was left is cancelled.
    addEventListener("hashchange", close(false), { once: true });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Creates a table that scrolls if it is too wide. On a narrow screen each row is a list of its
 * cells, and the roles keep it a table for screen readers.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly { readonly key: string; readonly cells: readonly Child[] }[],
): HTMLElement {
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    h(
      "table",
      { class: "stacks", role: "table" },
      h("caption", {}, caption),
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          columns.map((column) =>
            h("th", { role: "columnheader", scope: "col", "data-key": column }, column),
          ),
        ),
      ),
      h(
        "tbody",
        { role: "rowgroup" },
        rows.map(({ key, cells }) =>
          h(
            "tr",
            { role: "row", "data-key": key },
            cells.map((cell, index) =>
              index === 0
                ? h("th", { role: "rowheader", scope: "row" }, cell)
                : h("td", { role: "cell", "data-key": index, "data-column": columns[index] }, cell),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Creates a list of terms and values. */
export const facts = (rows: readonly (readonly [string, Child])[]): HTMLElement =>
  h(
    "dl",
    { class: "facts" },
    rows.map(([term, value]) => h("div", { "data-key": term }, h("dt", {}, term), h("dd", {}, value))),
  );
