/** The form that edits a record: saving, publishing, and conflicts with other people's changes. */

import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { h } from "../dom.js";
import type { PageContext } from "../view.js";
import { comparison } from "./compare.js";
import { getTitle, type Kind, moment, statusWord } from "./kinds.js";
import {
  createRecordForm,
  type FieldTexts,
  LABELS,
  mayPublish,
  type RecordForm,
  readFieldText,
  toRequestBody,
} from "./record-form.js";
import { ifUnchanged, isConflict } from "./unchanged.js";

/** A record, and what its visitor may do with it. */
export interface OpenRecord {
  readonly record: RecordJson;
  readonly mayEdit: boolean;
  readonly mayDelete: boolean;
}

/** The page that a record is shown on. */
export interface RecordSession {
  readonly kind: Kind;
  readonly page: PageContext;
  /** The record's path in the API. */
  readonly path: string;
  /** The record's key in {@link unsaved}. */
  readonly key: string;
  /** Returns the record as it was last read or written here. */
  readonly record: () => RecordJson;
  /** Takes over a record that was written. */
  readonly update: (newest: RecordJson) => void;
  readonly reload: () => Promise<OpenRecord>;
  /** Shows a record in a new form, with `typed` typed into it. */
  readonly show: (current: OpenRecord, typed?: FieldTexts) => void;
  readonly focusForm: () => void;
  readonly submitForm: () => void;
}

/** Unsaved texts of a record that the visitor left, with the record that they were typed over. */
export const unsaved = new Map<string, { readonly record: RecordJson; readonly texts: FieldTexts }>();

const isPublishable = (record: RecordJson): boolean =>
  mayPublish(record) && ["draft", "pending"].includes(record.status);

function describeSaved({ status, date }: RecordJson): string {
  if (status === "inherit") return "Saved.";
  return `Saved. ${statusWord(status)}${status === "future" ? ` for ${moment(date)}` : ""}.`;
}

/** Keeps unsaved texts when the visitor leaves the view, and warns before the page is closed. */
function keepUnsaved({ key, page, record }: RecordSession, form: RecordForm, shown: AbortController): void {
  const { signal } = shown;
  const leave = (): void => {
    const texts = form.changes();
    if (Object.keys(texts).length > 0) unsaved.set(key, { record: record(), texts });
    else unsaved.delete(key);
    shown.abort();
  };
  const warn = (event: Event): void => {
    if (Object.keys(form.changes()).length > 0) event.preventDefault();
  };
  page.signal.addEventListener("abort", leave, { signal });
  addEventListener("beforeunload", warn, { signal });
}

function compareFields(
  { kind, record }: RecordSession,
  { base }: RecordForm,
  theirs: RecordJson,
  mine: FieldTexts,
): readonly HTMLElement[] {
  return kind.fields.flatMap((name) => {
    const theirText = readFieldText(theirs, name);
    if (theirText === readFieldText(record(), name)) return [];
    const myText = mine[name] ?? base[name] ?? "";
    const [left, right] = [
      { label: "Theirs", text: theirText },
      { label: "Yours", text: myText },
    ] as const;
    return comparison(LABELS[name], left, right) ?? [];
  });
}

/** Shows in `place` how a record that somebody else has saved differs from what was typed here. */
async function showConflict(
  session: RecordSession,
  form: RecordForm,
  place: HTMLElement,
  mine: FieldTexts,
): Promise<void> {
  const theirs = await session.reload();
  const takeTheirs = (): void => {
    session.show(theirs);
    session.focusForm();
  };
  const saveMine = (): void => {
    session.show(theirs, mine);
    session.focusForm();
    session.submitForm();
  };
  const heading = h("h2", { tabindex: -1 }, "Somebody else has saved this meanwhile");
  place.replaceChildren(
    h(
      "section",
      { class: "panel" },
      heading,
      h(
        "p",
        {},
        `Nothing of yours was saved. Fields that you have not touched will be theirs in either case.`,
      ),
      compareFields(session, form, theirs.record, mine),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: saveMine }, "Save mine over it"),
        h("button", { type: "button", class: "plain", onclick: takeTheirs }, "Take theirs"),
      ),
    ),
  );
  heading.focus();
}

/** Creates the function that saves the form, one request at a time. */
function createSave(
  session: RecordSession,
  form: RecordForm,
  conflict: HTMLElement,
  saved: (record: RecordJson) => void,
) {
  const { page, path, record } = session;
  let isBusy = false;
  return async (also: FieldTexts = {}): Promise<void> => {
    const texts = { ...form.changes(), ...also };
    if (isBusy) return;
    if (Object.keys(texts).length === 0) return page.say("There is nothing to save.");
    isBusy = true;
    const before = form.texts();
    form.clearProblems();
    try {
      const { body } = await page.api.send<ContentAnswerJson<RecordJson>>(
        "POST",
        `${path}?_embed=author`,
        toRequestBody(texts),
        ifUnchanged(record()),
      );
      form.accept(body, before);
      session.update(body);
      saved(body);
      conflict.replaceChildren();
      page.say(describeSaved(body));
    } catch (error) {
      if (isConflict(error)) await showConflict(session, form, conflict, texts).catch(page.fail);
      else if (!form.showProblem(error)) page.fail(error);
    } finally {
      isBusy = false;
    }
  };
}

/** Creates the form of the session's record. It ends with `shown`. */
export function createEditor(session: RecordSession, shown: AbortController, typed: FieldTexts): HTMLElement {
  const record = session.record();
  const form = createRecordForm(session.kind, record, typed);
  const conflict = h("div");
  keepUnsaved(session, form, shown);
  const save = createSave(session, form, conflict, (saved) => {
    publish.hidden = !isPublishable(saved);
  });
  const publish = h(
    "button",
    { type: "button", class: "plain", onclick: () => save({ status: "publish" }) },
    "Publish",
  );
  publish.hidden = !isPublishable(record);
  const submit = (event: Event): void => {
    event.preventDefault();
    void save();
  };
  return h(
    "form",
    { onsubmit: submit, "aria-label": getTitle(record) },
    conflict,
    form.elements,
    h("div", { class: "row" }, h("button", {}, "Save"), publish),
  );
}
