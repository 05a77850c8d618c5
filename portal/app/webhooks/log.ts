/** The delivery log of a webhook: find, open and resend deliveries. */

import type { DeliveryJson, DeliveryPage, DeliveryStateJson } from "../../shapes.js";
import type { Api } from "../api.js";

export interface Filter {
  readonly state?: DeliveryStateJson | "" | undefined;
  readonly type?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/**
 * A page may be short or empty before the end. Twenty pages examine ten thousand events, the most
 * that an account keeps by default.
 */
const MOST_PAGES = 20;

/** Finds up to `limit` deliveries of the webhook at `path`, newest first, page by page. */
export async function findDeliveries(
  { get }: Pick<Api, "get">,
  path: string,
  filter: Filter,
  { limit: most, cursor: from }: { readonly limit: number; readonly cursor?: string | undefined },
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

/** Resends a delivery: a pending one is attempted now, a completed one gets a successor. */
export async function resend(
  { send }: Pick<Api, "send">,
  path: string,
  delivery: Pick<DeliveryJson, "id">,
): Promise<{ readonly id: string; readonly text: string }> {
  const { id } = await send<{ id: string }>("POST", `${deliveryPath(path, delivery)}/resend`);
  const text =
    id === delivery.id
      ? "It is attempted once more now, and keeps its schedule."
      : "A new delivery of the same event was created.";
  return { id, text };
}
