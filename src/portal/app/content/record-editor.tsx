/** The form that edits a record: saving, publishing, and conflicts with other people's changes. */

import { useEffect, useRef } from "preact/hooks";
import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { type Api, ApiError } from "../api.js";
import { Form, FormButton } from "../components/form.js";
import { ErrorMessage, Heading, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import type { ReadFailure } from "../use-resource.js";
import { Comparison } from "./comparison.js";
import { formatSiteTime, getTitle, type Kind, labelStatus } from "./kinds.js";
import { hasSameLines } from "./pair-lines.js";
import {
  type FieldTexts,
  getChanges,
  LABELS,
  mayPublish,
  RecordFieldInput,
  readFieldText,
  toRequestBody,
} from "./record-fields.js";

/** A record, and what its visitor may do with it. */
export interface OpenRecord {
  readonly record: RecordJson;
  readonly mayEdit: boolean;
  readonly mayDelete: boolean;
}

/** A record with what is typed over it. */
export interface ShownRecord extends OpenRecord {
  readonly typed: FieldTexts;
  /** What somebody else has saved since, and what was not saved because of it. */
  readonly conflict?: { readonly theirs: OpenRecord; readonly mine: FieldTexts } | undefined;
}

/** What the parts of the view of a record share. */
export interface RecordSession {
  readonly kind: Kind;
  /** The path of the record in the API. */
  readonly path: string;
  readonly api: Api;
  readonly shown: ShownRecord;
  readonly show: (next: ShownRecord | ((now: ShownRecord) => ShownRecord)) => void;
  /** Reads the record as it is now. */
  readonly read: () => Promise<OpenRecord>;
}

const isPublishable = (record: RecordJson): boolean =>
  mayPublish(record) && ["draft", "pending"].includes(record.status);

function describeSaved({ status, date }: RecordJson): string {
  if (status === "inherit") return "Saved.";
  return `Saved. ${labelStatus(status)}${status === "future" ? ` for ${formatSiteTime(date)}` : ""}.`;
}

/** Returns the function that saves what is typed. */
function useSave({ path, api, show, read }: RecordSession) {
  const { say } = usePage();
  return async ({ record, typed }: ShownRecord, also: FieldTexts = {}): Promise<void> => {
    const texts = { ...getChanges(record, typed), ...also };
    if (Object.keys(texts).length === 0) return say("There is nothing to save.");
    try {
      const { body } = await api.send<ContentAnswerJson<RecordJson>>(
        "POST",
        `${path}?_embed=author`,
        toRequestBody(texts),
        ifUnchanged(record),
      );
      // What was typed while it was being saved stays.
      const isNewer = ([name, text]: [string, string]): boolean => text !== typed[name as keyof FieldTexts];
      show((now) => ({
        ...now,
        record: body,
        typed: Object.fromEntries(Object.entries(now.typed).filter(isNewer)),
        conflict: undefined,
      }));
      say(describeSaved(body));
    } catch (error) {
      if (!isConflict(error)) throw error;
      const theirs = await read();
      show((now) => ({ ...now, conflict: { theirs, mine: texts } }));
    }
  };
}

type Save = ReturnType<typeof useSave>;

/** The fields that somebody else has changed: their texts beside the visitor's, or beside the earlier. */
function ConflictComparisons({
  kind,
  shown: { record },
  conflict: { theirs, mine },
}: RecordSession & { readonly conflict: NonNullable<ShownRecord["conflict"]> }) {
  return kind.fields.map((name) => {
    const before = readFieldText(record, name);
    const [left, right = before] = [readFieldText(theirs.record, name), mine[name]];
    if (left === before || hasSameLines(left, right)) return null;
    const labels = ["Theirs", name in mine ? "Yours" : "Before"] as const;
    return <Comparison key={name} title={LABELS[name]} labels={labels} texts={[left, right]} />;
  });
}

/** Shows how a record that somebody else has saved differs from what was typed here. */
function Conflict(
  session: RecordSession & { readonly conflict: NonNullable<ShownRecord["conflict"]>; readonly save: Save },
) {
  const { conflict, save, show } = session;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [conflict]);
  const resolve = (typed: FieldTexts): ShownRecord => {
    const next = { ...conflict.theirs, typed };
    show(next);
    // The button that was pressed goes.
    document.querySelector<HTMLElement>("form input")?.focus();
    return next;
  };
  return (
    <section class="panel">
      <h2 tabIndex={-1} ref={heading}>
        Someone else has saved this in the meantime
      </h2>
      <p>Nothing of yours was saved. Fields that you have not changed will be theirs in either case.</p>
      <ConflictComparisons {...session} />
      <div class="row">
        <FormButton kind="primary" act={() => save(resolve(conflict.mine))}>
          Overwrite with mine
        </FormButton>
        <button type="button" class="plain" onClick={() => resolve({})}>
          Use theirs
        </button>
      </div>
    </section>
  );
}

export function RecordEditor(session: RecordSession) {
  const { kind, shown, show } = session;
  const { record, typed, conflict } = shown;
  const save = useSave(session);
  return (
    <Form
      label={getTitle(record)}
      submit="Save"
      act={() => save(shown)}
      more={
        isPublishable(record) && (
          <FormButton act={() => save(shown, { status: "publish" })}>Publish</FormButton>
        )
      }
    >
      {conflict !== undefined && <Conflict {...session} conflict={conflict} save={save} />}
      {kind.fields.map((name) => (
        <RecordFieldInput
          key={name}
          name={name}
          value={typed[name] ?? readFieldText(record, name)}
          onChange={(text) => show((now) => ({ ...now, typed: { ...now.typed, [name]: text } }))}
          record={record}
        />
      ))}
    </Form>
  );
}

/** Makes a write fail with 412 where the record is no longer the one that is shown. */
export const ifUnchanged = ({
  modified_gmt: modified,
}: Pick<RecordJson, "modified_gmt">): Readonly<Record<string, string>> => ({
  "if-unmodified-since": new Date(`${modified}Z`).toUTCString(),
});

export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.status === 412;

/** `error`: why it cannot be read. */
export function Pending({
  title,
  error,
}: {
  readonly title: string;
  readonly error: ReadFailure | undefined;
}) {
  const isMissing = error?.cause instanceof ApiError && error.cause.status === 404;
  return (
    <>
      <Heading title={isMissing ? "Not found" : title} />
      {error === undefined ? <Loading /> : <ErrorMessage error={error} />}
    </>
  );
}
