/** Registers an endpoint, and shows its secret once. */

import type { EventTypesJson, SecretJson, WebhookJson } from "../../shapes.js";
import { h } from "../dom.js";
import { field, form } from "../forms.js";
import type { View } from "../view.js";
import { typeChoice } from "./event-types.js";
import { secretPanel } from "./secret.js";

export const register: View = {
  path: "/webhooks/new",
  title: "Register a webhook",
  part: "webhooks",
  label: "Register",
  async render(root, _params, page) {
    const { eventTypes } = await page.api.get<EventTypesJson>("event-types");
    const url = h("input", { type: "url", class: "wide", autocomplete: "off", required: true });
    const address = field("Address of the endpoint", url, "An HTTPS address that takes POST requests.");
    const types = typeChoice(eventTypes, null);
    const act = async (): Promise<void> => {
      const made = await page.api.send<SecretJson & { readonly webhook: WebhookJson }>("POST", "webhooks", {
        url: url.value.trim(),
        eventTypes: types.chosen(),
      });
      page.title("Webhook registered");
      page.say(`The webhook was registered. Its secret follows.`);
      const panel = secretPanel(made.secret, page);
      root.replaceChildren(
        panel,
        h("p", {}, h("a", { href: `#/webhooks/${made.webhook.id}` }, "Go to the webhook")),
      );
      panel.querySelector("input")?.focus();
    };
    root.append(
      form(page, {
        fields: { url: address, eventTypes: types.field, event_types: types.field },
        content: [address.element, types.field.element],
        submit: "Register",
        act,
      }),
    );
  },
};
