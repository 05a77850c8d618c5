/** The deliveries of one webhook as a table, with filters and pages. */

import type { DeliveryJson, DeliveryStateJson } from "../../shapes.js";
import { type Child, h, patch } from "../dom.js";
import { fromLocalInput, time, timeText } from "../format.js";
import { button, field, form, table } from "../forms.js";
import { createPager } from "../pager.js";
import type { PageContext } from "../view.js";
import { attemptText, reasonText, stateBadge } from "./health.js";
import { deliveryPath, type Filter, findDeliveries, resend } from "./log.js";
import { createOption } from "./time-axis.js";

const PAGE = 25;
const STATES = ["pending", "delivered", "failed", "withheld"] as const;
const COLUMNS = ["Event type", "State", "Created", "Attempts", "Last attempt", "Next attempt", "Repair"];

/** Creates the filters of the table. `read` returns what they are set to. */
function createFilters(eventTypes: readonly string[]) {
  const any = () => createOption("", "any");
  const state = h(
    "select",
    {},
    any(),
    STATES.map((name) => createOption(name, name)),
  );
  const type = h(
    "select",
    {},
    any(),
    [...eventTypes, "webhook.test"].map((name) => createOption(name, name)),
  );
  const since = h("input", { type: "datetime-local" });
  const until = h("input", { type: "datetime-local" });
  return {
    fields: {
      state: field("State", state),
      type: field("Event type", type),
      since: field("Created after", since),
      until: field("before", until),
    },
    read: (): Filter => ({
      state: state.value as DeliveryStateJson | "",
      type: type.value,
      since: fromLocalInput(since.value),
      until: fromLocalInput(until.value),
    }),
  };
}

/** Renders the table, newest first. `resendButton` renders the button of a delivery. */
function renderDeliveries(
  path: string,
  deliveries: readonly DeliveryJson[],
  resendButton: (delivery: DeliveryJson) => Child,
): HTMLElement {
  const linkTo = (delivery: DeliveryJson, text: string): HTMLElement =>
    h("a", { href: `#/${deliveryPath(path, delivery)}` }, text);
  /** The newest delivery of each event on this page. */
  const newest = new Map<string, DeliveryJson>();
  const toRow = (delivery: DeliveryJson) => {
    const lastAttempt = delivery.attempts.at(-1);
    const newer = newest.get(delivery.eventId);
    newest.set(delivery.eventId, newer ?? delivery);
    return {
      key: delivery.id,
      cells: [
        linkTo(delivery, delivery.type),
        [stateBadge(delivery), delivery.reason === null ? null : ` ${reasonText(delivery.reason)}`],
        time(delivery.createdAt),
        delivery.attempts.length,
        lastAttempt === undefined ? "none" : attemptText(lastAttempt),
        time(delivery.nextAttemptAt),
        newer !== undefined
          ? linkTo(newer, "sent again")
          : delivery.state !== "delivered" && resendButton(delivery),
      ],
    };
  };
  return table("Deliveries, the newest first", COLUMNS, deliveries.map(toRow));
}

/** Creates the table. `refresh` is called after a delivery was sent again. */
export function createDeliveryTable(
  { api, ...page }: PageContext,
  path: string,
  eventTypes: readonly string[],
  refresh: () => Promise<void>,
) {
  const { fields, read } = createFilters(eventTypes);
  const rows = h("div");
  let query: Filter = {};
  const turned = async (): Promise<void> => {
    await load();
    page.say(`Page ${pager.number()} of the deliveries.`);
  };
  const pager = createPager(page, turned, ["Newer", "Older"]);

  const resendButton = (delivery: DeliveryJson): HTMLElement => {
    const act = async (): Promise<void> => {
      const { text } = await resend(api, path, delivery);
      page.say(text);
      await refresh();
    };
    return button("Send again", page, act, {
      class: "plain",
      "aria-label": `Send again: ${delivery.type}, ${timeText(delivery.createdAt)}`,
    });
  };

  const load = async (): Promise<void> => {
    const requested = query;
    const cursor = pager.cursor();
    const { deliveries, next } = await findDeliveries(api, path, requested, { limit: PAGE, cursor });
    // The visitor may have turned the page or changed the filter meanwhile.
    if (requested !== query || cursor !== pager.cursor()) return;
    patch(
      rows,
      deliveries.length === 0
        ? h("p", {}, next === null ? "No delivery here." : "None so far; older ones may follow.")
        : renderDeliveries(path, deliveries, resendButton),
      pager.buttons(next),
    );
  };
  const filter = async (): Promise<void> => {
    query = read();
    pager.reset();
    await load();
    page.say("The deliveries were filtered.");
  };

  const filters = form(page, {
    class: "row",
    "aria-label": "Filter the deliveries",
    fields,
    content: Object.values(fields).map(({ element }) => element),
    submit: "Filter",
    act: filter,
  });
  return { element: h("div", {}, filters, rows), load };
}
