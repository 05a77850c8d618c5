/** A secret, shown once. */

import { h } from "../dom.js";
import { newId } from "../forms.js";
import type { PageContext } from "../view.js";

export function secretPanel(secret: string, { say }: Pick<PageContext, "say">): HTMLElement {
  const id = newId();
  const input = h("input", { id, class: "wide code", readonly: true, value: secret, spellcheck: "false" });
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(secret);
      say("The secret was copied.");
    } catch {
      // No permission, or no HTTPS.
      input.select();
      say("The secret is selected: copy it with the keyboard.");
    }
  };
  return h(
    "section",
    { class: "panel", "aria-label": "The new secret" },
    h("div", { class: "field" }, h("label", { for: id }, "Secret"), input),
    h(
      "p",
      {},
      "It is shown here once and never again. Give it to the receiver, which verifies signatures with it.",
    ),
    h("button", { type: "button", onclick: () => void copy() }, "Copy the secret"),
  );
}
