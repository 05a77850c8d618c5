/** Asks before something that cannot be taken back. */

import { h } from "../dom.js";

/** Resolves with whether the visitor has said `verb`; closing the question in any other way is no. */
export function ask(question: string, verb: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "question" });
    dialog.append(
      h("p", { id: "question" }, question),
      h(
        "div",
        { class: "row" },
        h(
          "button",
          { type: "button", class: "plain", autofocus: true, onclick: () => dialog.close() },
          "Cancel",
        ),
        h("button", { type: "button", class: "danger", onclick: () => dialog.close(verb) }, verb),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === verb);
    });
    signal.addEventListener("abort", () => dialog.close());
    document.body.append(dialog);
    dialog.showModal();
  });
}
