/** The time axis of one webhook, over the deliveries in trouble and the newest others. */

import type { DeliveryJson, DeliveryPage, WebhookDetail } from "../../shapes.js";
import { h, patch } from "../dom.js";
import { timeText } from "../format.js";
import { field } from "../forms.js";
import type { PageContext } from "../view.js";
import { deliveryPath, type Filter, findDeliveries } from "./log.js";
import { plotted, type TimeSpan } from "./plan.js";
import { renderTimeAxis } from "./plot.js";

/** Deliveries that the axis has room for. */
const ROOM = 20;

export const createOption = (value: string, label: string): HTMLOptionElement =>
  h("option", { value }, label);

/** Finds the deliveries that the axis shows. */
async function findPlotted(
  api: PageContext["api"],
  path: string,
  { pending, failed, health: { failingSince } }: WebhookDetail["stats"],
): Promise<readonly DeliveryJson[]> {
  // At most as many as there are, so that a log with fewer of them is not searched to its end.
  const find = async (count: number, filter: Filter): Promise<Pick<DeliveryPage, "deliveries">> =>
    count === 0 ? { deliveries: [] } : findDeliveries(api, path, filter, { limit: Math.min(count, ROOM) });
  const pages = await Promise.all([
    find(ROOM, {}),
    find(failed, { state: "failed" }),
    find(pending, { state: "pending" }),
    // The newest deliveries may all wait for a first attempt; those that failed are older.
    failingSince === null
      ? { deliveries: [] }
      : find(pending, {
          state: "pending",
          until: new Date(Date.parse(failingSince) + 1).toISOString(),
        }),
  ]);
  return plotted(
    pages.flatMap((page) => page.deliveries),
    ROOM,
  );
}

/** Creates the time axis. It redraws when its width or its span changes. */
export function createTimeAxis({ api, signal, fail }: PageContext, path: string) {
  const drawn = h("div");
  const select = h(
    "select",
    { onchange: () => draw() },
    createOption("all", "the whole schedule"),
    createOption("day", "24 hours around now"),
    createOption("hour", "an hour around now"),
  );
  const span = field("Show", select);
  let detail: WebhookDetail | undefined;
  let deliveries: readonly DeliveryJson[] = [];

  const linkTo = (delivery: DeliveryJson): HTMLElement =>
    h(
      "a",
      { href: `#/${deliveryPath(path, delivery)}` },
      `${delivery.type}, ${timeText(delivery.createdAt)}`,
    );
  const renderAxis = ({ stats, schedule, now }: WebhookDetail) =>
    renderTimeAxis(
      {
        deliveries,
        stats,
        schedule,
        now: Date.parse(now),
        span: select.value as TimeSpan,
        width: Math.max(320, drawn.clientWidth),
      },
      linkTo,
    );
  const draw = (): void => {
    if (!detail) return;
    patch(drawn, deliveries.length === 0 ? h("p", {}, "No delivery yet.") : renderAxis(detail));
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
    /** Draws the same deliveries at a later time. */
    draw(newest: WebhookDetail): void {
      detail = newest;
      draw();
    },
    /** Reads the deliveries and draws them. */
    async load(newest: WebhookDetail): Promise<void> {
      deliveries = await findPlotted(api, path, newest.stats);
      detail = newest;
      draw();
    },
  };
}
