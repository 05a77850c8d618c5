/** All webhooks of the account with their health. */

import type { WebhookPage } from "../../shapes.js";
import { h, renew } from "../dom.js";
import type { View } from "../view.js";

export const list: View = {
  path: "/webhooks",
  title: "Webhooks",
  part: "webhooks",
  label: "Webhooks",
  async render(root, _params, { api, keepFresh }) {
    const load = async (): Promise<void> => {
      const { webhooks } = await api.get<WebhookPage>("webhooks", { limit: 100 });
      renew(
        root,
        h(
          "ul",
          {},
          webhooks.map(({ webhook }) => h("li", { "data-key": webhook.id }, webhook.url)),
        ),
      );
    };
    await load();
    keepFresh(load);
  },
};
