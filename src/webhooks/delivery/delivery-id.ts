/**
 * The id of a delivery says which webhook and which event it is of, so that no storage needs an
 * index to find it.
 */

/**
 * Opaque to users. `serial` 0 is the delivery made by emitting; `resend` and `recover` count on.
 */
export interface DeliveryKey {
  readonly webhookId: string;
  readonly eventId: string;
  readonly serial: number;
}

/**
 * The id of a delivery: `<webhook id>.<event id>`, with `.<serial>` unless that is 0. For storages.
 */
export const formatDeliveryId = ({ webhookId, eventId, serial }: DeliveryKey): string =>
  serial === 0 ? `${webhookId}.${eventId}` : `${webhookId}.${eventId}.${serial}`;

/** The parts of a delivery's id; `undefined` for a text that is none. For storages. */
export function parseDeliveryId(id: string): DeliveryKey | undefined {
  const match = /^([0-9a-f-]{36})\.([0-9a-f-]{36})(?:\.([1-9][0-9]{0,8}))?$/.exec(id);
  const [, webhookId, eventId, serial] = match ?? [];
  return webhookId && eventId ? { webhookId, eventId, serial: Number(serial ?? 0) } : undefined;
}
