/** One webhook: its health, its actions, its time axis and its deliveries. */

import type { EventTypesJson, SecretJson, WebhookDetail } from "../../shapes.js";
import { type Child, h, patch } from "../dom.js";
import { time } from "../format.js";
import { button, confirmed, facts } from "../forms.js";
import type { PageContext, View } from "../view.js";
import { createDeliveryTable } from "./delivery-table.js";
import { formatEventTypes } from "./event-types.js";
import { attemptText, healthBadge, healthText } from "./health.js";
import { secretPanel } from "./secret.js";
import { createTimeAxis } from "./time-axis.js";
import { createPanels } from "./webhook-panels.js";

const SOON_MS = 1_000;

/** Says an outcome and reads the webhook again. */
type Refresh = (text: string) => Promise<void>;

const renderOverview = ({ webhook, stats }: WebhookDetail): readonly Child[] => [
  h("p", {}, healthBadge(stats), " ", healthText(stats)),
  facts([
    ["Event types", formatEventTypes(webhook.eventTypes)],
    ["Pending", stats.pending],
    ["Delivered", stats.delivered],
    ["Failed", stats.failed],
    ["Withheld", stats.withheld],
    ["Next attempt", time(stats.nextAttemptAt, "none")],
    [
      "Last attempt",
      stats.lastAttempt === null
        ? "none"
        : [time(stats.lastAttempt.at), ": ", attemptText(stats.lastAttempt)],
    ],
  ]),
];

/** Creates the function that renders the buttons: test, enable or disable, delete. */
function createActions(page: PageContext, path: string, refresh: Refresh) {
  const { api } = page;
  const test = async (): Promise<void> => {
    await api.send("POST", `${path}/test`);
    await refresh("A test was sent; its outcome stands among the deliveries.");
  };
  const remove = async (): Promise<void> => {
    const explanation =
      "Its deliveries are removed with it, also those that still wait. This cannot be undone.";
    if (!(await confirmed("Delete this webhook?", explanation, "Delete the webhook"))) return;
    await api.send("DELETE", path);
    page.say("The webhook was deleted.");
    page.go("/webhooks");
  };
  return ({ webhook }: WebhookDetail): readonly Child[] => {
    const isEnabled = webhook.status === "ENABLED";
    const turn = async (): Promise<void> => {
      await api.send("PUT", path, { status: isEnabled ? "DISABLED" : "ENABLED" });
      await refresh(isEnabled ? "The webhook was disabled." : "The webhook was enabled.");
    };
    // The action that a visitor needs first stands out.
    const [testClass, turnClass] = isEnabled ? ["", "plain"] : ["plain", ""];
    return [
      button("Send a test", page, test, { "data-key": "test", class: testClass }),
      button(isEnabled ? "Disable" : "Enable", page, turn, { "data-key": "turn", class: turnClass }),
      button("Delete…", page, remove, { "data-key": "delete", class: "danger" }),
    ];
  };
}

/** Creates the parts of the page. `load` reads the webhook and draws them. */
function createWebhookPage(page: PageContext, path: string, eventTypes: readonly string[]) {
  const { api } = page;
  const overview = h("div");
  const actions = h("div", { class: "actions" });
  const axis = createTimeAxis(page, path);
  const log = createDeliveryTable(page, path, eventTypes, () => load());

  /** The counts at the last load: the deliveries are read again only when they change. */
  let known = "";
  const load = async (): Promise<void> => {
    const newest = await api.get<WebhookDetail>(path);
    page.title(newest.webhook.url);
    patch(overview, renderOverview(newest));
    patch(actions, renderActions(newest));
    const counts = JSON.stringify(newest.stats);
    if (counts === known) return axis.draw(newest);
    await Promise.all([axis.load(newest), log.load()]);
    known = counts;
  };
  const refresh: Refresh = async (text) => {
    page.say(text);
    await load();
    // An attempt usually ends within moments, sooner than the page refreshes by itself.
    setTimeout(() => void load().catch(page.fail), SOON_MS);
  };
  const renderActions = createActions(page, path, refresh);
  return { overview, actions, axis: axis.element, log: log.element, load, refresh };
}

export const webhookPage: View = {
  path: "/webhooks/:webhookId",
  title: "Webhook",
  part: "webhooks",
  async render(root, { webhookId = "" }, page) {
    const { api } = page;
    const path = `webhooks/${encodeURIComponent(webhookId)}`;
    const { eventTypes } = await api.get<EventTypesJson>("event-types");
    const { overview, actions, axis, log, load, refresh } = createWebhookPage(page, path, eventTypes);
    const { webhook } = await api.get<WebhookDetail>(path);
    const secret = h("div");
    const showSecret = (created: SecretJson): void => {
      const panel = secretPanel(created.secret, page);
      secret.replaceChildren(panel);
      panel.querySelector("input")?.focus();
    };
    root.append(
      overview,
      actions,
      secret,
      createPanels({ page, path, webhook, eventTypes, refresh, showSecret }),
      h("h2", {}, "Time axis"),
      axis,
      h("h2", {}, "Deliveries"),
      log,
    );
    await load();
    page.keepFresh(load);
  },
};
