/** One post, page or file: to create, read, write, publish, trash, restore and delete. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { ContentResponseJson, EditorJson, RecordJson } from "../../content-shapes.js";
import { type Api, ApiError } from "../api.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { Form, FormButton } from "../components/form.js";
import { Facts, Heading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import {
  type FieldTexts,
  getChanges,
  type OpenRecord,
  RecordEditor,
  RecordFieldInput,
  type RecordSession,
  type ShownRecord,
  toRequestBody,
} from "./record-editor.js";
import {
  formatSiteTime,
  getAuthor,
  getPicture,
  getText,
  getTitle,
  ifUnchanged,
  isConflict,
  type Kind,
  labelStatus,
} from "./records.js";
import { Pending, useSiteZone } from "./revisions.js";

/** Reads a record as the visitor may edit it, or else as the visitor may read it. */
async function readRecord(api: Api, path: string): Promise<OpenRecord> {
  const read = (context: string): Promise<ContentResponseJson<RecordJson>> =>
    api.get(path, { context, _embed: "author" });
  try {
    const { body, allow } = await read("edit");
    return { record: body, mayEdit: allow.includes("POST"), mayDelete: allow.includes("DELETE") };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { record: (await read("view")).body, mayEdit: false, mayDelete: false };
  }
}

/** Returns the calls that restore, trash and delete a record if nobody else has changed it. */
function useRecordActions({ kind, path, api, shown, show, read }: RecordSession) {
  const { say, go } = usePage();
  const [ask, question] = useConfirmation();
  const title = getTitle(shown.record);

  /** Sends a request about the record as it is shown. Returns false if that is out of date. */
  const send = async (method: "POST" | "DELETE", query: string, body: object): Promise<boolean> => {
    try {
      await api.send(method, `${path}${query}`, body, ifUnchanged(shown.record));
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
      show({ ...(await read()), typed: {} });
      say(texts.content.notDone, "failed");
      return false;
    }
  };
  const leave = (text: string): void => {
    show({ ...shown, typed: {} });
    say(text);
    go(`/${kind.name}`);
  };

  return {
    question,
    restore: async (): Promise<void> => {
      if (!(await send("POST", "", { status: "draft" }))) return;
      show({ ...(await read()), typed: {} });
      // The button that was pressed goes.
      document.querySelector<HTMLElement>("h1")?.focus();
      say(texts.content.restoredAsDraft);
    },
    trash: async (): Promise<void> => {
      if (await send("DELETE", "", {})) leave(texts.content.inTrash({ title }));
    },
    remove: async (): Promise<void> => {
      const isConfirmed = await ask({
        title: texts.content.deleteTitle({ title }),
        explanation: texts.content.undoable,
        confirm: texts.content.deletePermanently,
      });
      if (isConfirmed && (await send("DELETE", "?force=true", {}))) leave(texts.content.deleted({ title }));
    },
  };
}

function RecordActions(session: RecordSession) {
  const { kind, shown } = session;
  const { question, restore, trash, remove } = useRecordActions(session);
  const isTrashed = shown.record.status === "trash";
  const isFinal = isTrashed || !kind.hasTrash;
  return (
    <p class="row">
      {shown.mayEdit && isTrashed && (
        <ActionButton act={restore}>{texts.content.restoreAsDraft}</ActionButton>
      )}
      {shown.mayDelete && (
        <ActionButton kind="danger" act={isFinal ? remove : trash}>
          {isFinal ? texts.content.deletePermanently : texts.content.moveToTrash}
        </ActionButton>
      )}
      {question}
    </p>
  );
}

interface PathProps {
  kind: Kind;
  /** The path of the record in the API. */
  path: string;
}

function EditableRecord({ kind, path, opened }: PathProps & { opened: OpenRecord }) {
  const { api: pageApi } = usePage();
  const api = pageApi.within(useLeaveSignal());
  // With the record that it was typed over, so that a change by someone else is noticed.
  const draft = useEarlierDraft(opened.mayEdit ? path : undefined);
  const [shown, show] = useState<ShownRecord>({ ...opened, typed: {}, ...draft });
  const { record, mayEdit, typed } = shown;
  const isChanged = Object.keys(getChanges(record, typed)).length > 0;
  useDraft(path, isChanged ? { record, typed } : undefined);
  const session: RecordSession = { kind, path, api, shown, show, read: () => readRecord(api, path) };
  return (
    <>
      <div class="title-row">
        <Heading title={getTitle(record)} />
        {mayEdit && kind.hasTrash && record.status !== "trash" && <EditorLink path={path} />}
      </div>
      <RecordSummary kind={kind} record={record} />
      {mayEdit && record.status !== "trash" ? (
        <RecordEditor {...session} />
      ) : (
        <RecordTexts kind={kind} record={record} />
      )}
      <RecordActions {...session} />
    </>
  );
}

/** Leads to the editor of the host, if it has one for this record. */
function EditorLink({ path }: { path: string }) {
  const { hasEditor = false } = usePage().session;
  const { data } = useResource<EditorJson>(
    async (api) => (hasEditor ? api.get(`${path}/editor`) : { url: null }),
    [path, hasEditor],
  );
  const url = data?.url ?? "";
  return /^https?:/.test(url) ? (
    <a class="button primary" href={url} rel="noreferrer">
      {texts.content.editInEditor}
    </a>
  ) : null;
}

export function RecordView({ kind, id }: { kind: Kind; id: string }) {
  const path = `content/${kind.name}/${id}`;
  const { data, error } = useResource((api) => readRecord(api, path), [path]);
  if (data === undefined) return <Pending title={texts.content.kinds[kind.name].many} error={error} />;
  return <EditableRecord kind={kind} path={path} opened={data} />;
}

interface RecordProps {
  kind: Kind;
  record: RecordJson;
}

/** What is known about a record besides its fields. */
function RecordSummary({ kind, record }: RecordProps) {
  const { api } = usePage();
  const zone = useSiteZone();
  const { filesize, width, height } = record.media_details ?? {};
  const picture = getPicture(record, "large");
  const hasRevisions = record._links?.["version-history"] !== undefined;
  const isOnSite = /^https?:/.test(record.link) && record.status !== "trash";
  return (
    <>
      {picture !== undefined && (
        <img
          src={api.url(picture)}
          alt={record.alt_text || texts.content.pictureWithoutAlt}
          class="picture"
        />
      )}
      <Facts
        rows={[
          [texts.content.fields.status, record.status !== "inherit" && labelStatus(record.status)],
          [texts.content.author, getAuthor(record) || null],
          [texts.content.fields.date, `${formatSiteTime(record.date)} ${zone}`],
          [texts.content.changed, `${formatSiteTime(record.modified)} ${zone}`],
          [texts.content.type, record.mime_type],
          [texts.content.size, filesize !== undefined && texts.content.bytes({ count: filesize })],
          [texts.content.pixels, Boolean(width) && `${width} × ${height}`],
          [
            texts.content.history,
            hasRevisions && <a href={`#/${kind.name}/${record.id}/revisions`}>{texts.content.revisions}</a>,
          ],
          [
            texts.content.onSite,
            isOnSite && (
              <a href={record.link} rel="noreferrer">
                {record.link}
              </a>
            ),
          ],
        ]}
      />
    </>
  );
}

/** The texts of a record for a visitor who may not edit it, as plain text. */
function RecordTexts({ kind, record }: RecordProps) {
  return kind.fields.map((name) => {
    const value = record[name];
    if (name === "title" || typeof value !== "object") return null;
    const text = getText(value);
    return text === "" ? null : (
      <section key={name}>
        <h2>{texts.content.fields[name]}</h2>
        <pre>{text}</pre>
      </section>
    );
  });
}

const NAMES = ["title", "content", "excerpt", "featured_media"] as const;

export function NewRecord({ kind }: { kind: Kind }) {
  const { api, say, go } = usePage();
  const left = useLeaveSignal();
  const path = `content/${kind.name}`;
  const [typed, setTyped] = useState<FieldTexts>(useEarlierDraft(path)?.typed ?? {});
  useDraft(path, Object.values(typed).some((text) => text !== "") ? { typed } : undefined);
  const create = async (status: "draft" | "publish"): Promise<void> => {
    const record = toRequestBody(status === "draft" ? typed : { ...typed, status });
    const { body } = await api.within(left).send<ContentResponseJson<RecordJson>>("POST", path, record);
    setTyped({});
    say(status === "draft" ? texts.content.savedAsDraft : texts.content.published);
    go(`/${kind.name}/${body.id}`);
  };
  const title = texts.content.kinds[kind.name].new;
  return (
    <>
      <Heading title={title} />
      <Form
        label={title}
        submit={texts.content.saveAsDraft}
        kind="plain"
        act={() => create("draft")}
        more={
          <FormButton kind="primary" act={() => create("publish")}>
            {texts.content.publish}
          </FormButton>
        }
      >
        {NAMES.map((name) => (
          <RecordFieldInput
            key={name}
            name={name}
            value={typed[name] ?? ""}
            onChange={(text) => setTyped((before) => ({ ...before, [name]: text }))}
          />
        ))}
      </Form>
    </>
  );
}

// Keeps what was typed and not saved for as long as the page is open.

interface Draft {
  /** The record that it was typed over; absent for a new one. */
  record?: RecordJson;
  typed: FieldTexts;
}

/** By the path of the record in the API. */
const drafts = new Map<string, Draft>();

/**
 * Returns the draft that was left at `path` before, and tells the visitor that it is still there.
 * `path` is absent for a visitor who may not save it.
 */
function useEarlierDraft(path: string | undefined): Draft | undefined {
  const { say } = usePage();
  const [draft] = useState(() => (path === undefined ? undefined : drafts.get(path)));
  useEffect(() => {
    if (draft !== undefined) say(texts.content.draftKept);
  }, [draft, say]);
  return draft;
}

const warn = (event: Event): void => event.preventDefault();

/**
 * Keeps `draft` for when the visitor comes back, and warns before the page is closed. `undefined`:
 * there is nothing to keep.
 */
function useDraft(path: string, draft: Draft | undefined): void {
  // In the same step as the change: the visitor may leave the view next.
  useLayoutEffect(() => {
    if (draft === undefined) drafts.delete(path);
    else drafts.set(path, draft);
  });
  const isBegun = draft !== undefined;
  useEffect(() => {
    if (isBegun) addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isBegun]);
}
