/** One delivery with all its attempts. */

import type { AttemptJson, DeliveryDetail } from "../../shapes.js";
import { type Child, h, patch } from "../dom.js";
import { lengthText, time } from "../format.js";
import { button, facts, table } from "../forms.js";
import type { View } from "../view.js";
import { attemptText, reasonText, stateBadge } from "./health.js";
import { deliveryPath, resend } from "./log.js";

/** True if there was a response and the log has none of it. */
const isWithoutExcerpt = ({ kind, excerpt }: AttemptJson): boolean => kind === "http" && !excerpt;

function excerptOf(attempt: AttemptJson): Child {
  if (attempt.excerpt) return ["It answered:", h("pre", {}, attempt.excerpt)];
  return isWithoutExcerpt(attempt) && h("span", { class: "quiet" }, "Its response is not shown.");
}

/** Renders the attempts as a table, the first one first. */
const renderAttempts = ({ attempts }: DeliveryDetail["delivery"]): Child =>
  attempts.length === 0
    ? h("p", {}, "None yet.")
    : table(
        "Attempts, the first one first",
        ["When", "Outcome", "Code", "Took", "Step"],
        attempts.map((attempt, index) => ({
          key: String(index),
          cells: [
            time(attempt.at),
            [h("div", {}, attemptText(attempt)), excerptOf(attempt)],
            h("code", {}, attempt.code),
            lengthText(attempt.durationMs),
            attempt.isExtra ? "asked for" : `${attempt.step + 1}`,
          ],
        })),
      );

/** Renders a delivery: its facts and its attempts. */
const renderDelivery = (
  webhook: DeliveryDetail["webhook"],
  found: DeliveryDetail["delivery"],
): readonly Child[] => [
  h("p", {}, "To ", h("a", { href: `#/webhooks/${webhook.id}`, class: "address" }, webhook.url)),
  facts([
    ["State", [stateBadge(found), found.reason === null ? null : ` ${reasonText(found.reason)}`]],
    ["Next attempt", time(found.nextAttemptAt, "none")],
    ["Created", time(found.createdAt)],
    ["Ended", time(found.endedAt, "not yet")],
    ["Event", h("code", {}, found.eventId)],
  ]),
  h("h2", {}, "Attempts"),
  renderAttempts(found),
  found.attempts.some(isWithoutExcerpt) &&
    h(
      "p",
      { class: "quiet" },
      "The first bytes of an answer are kept where the host has set ",
      h("code", {}, "delivery.excerptCharacters"),
      "; an answer may also have been empty.",
    ),
];

export const delivery: View = {
  path: "/webhooks/:webhookId/deliveries/:deliveryId",
  title: "Delivery",
  part: "webhooks",
  async render(root, { webhookId = "", deliveryId = "" }, page) {
    const { api } = page;
    const webhookPath = `webhooks/${encodeURIComponent(webhookId)}`;
    const path = deliveryPath(webhookPath, { id: deliveryId });
    const actions = h("p");
    const body = h("div");
    const again = async (): Promise<void> => {
      const { id, text } = await resend(api, webhookPath, { id: deliveryId });
      page.say(text);
      if (id === deliveryId) await load();
      else page.go(`/${deliveryPath(webhookPath, { id })}`);
    };
    const load = async (): Promise<void> => {
      const { webhook, delivery: found } = await api.get<DeliveryDetail>(path);
      page.title(`Delivery of ${found.type}`);
      // Resending a delivered event is rarely urgent, so the button does not stand out.
      patch(
        actions,
        button("Send again", page, again, { class: found.state === "delivered" ? "plain" : "" }),
      );
      patch(body, renderDelivery(webhook, found));
    };
    root.append(actions, body);
    await load();
    page.keepFresh(load);
  },
};
