/** One delivery with all its attempts. */

import type { DeliveryDetail } from "../../shapes.js";
import { h, renew } from "../dom.js";
import { lengthText, time } from "../format.js";
import { button, facts, table } from "../forms.js";
import type { View } from "../view.js";
import { attemptText, reasonText, stateBadge } from "./health.js";

export const delivery: View = {
  path: "/webhooks/:webhookId/deliveries/:deliveryId",
  title: "Delivery",
  part: "webhooks",
  async render(root, { webhookId = "", deliveryId = "" }, page) {
    const { api } = page;
    const path = `webhooks/${encodeURIComponent(webhookId)}/deliveries/${encodeURIComponent(deliveryId)}`;
    const body = h("div");
    const resend = async (): Promise<void> => {
      const { id } = await api.send<{ id: string }>("POST", `${path}/resend`);
      if (id === deliveryId) {
        page.say("It is attempted once more now, and keeps its schedule.");
        await load();
      } else {
        page.say("A new delivery of the same event was made; this is it.");
        page.go(`/webhooks/${webhookId}/deliveries/${encodeURIComponent(id)}`);
      }
    };
    const load = async (): Promise<void> => {
      const { webhook, delivery: found } = await api.get<DeliveryDetail>(path);
      page.title(`Delivery of ${found.type}`);
      renew(
        body,
        h("p", {}, "To ", h("a", { href: `#/webhooks/${webhook.id}`, class: "address" }, webhook.url)),
        facts([
          ["State", [stateBadge(found), found.reason === null ? null : ` ${reasonText(found.reason)}`]],
          ["Next attempt", time(found.nextAttemptAt, "none")],
          ["Emitted", time(found.createdAt)],
          ["Ended", time(found.endedAt, "not yet")],
          ["Event", h("code", {}, found.eventId)],
        ]),
        h("h2", {}, "Attempts"),
        found.attempts.length === 0
          ? h("p", {}, "None yet.")
          : table(
              "Attempts, the first one first",
              ["When", "Outcome", "Code", "Took", "Step", "First bytes of the answer"],
              found.attempts.map((attempt, index) => ({
                key: String(index),
                cells: [
                  time(attempt.at),
                  attemptText(attempt),
                  h("code", {}, attempt.code),
                  lengthText(attempt.durationMs),
                  attempt.isExtra ? "asked for" : `${attempt.step + 1}`,
                  attempt.excerpt === null || attempt.excerpt === "" ? "–" : h("pre", {}, attempt.excerpt),
                ],
              })),
            ),
      );
    };
    root.append(h("p", {}, button("Send again", page, resend)), body);
    await load();
    page.keepFresh(load);
  },
};
