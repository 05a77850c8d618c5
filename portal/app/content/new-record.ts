/** A new post or page, which is saved as a draft. */

import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { form } from "../forms.js";
import type { View } from "../view.js";
import type { Kind } from "./kinds.js";
import { createRecordField, type FieldTexts } from "./record-form.js";

const NAMES = ["title", "content", "excerpt"] as const;

/** Unsaved texts of a record that was not created yet, by its collection. */
const begun = new Map<string, FieldTexts>();

function createNewFields(kind: Kind) {
  const names = NAMES.filter((name) => kind.fields.includes(name));
  const entries = names.map((name) => [name, createRecordField(name, undefined)] as const);
  for (const [name, { input }] of entries) input.value = begun.get(kind.name)?.[name] ?? "";
  return {
    fields: Object.fromEntries(entries),
    content: entries.map(([, { element }]) => element),
    texts: (): FieldTexts => Object.fromEntries(entries.map(([name, { input }]) => [name, input.value])),
    isBegun: (): boolean => entries.some(([, { input }]) => input.value !== ""),
    clear: (): void => {
      for (const [, { input }] of entries) input.value = "";
    },
  };
}

export const newView = (kind: Kind): View => ({
  path: `/${kind.name}/new`,
  title: `New ${kind.one}`,
  part: "content",
  async render(root, _params, page) {
    const { fields, content, texts, isBegun, clear } = createNewFields(kind);
    const { signal } = page;
    const warn = (event: Event): void => {
      if (isBegun()) event.preventDefault();
    };
    addEventListener("beforeunload", warn, { signal });
    signal.addEventListener("abort", () => begun.set(kind.name, texts()));
    const act = async (): Promise<void> => {
      const { body } = await page.api.send<ContentAnswerJson<RecordJson>>(
        "POST",
        `content/${kind.name}`,
        texts(),
      );
      clear();
      page.say("Saved as a draft.");
      page.go(`/${kind.name}/${body.id}`);
    };
    root.append(form(page, { fields, content, submit: "Save as a draft", act }));
    if (isBegun()) page.say("What you had not saved is still here.");
  },
});
