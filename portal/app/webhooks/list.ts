/** All webhooks of the account with their health. */

import type { WebhookPage } from "../../shapes.js";
import { h, renew } from "../dom.js";
import { time } from "../format.js";
import { table } from "../forms.js";
import type { View } from "../view.js";
import { typesText } from "./event-types.js";
import { healthBadge, healthText } from "./health.js";

export const list: View = {
  path: "/webhooks",
  title: "Webhooks",
  part: "webhooks",
  label: "Webhooks",
  async render(root, _params, { api, keepFresh }) {
    const load = async (): Promise<void> => {
      const { webhooks, next } = await api.get<WebhookPage>("webhooks", { limit: 100 });
      renew(
        root,
        webhooks.length === 0
          ? h("p", {}, "There is no webhook yet. ", h("a", { href: "#/webhooks/new" }, "Register one"), ".")
          : table(
              "Webhooks of the account, the oldest first",
              ["Address", "Health", "Pending", "Failed", "Delivered", "Next attempt", "Event types"],
              webhooks.map(({ webhook, stats }) => ({
                key: webhook.id,
                cells: [
                  h("a", { href: `#/webhooks/${webhook.id}`, class: "address" }, webhook.url),
                  [healthBadge(stats), h("div", { class: "quiet" }, healthText(stats))],
                  stats.pending,
                  stats.failed,
                  stats.delivered,
                  time(stats.nextAttemptAt),
                  typesText(webhook.eventTypes),
                ],
              })),
            ),
        next === null ? null : h("p", { class: "quiet" }, "The account has more than these hundred."),
      );
    };
    await load();
    keepFresh(load);
  },
};
