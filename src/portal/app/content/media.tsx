/** Uploads: several files, one after another, each with progress, cancellation and errors. */

import { useRef, useState } from "preact/hooks";
import { type Api, parseError } from "../api.js";
import { Field } from "../components/form.js";
import { useLeaveSignal, usePage } from "../page-context.js";

interface Upload {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  /** What has been sent, from 0 to 1. */
  readonly share: number;
  /** Absent until it has ended. */
  readonly result?: "done" | "failed";
  readonly cancel: () => void;
}

/** Uploads a file. `fetch` reports no progress. Rejects with a message for the visitor. */
function sendFile(
  file: File,
  { url, headers }: Api,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    request.open("POST", url("content/media"));
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    request.onload = () =>
      request.status < 300 ? resolve() : reject(parseError(request.status, request.responseText));
    request.onerror = () => reject(new Error("The connection was lost, or the file is too large."));
    request.onabort = () => reject(new Error("Cancelled"));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

/** Returns the uploads of the view, and the function that adds one. Leaving the view aborts them. */
function useUploads(onUploaded: () => Promise<void>) {
  const { api, say, fail } = usePage();
  const left = useLeaveSignal();
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
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
      say(`${name}: ${state}`, result);
    };
    const onProgress = (share: number): void =>
      update({ share, state: share < 1 ? `${Math.floor(share * 100)} %` : "Storing …" });
    const run = async (): Promise<void> => {
      if (signal.aborted) return;
      try {
        await sendFile(file, api, signal, onProgress);
      } catch (error) {
        if (!signal.aborted) end(error instanceof Error ? error.message : String(error), "failed");
        return;
      }
      end("Uploaded", "done");
      await onUploaded().catch(fail);
    };
    cancelled.signal.addEventListener("abort", () => end("Cancelled", "failed"));
    const cancel = (): void => cancelled.abort();
    setUploads((all) => [...all, { id, name, state: "Waiting", share: 0, cancel }]);
    queue.current = queue.current.then(run);
  };
  return [uploads, add] as const;
}

function UploadRow({ name, state, share, result, cancel }: Upload) {
  return (
    <li>
      <span class="address">{name}</span>
      {result === undefined && <progress max={1} value={share} aria-label={`Upload of ${name}`} />}
      <span class={result}>{state}</span>
      {result === undefined && (
        <button type="button" class="plain" aria-label={`Cancel the upload of ${name}`} onClick={cancel}>
          Cancel
        </button>
      )}
    </li>
  );
}

/** `onUploaded` is called after each file. */
export function UploadPanel({ onUploaded }: { readonly onUploaded: () => Promise<void> }) {
  const [uploads, add] = useUploads(onUploaded);
  const choose = (input: HTMLInputElement): void => {
    for (const file of input.files ?? []) add(file);
    input.value = "";
  };
  return (
    <section class="panel" aria-label="Upload">
      <Field label="Upload files" hint="Unfinished uploads are cancelled when you leave this page.">
        {(attributes) => (
          <input {...attributes} type="file" multiple onChange={(event) => choose(event.currentTarget)} />
        )}
      </Field>
      <ul class="uploads" aria-label="Uploads">
        {uploads.map((upload) => (
          <UploadRow key={upload.id} {...upload} />
        ))}
      </ul>
    </section>
  );
}
