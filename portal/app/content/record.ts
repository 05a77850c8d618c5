/** One post, page or media item: to read, write, publish, trash, restore and delete. */

import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";
import { h } from "../dom.js";
import { button, confirmed } from "../forms.js";
import type { PageContext, View } from "../view.js";
import { getTitle, type Kind } from "./kinds.js";
import { createEditor, type OpenRecord, type RecordSession, unsaved } from "./record-editor.js";
import type { FieldTexts } from "./record-form.js";
import { renderSummary, renderTexts } from "./record-summary.js";
import { ifUnchanged, isConflict } from "./unchanged.js";

/** Reads a record as the visitor may edit it, or else as the visitor may read it. */
async function readRecord({ api }: PageContext, { name }: Kind, id: string): Promise<OpenRecord> {
  const read = (context: string): Promise<ContentAnswerJson<RecordJson>> =>
    api.get(`content/${name}/${id}`, { context, _embed: "author" });
  try {
    const { body, allow } = await read("edit");
    return { record: body, mayEdit: allow.includes("POST"), mayDelete: allow.includes("DELETE") };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { record: (await read("view")).body, mayEdit: false, mayDelete: false };
  }
}

/** Creates the calls that restore, trash and delete the session's record, if nobody changed it. */
function createRecordActions({ kind, page, path, ...session }: RecordSession, discard: () => void) {
  const { record, reload, show, focusForm } = session;

  /** Sends a request about the record as it is shown. Returns false if it failed. */
  async function send(method: "POST" | "DELETE", query: string, body: object): Promise<boolean> {
    try {
      await page.api.send(method, `${path}${query}`, body, ifUnchanged(record()));
      return true;
    } catch (error) {
      if (!isConflict(error)) page.fail(error);
      else {
        show(await reload());
        page.say(
          "Somebody else has changed this meanwhile: this is how it is now. Nothing was done.",
          "failed",
        );
      }
      return false;
    }
  }

  const leave = (text: string): void => {
    discard();
    page.say(text);
    page.go(`/${kind.name}`);
  };

  return {
    restore: async (): Promise<void> => {
      if (!(await send("POST", "", { status: "draft" }))) return;
      show(await reload());
      focusForm();
      page.say("Restored as a draft.");
    },
    trash: async (): Promise<void> => {
      const title = getTitle(record());
      if (await send("DELETE", "", {})) leave(`“${title}” is in the trash.`);
    },
    remove: async (): Promise<void> => {
      const title = getTitle(record());
      if (!(await confirmed(`Delete “${title}”?`, "It cannot be brought back.", "Delete for good"))) return;
      if (await send("DELETE", "?force=true", {})) leave(`“${title}” is deleted.`);
    },
  };
}

/** Creates the page of a record. `show` shows the record in a new form. */
function createRecordPage(root: HTMLElement, kind: Kind, id: string, page: PageContext) {
  /** Aborts when the form that is shown is replaced. */
  let shown = new AbortController();
  let record: RecordJson;
  const summary = h("div");
  const key = `${kind.name}/${id}`;

  const reload = (): Promise<OpenRecord> => readRecord(page, kind, id);
  const discard = (): void => {
    shown.abort();
    unsaved.delete(key);
  };
  const update = (newest: RecordJson): void => {
    record = newest;
    page.title(getTitle(record));
    summary.replaceChildren(h("div", {}, renderSummary(kind, record, page)));
  };

  const session: RecordSession = {
    kind,
    page,
    path: `content/${key}`,
    key,
    record: () => record,
    update,
    reload,
    show,
    // For when the button that was pressed is gone.
    focusForm: () => root.querySelector<HTMLElement>("form input")?.focus(),
    submitForm: () => root.querySelector("form")?.requestSubmit(),
  };
  const actions = createRecordActions(session, discard);

  function renderRemoval(): HTMLElement {
    const isFinal = !kind.hasTrash || record.status === "trash";
    const [label, act] = isFinal
      ? (["Delete for good", actions.remove] as const)
      : (["Move to the trash", actions.trash] as const);
    return h("p", {}, button(label, page, act, { class: "danger" }));
  }

  function show(current: OpenRecord, typed: FieldTexts = {}): void {
    const { mayEdit, mayDelete } = current;
    discard();
    shown = new AbortController();
    update(current.record);
    const isTrashed = record.status === "trash";
    root.replaceChildren(
      summary,
      mayEdit && !isTrashed ? createEditor(session, shown, typed) : renderTexts(kind, record),
      ...(mayEdit && isTrashed ? [button("Restore as a draft", page, actions.restore)] : []),
      ...(mayDelete ? [renderRemoval()] : []),
    );
  }

  return { key, reload, show };
}

export const recordView = (kind: Kind): View => ({
  path: `/${kind.name}/:id`,
  title: kind.one,
  part: "content",
  async render(root, { id = "" }, page) {
    const { key, reload, show } = createRecordPage(root, kind, id, page);
    const kept = unsaved.get(key);
    const current = await reload();
    if (kept === undefined || !current.mayEdit) return show(current);
    // With the record that it was typed over, so that a change by somebody else is noticed.
    show({ ...current, record: kept.record }, kept.texts);
    page.say("What you had not saved is still here.");
  },
});
