/**
 * Formats and parses delivery ids. An id contains webhook and event, so no storage needs an index.
 */

/** Opaque to users. `serial` is 0 for the delivery of an emit; `resend` and `recover` count up. */
export interface DeliveryKey {
  readonly webhookId: string;
  readonly eventId: string;
  readonly serial: number;
}

/** Returns `<webhook id>.<event id>`, followed by `.<serial>` unless it is 0. For storages. */
export const formatDeliveryId = ({ webhookId, eventId, serial }: DeliveryKey): string =>
  serial === 0 ? `${webhookId}.${eventId}` : `${webhookId}.${eventId}.${serial}`;

/** Parses the id of a delivery; returns `undefined` for any other text. For storages. */
export function parseDeliveryId(id: string): DeliveryKey | undefined {
  const match = /^([0-9a-f-]{36})\.([0-9a-f-]{36})(?:\.([1-9][0-9]{0,8}))?$/.exec(id);
  const [, webhookId, eventId, serial] = match ?? [];
  return webhookId && eventId ? { webhookId, eventId, serial: Number(serial ?? 0) } : undefined;
}
