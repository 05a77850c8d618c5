/** Deliveries as the log has them: to find, to open, to send again. */

import type { DeliveryJson, DeliveryPage, DeliveryStateJson } from "../../shapes.js";
import type { Api } from "../api.js";

export interface Filter {
  readonly state?: DeliveryStateJson | "" | undefined;
  readonly type?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** A page may come back short, or empty, before the end. Twenty pages examine ten thousand events, what is kept of an account by default. */
const MOST_PAGES = 20;

/** `most` deliveries of the webhook at `path`, the newest first, over as many pages as that takes. */
export async function findDeliveries(
  { get }: Pick<Api, "get">,
  path: string,
  filter: Filter,
  most: number,
  from?: string,
): Promise<DeliveryPage> {
  const deliveries: DeliveryJson[] = [];
  let cursor = from;
  for (let pages = 1; ; pages += 1) {
    const limit = most - deliveries.length;
    const page = await get<DeliveryPage>(`${path}/deliveries`, { ...filter, cursor, limit });
    deliveries.push(...page.deliveries);
    if (page.next === null || deliveries.length >= most || pages === MOST_PAGES)
      return { deliveries, next: page.next };
    cursor = page.next;
  }
}

export const deliveryPath = (path: string, { id }: Pick<DeliveryJson, "id">): string =>
  `${path}/deliveries/${encodeURIComponent(id)}`;

/** Has a delivery attempted now: the same one while it is pending, else a new one of the same event. */
export async function resend(
  { send }: Pick<Api, "send">,
  path: string,
  delivery: Pick<DeliveryJson, "id">,
): Promise<{ readonly id: string; readonly text: string }> {
  const { id } = await send<{ id: string }>("POST", `${deliveryPath(path, delivery)}/resend`);
  const text =
    id === delivery.id
      ? "It is attempted once more now, and keeps its schedule."
      : "A new delivery of the same event was made.";
  return { id, text };
}
