/** The panels of a webhook: recover events, rotate the secret, change address and event types. */

import type { SecretJson, WebhookJson } from "../../shapes.js";
import { h } from "../dom.js";
import { fromLocalInput, pluralise, toLocalInput } from "../format.js";
import { field, form } from "../forms.js";
import type { PageContext } from "../view.js";
import { typeChoice } from "./event-types.js";
import { createOption } from "./time-axis.js";

const HOUR_MS = 3_600_000;

/** The webhook that the panels change. */
export interface WebhookPanels {
  readonly page: PageContext;
  /** The webhook's path in the API. */
  readonly path: string;
  readonly webhook: WebhookJson;
  /** All event types that the host offers. */
  readonly eventTypes: readonly string[];
  /** Says an outcome and reads the webhook again. */
  readonly refresh: (text: string) => Promise<void>;
  readonly showSecret: (created: SecretJson) => void;
}

const panel = (title: string, content: HTMLElement): HTMLElement =>
  h("details", { class: "panel" }, h("summary", {}, title), content);

function recoverPanel({ page, path, webhook, refresh }: WebhookPanels): HTMLElement {
  // From its creation on: a new address or enabling resets the time of the first failure, but not
  // what was missed before.
  const from = Date.parse(webhook.createdDate);
  const input = h("input", {
    type: "datetime-local",
    value: toLocalInput(from),
    required: true,
  });
  const since = field(
    "Since",
    input,
    "Sends events that failed, or were emitted while the webhook was disabled, if they are still stored. Delivered events are not sent again.",
  );
  const act = async (): Promise<void> => {
    const { count } = await page.api.send<{ count: number }>("POST", `${path}/recover`, {
      since: fromLocalInput(input.value),
    });
    await refresh(
      count === 0
        ? "There was nothing to recover. Whatever is pending goes with its next attempt, or at once with Send again."
        : `${pluralise(count, "event is", "events are")} sent, one after another.`,
    );
  };
  return panel(
    "Recover events",
    form(page, { fields: { since }, content: [since.element], submit: "Recover", act }),
  );
}

function rotatePanel({ page, path, showSecret }: WebhookPanels): HTMLElement {
  const select = h(
    "select",
    {},
    createOption(String(24 * HOUR_MS), "24 hours"),
    createOption(String(HOUR_MS), "1 hour"),
    createOption(String(168 * HOUR_MS), "7 days"),
    createOption("0", "not at all"),
  );
  const overlap = field(
    "The old secret goes on signing for",
    select,
    "The receiver must know the new secret before this time ends.",
  );
  const act = async (): Promise<void> => {
    const overlapMs = Number(select.value);
    const created = await page.api.send<SecretJson>("POST", `${path}/rotate`, { overlapMs });
    page.say("There is a new secret.");
    showSecret(created);
  };
  return panel(
    "Rotate the secret",
    form(page, {
      fields: { overlapMs: overlap },
      content: [overlap.element],
      submit: "Make a new secret",
      act,
    }),
  );
}

const sortTypes = (types: readonly string[] | null | undefined): readonly string[] =>
  [...(types ?? ["*"])].sort();

function changePanel({ page, path, webhook, eventTypes, refresh }: WebhookPanels): HTMLElement {
  const input = h("input", { type: "url", class: "wide", value: webhook.url, autocomplete: "off" });
  const url = field(
    "Address of the endpoint",
    input,
    "Pending deliveries go to the new address, and its health starts over.",
  );
  const types = typeChoice(eventTypes, webhook.eventTypes);
  let base = webhook;
  const act = async (): Promise<void> => {
    const [address, chosen] = [input.value.trim(), sortTypes(types.chosen())];
    // Only changed fields are sent: somebody else may have changed the others meanwhile.
    const changes = {
      ...(address !== base.url && { url: address }),
      ...(chosen.join() !== sortTypes(base.eventTypes).join() && { eventTypes: chosen }),
    };
    if (Object.keys(changes).length === 0) return page.say("There is nothing to save.");
    base = await page.api.send<WebhookJson>("PUT", path, changes);
    await refresh("The webhook was changed.");
  };
  return panel(
    "Change address and event types",
    form(page, {
      fields: { url, eventTypes: types.field, event_types: types.field },
      content: [url.element, types.field.element],
      submit: "Save",
      act,
    }),
  );
}

/** Creates the panels of a webhook. */
export const createPanels = (webhook: WebhookPanels): HTMLElement =>
  h("div", { class: "panels" }, recoverPanel(webhook), rotatePanel(webhook), changePanel(webhook));
