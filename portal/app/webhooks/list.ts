/** All webhooks of the account with their health. */

import type { WebhookPage } from "../../shapes.js";
import { h, patch } from "../dom.js";
import { time } from "../format.js";
import { table } from "../forms.js";
import { createPager } from "../pager.js";
import type { View } from "../view.js";
import { formatEventTypes } from "./event-types.js";
import { healthBadge, healthText } from "./health.js";

const PAGE = 100;

export const list: View = {
  path: "/webhooks",
  title: "Webhooks",
  part: "webhooks",
  label: "Webhooks",
  async render(root, _params, page) {
    const { api, keepFresh } = page;
    const turned = async (): Promise<void> => {
      await load();
      page.say(`Page ${pager.number()} of the webhooks.`);
    };
    const pager = createPager(page, turned, ["Back", "More webhooks"]);
    const load = async (): Promise<void> => {
      const cursor = pager.cursor();
      const { webhooks, next } = await api.get<WebhookPage>("webhooks", { cursor, limit: PAGE });
      if (cursor !== pager.cursor()) return;
      patch(
        root,
        webhooks.length === 0 && cursor === undefined
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
                  formatEventTypes(webhook.eventTypes),
                ],
              })),
            ),
        pager.buttons(next),
      );
    };
    await load();
    keepFresh(load);
  },
};
