/** One webhook: how it is, what can be done, its time axis and its deliveries. */

import type {
  DeliveryJson,
  DeliveryStateJson,
  EventTypesJson,
  SecretJson,
  WebhookDetail,
  WebhookJson,
} from "../../shapes.js";
import { h, patch } from "../dom.js";
import { fromLocalInput, pluralise, time, timeText, toLocalInput } from "../format.js";
import { button, confirmed, createPager, facts, field, form, table } from "../forms.js";
import type { PageContext, View } from "../view.js";
import { formatEventTypes, typeChoice } from "./event-types.js";
import { attemptText, healthBadge, healthText, reasonText, stateBadge } from "./health.js";
import { deliveryPath, type Filter, findDeliveries, resend } from "./log.js";
import { plotted, type TimeSpan } from "./plan.js";
import { renderTimeAxis } from "./plot.js";
import { secretPanel } from "./secret.js";

const ROOM = 20;
const PAGE = 25;
const HOUR_MS = 3_600_000;
const SOON_MS = 1_000;

const option = (value: string, label: string) => h("option", { value }, label);

export const webhookPage: View = {
  path: "/webhooks/:webhookId",
  title: "Webhook",
  part: "webhooks",
  async render(root, { webhookId = "" }, page) {
    const { api } = page;
    const path = `webhooks/${encodeURIComponent(webhookId)}`;
    const overview = h("div");
    const actions = h("div", { class: "actions" });
    const secret = h("div");
    const { eventTypes } = await api.get<EventTypesJson>("event-types");
    const axis = createAxis(page, path);
    const log = createLog(page, path, eventTypes, () => load());

    /** What the deliveries came to when they were read last: while it is the same, so are they. */
    let known = "";
    const load = async (): Promise<void> => {
      const newest = await api.get<WebhookDetail>(path);
      showOverview(newest);
      const figures = JSON.stringify(newest.stats);
      if (figures === known) return axis.draw(newest);
      await Promise.all([axis.load(newest), log.load()]);
      known = figures;
    };
    const refresh = async (text: string): Promise<void> => {
      page.say(text);
      await load();
      // What was asked for comes to an outcome within moments, sooner than the page is renewed by itself.
      setTimeout(() => void load().catch(page.fail), SOON_MS);
    };

    const showOverview = ({ webhook, stats }: WebhookDetail): void => {
      page.title(webhook.url);
      patch(
        overview,
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
      );
      const isEnabled = webhook.status === "ENABLED";
      const turn = async (): Promise<void> => {
        await api.send("PUT", path, { status: isEnabled ? "DISABLED" : "ENABLED" });
        await refresh(isEnabled ? "The webhook was disabled." : "The webhook was enabled.");
      };
      patch(
        actions,
        // The first thing to do stands out.
        button("Send a test", page, test, { "data-key": "test", class: isEnabled ? "" : "plain" }),
        button(isEnabled ? "Disable" : "Enable", page, turn, {
          "data-key": "turn",
          class: isEnabled ? "plain" : "",
        }),
        button("Delete…", page, remove, { "data-key": "delete", class: "danger" }),
      );
    };
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

    const detail = await api.get<WebhookDetail>(path);
    const showSecret = (made: SecretJson): void => {
      const panel = secretPanel(made.secret, page);
      secret.replaceChildren(panel);
      panel.querySelector("input")?.focus();
    };
    root.append(
      overview,
      actions,
      secret,
      h(
        "div",
        { class: "panels" },
        recoverPart(page, path, detail, refresh),
        rotatePart(page, path, showSecret),
        changePart(page, path, detail.webhook, eventTypes, refresh),
      ),
      h("h2", {}, "Time axis"),
      axis.element,
      h("h2", {}, "Deliveries"),
      log.element,
    );
    await load();
    page.keepFresh(load);
  },
};

function recoverPart(
  { api, ...page }: PageContext,
  path: string,
  { webhook }: WebhookDetail,
  refresh: (text: string) => Promise<void>,
): HTMLElement {
  // All that it may have missed: a new address, or enabling it, moves the time since when it fails, and what was lost before stays lost.
  const from = Date.parse(webhook.createdDate);
  const input = h("input", {
    type: "datetime-local",
    value: toLocalInput(from),
    required: true,
  });
  const since = field(
    "Since",
    input,
    "Events since then that failed, or were emitted while the webhook was disabled, as far as they are kept. What was delivered is not sent again.",
  );
  const act = async (): Promise<void> => {
    const { count } = await api.send<{ count: number }>("POST", `${path}/recover`, {
      since: fromLocalInput(input.value),
    });
    await refresh(
      count === 0
        ? "There was nothing to recover. Whatever is pending goes with its next attempt, or at once with Send again."
        : `${pluralise(count, "event is", "events are")} sent, one after another.`,
    );
  };
  return h(
    "details",
    { class: "panel" },
    h("summary", {}, "Recover events"),
    form(page, { fields: { since }, content: [since.element], submit: "Recover", act }),
  );
}

function rotatePart(
  { api, ...page }: PageContext,
  path: string,
  show: (made: SecretJson) => void,
): HTMLElement {
  const select = h(
    "select",
    {},
    option(String(24 * HOUR_MS), "24 hours"),
    option(String(HOUR_MS), "1 hour"),
    option(String(168 * HOUR_MS), "7 days"),
    option("0", "not at all"),
  );
  const overlap = field(
    "The old secret goes on signing for",
    select,
    "So long the receiver has to learn the new one.",
  );
  const act = async (): Promise<void> => {
    const made = await api.send<SecretJson>("POST", `${path}/rotate`, { overlapMs: Number(select.value) });
    page.say("There is a new secret.");
    show(made);
  };
  return h(
    "details",
    { class: "panel" },
    h("summary", {}, "Rotate the secret"),
    form(page, {
      fields: { overlapMs: overlap },
      content: [overlap.element],
      submit: "Make a new secret",
      act,
    }),
  );
}

function changePart(
  { api, ...page }: PageContext,
  path: string,
  webhook: WebhookJson,
  eventTypes: readonly string[],
  refresh: (text: string) => Promise<void>,
): HTMLElement {
  const input = h("input", { type: "url", class: "wide", value: webhook.url, autocomplete: "off" });
  const url = field(
    "Address of the endpoint",
    input,
    "What waits goes to the new address, and how long it has failed is counted anew.",
  );
  const types = typeChoice(eventTypes, webhook.eventTypes);
  const namesOf = (chosen: readonly string[] | null | undefined): readonly string[] =>
    [...(chosen ?? ["*"])].sort();
  let base = webhook;
  const act = async (): Promise<void> => {
    const [address, chosen] = [input.value.trim(), namesOf(types.chosen())];
    // What the visitor has left alone may have been changed by somebody else meanwhile.
    const changes = {
      ...(address !== base.url && { url: address }),
      ...(chosen.join() !== namesOf(base.eventTypes).join() && { eventTypes: chosen }),
    };
    if (Object.keys(changes).length === 0) return page.say("There is nothing to save.");
    base = await api.send<WebhookJson>("PUT", path, changes);
    await refresh("The webhook was changed.");
  };
  return h(
    "details",
    { class: "panel" },
    h("summary", {}, "Change address and event types"),
    form(page, {
      fields: { url, eventTypes: types.field, event_types: types.field },
      content: [url.element, types.field.element],
      submit: "Save",
      act,
    }),
  );
}

/** The time axis, over the deliveries that are in trouble and the newest besides. */
function createAxis({ api, signal, fail }: PageContext, path: string) {
  const drawn = h("div");
  const select = h(
    "select",
    { onchange: () => draw() },
    option("all", "the whole schedule"),
    option("day", "24 hours around now"),
    option("hour", "an hour around now"),
  );
  const span = field("Show", select);
  let detail: WebhookDetail | undefined;
  let deliveries: readonly DeliveryJson[] = [];
  const draw = (): void => {
    if (!detail) return;
    patch(
      drawn,
      deliveries.length === 0
        ? h("p", {}, "No delivery yet.")
        : renderTimeAxis(
            {
              deliveries,
              stats: detail.stats,
              schedule: detail.schedule,
              now: Date.parse(detail.now),
              span: select.value as TimeSpan,
              width: Math.max(320, drawn.clientWidth),
            },
            (delivery) =>
              h(
                "a",
                { href: `#/${deliveryPath(path, delivery)}` },
                `${delivery.type}, ${timeText(delivery.createdAt)}`,
              ),
          ),
    );
  };
  const observer = new ResizeObserver(() => {
    try {
      draw();
    } catch (error) {
      fail(error);
    }
  });
  observer.observe(drawn);
  signal.addEventListener("abort", () => observer.disconnect());
  return {
    element: h("div", {}, span.element, drawn),
    /** The same deliveries at a later time. */
    draw(newest: WebhookDetail): void {
      detail = newest;
      draw();
    },
    async load(newest: WebhookDetail): Promise<void> {
      const { pending, failed, health } = newest.stats;
      const { failingSince } = health;
      // Never more than there are, so that a log without more of them is not searched to its end.
      const find = (count: number, filter: Filter) =>
        count === 0 ? { deliveries: [] } : findDeliveries(api, path, filter, Math.min(count, ROOM));
      const pages = await Promise.all([
        find(ROOM, {}),
        find(failed, { state: "failed" }),
        find(pending, { state: "pending" }),
        // The newest may all wait for their first attempt, behind those that the trouble began with.
        failingSince === null
          ? { deliveries: [] }
          : find(pending, {
              state: "pending",
              until: new Date(Date.parse(failingSince) + 1).toISOString(),
            }),
      ]);
      deliveries = plotted(
        pages.flatMap((page) => page.deliveries),
        ROOM,
      );
      detail = newest;
      draw();
    },
  };
}

/** The deliveries as a table, with filters and pages. */
function createLog(
  { api, ...page }: PageContext,
  path: string,
  eventTypes: readonly string[],
  refresh: () => Promise<void>,
) {
  const state = h(
    "select",
    {},
    option("", "any"),
    option("pending", "pending"),
    option("delivered", "delivered"),
    option("failed", "failed"),
    option("withheld", "withheld"),
  );
  const type = h(
    "select",
    {},
    option("", "any"),
    [...eventTypes, "webhook.test"].map((name) => option(name, name)),
  );
  const since = h("input", { type: "datetime-local" });
  const until = h("input", { type: "datetime-local" });
  const fields = {
    state: field("State", state),
    type: field("Event type", type),
    since: field("Made from", since),
    until: field("until", until),
  };
  const rows = h("div");
  let query: Filter = {};
  const turned = async (): Promise<void> => {
    await load();
    page.say(`Page ${pager.number()} of the deliveries.`);
  };
  const pager = createPager(page, turned, ["Newer", "Older"]);
  const again = (delivery: DeliveryJson) => async (): Promise<void> => {
    const { text } = await resend(api, path, delivery);
    page.say(text);
    await refresh();
  };

  const load = async (): Promise<void> => {
    const asked = query;
    const cursor = pager.cursor();
    const { deliveries, next } = await findDeliveries(api, path, asked, PAGE, cursor);
    // Turned, or filtered, meanwhile.
    if (asked !== query || cursor !== pager.cursor()) return;
    /** Of each event that was sent again, where both stand on this page. */
    const newest = new Map<string, DeliveryJson>();
    patch(
      rows,
      deliveries.length === 0
        ? h("p", {}, next === null ? "No delivery here." : "None so far; older ones may follow.")
        : table(
            "Deliveries, the newest first",
            ["Event type", "State", "Made", "Attempts", "Last attempt", "Next attempt", "Repair"],
            deliveries.map((delivery) => {
              const lastAttempt = delivery.attempts.at(-1);
              const newer = newest.get(delivery.eventId);
              newest.set(delivery.eventId, newer ?? delivery);
              return {
                key: delivery.id,
                cells: [
                  h("a", { href: `#/${deliveryPath(path, delivery)}` }, delivery.type),
                  [stateBadge(delivery), delivery.reason === null ? null : ` ${reasonText(delivery.reason)}`],
                  time(delivery.createdAt),
                  delivery.attempts.length,
                  lastAttempt === undefined ? "none" : attemptText(lastAttempt),
                  time(delivery.nextAttemptAt),
                  newer !== undefined
                    ? h("a", { href: `#/${deliveryPath(path, newer)}` }, "sent again")
                    : delivery.state !== "delivered" &&
                      button("Send again", page, again(delivery), {
                        class: "plain",
                        "aria-label": `Send again: ${delivery.type}, ${timeText(delivery.createdAt)}`,
                      }),
                ],
              };
            }),
          ),
      pager.buttons(next),
    );
  };
  const filter = async (): Promise<void> => {
    query = {
      state: state.value as DeliveryStateJson | "",
      type: type.value,
      since: fromLocalInput(since.value),
      until: fromLocalInput(until.value),
    };
    pager.reset();
    await load();
    page.say("The deliveries were filtered.");
  };
  return {
    element: h(
      "div",
      {},
      form(page, {
        class: "row",
        "aria-label": "Filter the deliveries",
        fields,
        content: Object.values(fields).map(({ element }) => element),
        submit: "Filter",
        act: filter,
      }),
      rows,
    ),
    load,
  };
}
