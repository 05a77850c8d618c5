/**
 * The form that edits a record: its fields, saving, publishing, and conflicts with other people's
 * changes.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContentResponseJson, RecordJson } from "../../content-shapes.js";
import type { Api } from "../api.js";
import { Field, Form, FormButton, SelectField, TextField } from "../components/form.js";
import { announce } from "../components/live.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { FeaturedPicture, PictureButton } from "./pictures.js";
import {
  type FieldName,
  formatSiteTime,
  getTitle,
  hasSameLines,
  ifUnchanged,
  insertPicture,
  isConflict,
  type Kind,
  labelStatus,
} from "./records.js";
import { Comparison, useSiteZone } from "./revisions.js";

/** A record, and what its visitor may do with it. */
export interface OpenRecord {
  record: RecordJson;
  mayEdit: boolean;
  mayDelete: boolean;
}

/** A record with what is typed over it. */
export interface ShownRecord extends OpenRecord {
  typed: FieldTexts;
  /** What somebody else has saved since, and what was not saved because of it. */
  conflict?: { theirs: OpenRecord; mine: FieldTexts } | undefined;
}

/** What the parts of the view of a record share. */
export interface RecordSession {
  kind: Kind;
  /** The path of the record in the API. */
  path: string;
  api: Api;
  shown: ShownRecord;
  show: (next: ShownRecord | ((now: ShownRecord) => ShownRecord)) => void;
  /** Reads the record as it is now. */
  read: () => Promise<OpenRecord>;
}

const isPublishable = (record: RecordJson): boolean =>
  mayPublish(record) && ["draft", "pending"].includes(record.status);

function describeSaved({ status, date }: RecordJson): string {
  const { content } = texts;
  if (status === "inherit") return content.saved;
  if (status === "future")
    return content.savedFor({ status: labelStatus(status), time: formatSiteTime(date) });
  return content.savedAs({ status: labelStatus(status) });
}

/** Returns the function that saves what is typed. */
function useSave({ path, api, show, read }: RecordSession) {
  const { say } = usePage();
  return async ({ record, typed }: ShownRecord, also: FieldTexts = {}): Promise<void> => {
    const changes = { ...getChanges(record, typed), ...also };
    if (Object.keys(changes).length === 0) return say(texts.content.nothingToSave);
    try {
      const { body } = await api.send<ContentResponseJson<RecordJson>>(
        "POST",
        `${path}?_embed=author`,
        toRequestBody(changes),
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
      show((now) => ({ ...now, conflict: { theirs, mine: changes } }));
    }
  };
}

type Save = ReturnType<typeof useSave>;

/** The fields that somebody else has changed: their texts beside the visitor's, or beside the earlier. */
function ConflictComparisons({
  kind,
  shown: { record },
  conflict: { theirs, mine },
}: RecordSession & { conflict: NonNullable<ShownRecord["conflict"]> }) {
  return kind.fields.map((name) => {
    const before = readFieldText(record, name);
    const [left, right = before] = [readFieldText(theirs.record, name), mine[name]];
    if (left === before || hasSameLines(left, right)) return null;
    const labels = [texts.content.theirs, name in mine ? texts.content.yours : texts.content.before] as const;
    return <Comparison key={name} title={texts.content.fields[name]} labels={labels} texts={[left, right]} />;
  });
}

/** Shows how a record that somebody else has saved differs from what was typed here. */
function Conflict(session: RecordSession & { conflict: NonNullable<ShownRecord["conflict"]>; save: Save }) {
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
        {texts.content.conflict}
      </h2>
      <p>{texts.content.conflictText}</p>
      <ConflictComparisons {...session} />
      <div class="row">
        <FormButton kind="primary" act={() => save(resolve(conflict.mine))}>
          {texts.content.overwrite}
        </FormButton>
        <button type="button" class="plain" onClick={() => resolve({})}>
          {texts.content.useTheirs}
        </button>
      </div>
    </section>
  );
}

/**
 * Shows what is typed as the service would serve it, in a frame where nothing runs. A form requests
 * it, since the text is too long for an address; the response has a separate policy.
 */
function Preview({ path, text }: { path: string; text: string }) {
  const { api } = usePage();
  const form = useRef<HTMLFormElement>(null);
  /** How often it was asked for; the frame is there after the first time. */
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (count > 0) form.current?.submit();
  }, [count]);
  return (
    <section class="card preview-card" aria-labelledby="preview-heading">
      <form method="post" action={api.url(`${path}/preview`)} target="preview" class="row" ref={form}>
        <h2 id="preview-heading">{texts.content.preview}</h2>
        <input type="hidden" name="content" value={text} />
        <button type="button" class="plain" onClick={() => setCount(count + 1)}>
          {count > 0 ? texts.content.showNow : texts.content.showPreview}
        </button>
        <p class="quiet small">{texts.content.previewNote}</p>
      </form>
      {count > 0 && (
        <iframe
          name="preview"
          title={texts.content.preview}
          sandbox=""
          class="preview-frame"
          onLoad={() => announce(texts.content.previewShown)}
        />
      )}
    </section>
  );
}

export function RecordEditor(session: RecordSession) {
  const { kind, path, shown } = session;
  const { record, typed } = shown;
  return (
    <>
      <RecordForm {...session} />
      {kind.hasTrash && <Preview path={path} text={typed.content ?? readFieldText(record, "content")} />}
    </>
  );
}

function RecordForm(session: RecordSession) {
  const { kind, shown, show } = session;
  const { record, typed, conflict } = shown;
  const save = useSave(session);
  return (
    <Form
      label={getTitle(record)}
      submit={texts.common.save}
      act={() => save(shown)}
      more={
        isPublishable(record) && (
          <FormButton act={() => save(shown, { status: "publish" })}>{texts.content.publish}</FormButton>
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

// The fields: their inputs, and their texts as they are read and sent.

/** The texts of fields, by their names. */
export type FieldTexts = { [name in FieldName]?: string };

/** Their texts are HTML, which the label says. */
const HTML_FIELDS: Set<FieldName> = new Set(["content", "excerpt", "caption", "description"]);

/** Fields of several lines, with their heights. */
const ROWS: { [name in FieldName]?: number } = {
  content: 18,
  excerpt: 3,
  caption: 3,
  description: 5,
};

const mayPublish = ({ _links }: RecordJson): boolean => _links?.["wp:action-publish"] !== undefined;

function getStatusOptions(record: RecordJson): [status: string, label: string][] {
  const usual = ["draft", "pending", ...(mayPublish(record) ? ["publish", "future", "private"] : [])];
  const all = usual.includes(record.status) ? usual : [...usual, record.status];
  return all.map((status) => [status, labelStatus(status)]);
}

/** Returns the text of a field as its input shows it: a date without seconds if they are 0. */
function readFieldText(record: RecordJson, name: FieldName): string {
  const value = record[name] ?? "";
  const text = typeof value === "object" ? (value.raw ?? "") : String(value);
  return name === "date" && text.endsWith(":00") ? text.slice(0, -3) : text;
}

/** Returns those of the typed texts that differ from the record. */
export const getChanges = (record: RecordJson, typed: FieldTexts): FieldTexts =>
  Object.fromEntries(
    Object.entries(typed).filter(([name, text]) => text !== readFieldText(record, name as FieldName)),
  );

/**
 * Returns the body of a request that saves `texts`. The API needs the seconds of a date, which the
 * input omits if they are 0; an empty date becomes null, which lets the service choose.
 */
export function toRequestBody({ date, featured_media: picture, ...texts }: FieldTexts): object {
  const body: { [name: string]: unknown } = { ...texts };
  if (picture !== undefined) body["featured_media"] = Number(picture);
  if (date === "") body["date"] = null;
  else if (date !== undefined) body["date"] = date.length === 16 ? `${date}:00` : date;
  return body;
}

export function RecordFieldInput({
  name,
  value,
  onChange,
  record,
}: {
  name: FieldName;
  value: string;
  onChange: (text: string) => void;
  /** Absent for a new record, whose status is not chosen. */
  record?: RecordJson;
}) {
  const zone = useSiteZone();
  const area = useRef<HTMLTextAreaElement>(null);
  const { fields, hints, html, dateHint, dateHintZone } = texts.content;
  const label = fields[name];
  const siteHint = zone === "" ? dateHint : dateHintZone({ zone });
  const shared = {
    label: HTML_FIELDS.has(name) ? html({ label }) : label,
    names: [name],
    hint: name === "date" ? siteHint : (hints as FieldTexts)[name],
  };
  if (name === "status" && record !== undefined)
    return <SelectField {...shared} value={value} onChange={onChange} options={getStatusOptions(record)} />;
  if (name === "featured_media") return <FeaturedPicture value={value} onChange={onChange} />;
  const rows = ROWS[name];
  const type = name === "date" ? ({ type: "datetime-local", step: 1 } as const) : { class: "wide" };
  if (rows === undefined) return <TextField {...shared} {...type} value={value} onChange={onChange} />;
  return (
    <>
      <Field {...shared}>
        {(attributes) => (
          <textarea
            {...attributes}
            ref={area}
            rows={rows}
            value={value}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
        )}
      </Field>
      {name === "content" && (
        <p class="row">
          <PictureButton
            label={texts.media.insert}
            onChoose={(picture) => {
              const at = area.current?.selectionStart ?? value.length;
              onChange(insertPicture(value, at, picture));
            }}
          />
        </p>
      )}
    </>
  );
}
