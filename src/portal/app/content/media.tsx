/**
 * Media: pictures in a grid with their alternative texts, and uploads of several files, one after
 * another, each with progress, cancellation and errors.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContentResponseJson, RecordJson } from "../../content-shapes.js";
import { type Api, parseError } from "../api.js";
import { Field, FieldError, Form, TextField } from "../components/form.js";
import { FileText, TriangleAlert } from "../components/icons.js";
import { Badge } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatSiteTime, getAuthor, getPicture, getTitle, lacksAltText, mayEdit } from "./records.js";

interface Upload {
  id: number;
  name: string;
  state: string;
  /** What has been sent, from 0 to 1. */
  share: number;
  /** Absent until it has ended. */
  result?: "done" | "failed";
  cancel: () => void;
}

/**
 * Uploads a file and returns its record. `fetch` reports no progress. Rejects with a message for the
 * visitor.
 */
export function sendFile(
  file: File,
  { url, headers }: Api,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<RecordJson> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    request.open("POST", url("content/media"));
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    request.onload = () =>
      request.status < 300
        ? resolve((JSON.parse(request.responseText) as ContentResponseJson<RecordJson>).body)
        : reject(parseError(request.status, request.responseText));
    request.onerror = () => reject(new Error(texts.media.lost));
    request.onabort = () => reject(new Error(texts.media.cancelled));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

/** Returns the uploads of the view, and the function that adds one. Leaving the view aborts them. */
function useUploads(onUploaded: () => Promise<void>) {
  const { api, say, fail } = usePage();
  const left = useLeaveSignal();
  const [uploads, setUploads] = useState<Upload[]>([]);
  const queue = useRef(Promise.resolve());
  const nextId = useRef(0);

  const add = (file: File): void => {
    const { name } = file;
    const id = nextId.current++;
    const cancelled = new AbortController();
    const signal = AbortSignal.any([cancelled.signal, left]);
    const update = (change: Partial<Upload>): void =>
      setUploads((all) => all.map((upload) => (upload.id === id ? { ...upload, ...change } : upload)));
    const end = (state: string, result: "done" | "failed"): void => {
      update({ state, result });
      say(texts.media.stateOf({ name, state }), result);
    };
    const onProgress = (share: number): void =>
      update({
        share,
        state: share < 1 ? texts.time.percent({ value: Math.floor(share * 100) }) : texts.media.storing,
      });
    const run = async (): Promise<void> => {
      if (signal.aborted) return;
      try {
        await sendFile(file, api, signal, onProgress);
      } catch (error) {
        if (!signal.aborted) end(error instanceof Error ? error.message : String(error), "failed");
        return;
      }
      end(texts.media.uploaded, "done");
      await onUploaded().catch(fail);
    };
    cancelled.signal.addEventListener("abort", () => end(texts.media.cancelled, "failed"));
    const cancel = (): void => cancelled.abort();
    setUploads((all) => [...all, { id, name, state: texts.media.waiting, share: 0, cancel }]);
    queue.current = queue.current.then(run);
  };
  return [uploads, add] as const;
}

function UploadRow({ name, state, share, result, cancel }: Upload) {
  return (
    <li>
      <span class="address">{name}</span>
      {result === undefined && <progress max={1} value={share} aria-label={texts.media.uploadOf({ name })} />}
      <span class={result}>{state}</span>
      {result === undefined && (
        <button type="button" class="plain" aria-label={texts.media.cancelUpload({ name })} onClick={cancel}>
          {texts.common.cancel}
        </button>
      )}
    </li>
  );
}

/** Files that are taken at once. */
const MAX_FILES = 50;

/**
 * Takes files that are dropped anywhere on the page, or pasted. Without this the browser would leave
 * the page for a dropped file. Returns true while files are held over it.
 */
function useDroppedFiles(take: (files: FileList | undefined) => void): boolean {
  const [isOver, setOver] = useState(false);
  const newestTake = useRef(take);
  newestTake.current = take;
  useEffect(() => {
    const left = new AbortController();
    const on = <Type extends "dragover" | "dragleave" | "drop" | "paste">(
      type: Type,
      act: (event: DocumentEventMap[Type]) => void,
    ): void => document.addEventListener(type, act, { signal: left.signal });
    on("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files") !== true) return;
      event.preventDefault();
      setOver(true);
    });
    on("dragleave", ({ relatedTarget }) => relatedTarget === null && setOver(false));
    on("drop", (event) => {
      setOver(false);
      if (event.dataTransfer?.types.includes("Files") !== true) return;
      event.preventDefault();
      newestTake.current(event.dataTransfer.files);
    });
    on("paste", ({ clipboardData }) => newestTake.current(clipboardData?.files));
    return () => left.abort();
  }, []);
  return isOver;
}

/** `onUploaded` is called after each file. */
export function UploadPanel({ onUploaded }: { onUploaded: () => Promise<void> }) {
  const { say } = usePage();
  const [uploads, add] = useUploads(onUploaded);
  const take = (files: FileList | null | undefined): void => {
    const all = [...(files ?? [])];
    for (const file of all.slice(0, MAX_FILES)) add(file);
    if (all.length > MAX_FILES) say(texts.media.onlyFirst({ count: MAX_FILES }), "failed");
  };
  const choose = (input: HTMLInputElement): void => {
    take(input.files);
    input.value = "";
  };
  const isOver = useDroppedFiles(take);
  return (
    <section class={isOver ? "card drop over" : "card drop"} aria-label={texts.media.upload}>
      <Field label={texts.media.uploadFiles} hint={texts.media.dropHint}>
        {(attributes) => (
          <input {...attributes} type="file" multiple onChange={(event) => choose(event.currentTarget)} />
        )}
      </Field>
      <ul class="uploads" aria-label={texts.media.uploads}>
        {uploads.map((upload) => (
          <UploadRow key={upload.id} {...upload} />
        ))}
      </ul>
    </section>
  );
}

/** Asks for the alternative text of a picture that has none. */
function MissingAltText({ record, reload }: { record: RecordJson; reload: () => Promise<void> }) {
  const { api, say } = usePage();
  const [text, setText] = useState("");
  const title = getTitle(record);
  const act = async (): Promise<void> => {
    if (text.trim() === "") throw new FieldError("alt_text", texts.media.describe);
    await api.send("POST", `content/media/${record.id}`, { alt_text: text.trim() });
    await reload();
    say(texts.media.altTextSaved({ title }));
  };
  return (
    <Form label={texts.media.altTextOf({ title })} submit={texts.common.save} kind="plain" isRow act={act}>
      <TextField
        label={texts.content.fields.alt_text}
        names={["alt_text"]}
        autocomplete="off"
        maxLength={1_000}
        value={text}
        onChange={setText}
      />
    </Form>
  );
}

function MediaCard({ record, reload }: { record: RecordJson; reload: () => Promise<void> }) {
  const { api } = usePage();
  const picture = getPicture(record, "thumbnail");
  return (
    <li class="card">
      {picture === undefined ? (
        <span class="no-picture">
          <FileText />
        </span>
      ) : (
        <img src={api.url(picture)} alt="" loading="lazy" />
      )}
      <a href={`#/media/${record.id}`} class="address">
        {getTitle(record)}
      </a>
      <span class="quiet small address">
        {[record.mime_type, getAuthor(record), formatSiteTime(record.date)].filter(Boolean).join(" · ")}
      </span>
      {lacksAltText(record) && (
        <>
          <Badge tone="warn">
            <TriangleAlert /> {texts.media.noAltText}
          </Badge>
          {mayEdit(record) && <MissingAltText record={record} reload={reload} />}
        </>
      )}
    </li>
  );
}

/** Files as a grid of pictures. */
export const MediaGrid = ({ records, reload }: { records: RecordJson[]; reload: () => Promise<void> }) => (
  <ul class="media" aria-label={texts.media.files}>
    {records.map((record) => (
      <MediaCard key={record.id} record={record} reload={reload} />
    ))}
  </ul>
);
