/** Uploads: several files, one after another, each with progress, cancellation and errors. */

import { parseError } from "../api.js";
import { h } from "../dom.js";
import type { PageContext } from "../view.js";

/** Creates the upload panel. Leaving the view aborts uploads. `done` is called after each file. */
export function uploadPanel({ api, say, fail, signal }: PageContext, done: () => Promise<void>): HTMLElement {
  const rows = h("ul", { class: "uploads", "aria-label": "Uploads" });
  let queue = Promise.resolve();

  const add = (file: File): void => {
    const controller = new AbortController();
    const bar = h("progress", { max: 1, value: 0, "aria-label": `Upload of ${file.name}` });
    const state = h("span", {}, "Waiting");
    const cancel = h(
      "button",
      { type: "button", class: "plain", "aria-label": `Cancel the upload of ${file.name}` },
      "Cancel",
    );
    let isWaiting = true;
    cancel.onclick = () => {
      controller.abort();
      if (isWaiting) end("Cancelled", "failed");
    };
    signal.addEventListener("abort", () => controller.abort());
    rows.append(h("li", {}, h("span", { class: "address" }, file.name), bar, state, cancel));
    const end = (words: string, kind: "done" | "failed"): void => {
      state.textContent = words;
      state.className = kind;
      bar.remove();
      cancel.remove();
      say(`${file.name}: ${words}`, kind);
    };
    queue = queue.then(async () => {
      if (controller.signal.aborted) return;
      isWaiting = false;
      try {
        await send(file, api, controller.signal, (share) => {
          bar.value = share;
          state.textContent = share < 1 ? `${Math.floor(share * 100)} %` : "Being stored";
        });
        end("Uploaded", "done");
      } catch (error) {
        return end(error instanceof Error ? error.message : String(error), "failed");
      }
      await done().catch(fail);
    });
  };

  const input = h("input", { type: "file", multiple: true, id: "upload", "aria-describedby": "upload-hint" });
  input.onchange = () => {
    for (const file of input.files ?? []) add(file);
    input.value = "";
  };
  return h(
    "section",
    { class: "panel", "aria-label": "Upload" },
    h(
      "div",
      { class: "field" },
      h("label", { for: "upload" }, "Upload files"),
      input,
      h("p", { class: "hint", id: "upload-hint" }, "What is not through ends when you leave this page."),
    ),
    rows,
  );
}

/** Uploads a file. `fetch` reports no progress. Rejects with a message for the visitor. */
function send(
  file: File,
  { url, headers }: PageContext["api"],
  signal: AbortSignal,
  progress: (share: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    request.open("POST", url("content/media"));
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => progress(total === 0 ? 0 : loaded / total);
    request.onload = () =>
      request.status < 300 ? resolve() : reject(parseError(request.status, request.responseText));
    request.onerror = () => reject(new Error("The connection was lost, or the file is too large."));
    request.onabort = () => reject(new Error("Cancelled"));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
