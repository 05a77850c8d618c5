/** What a delivery is called: its event type, its record and the beginning of its event's id. */

import type { DeliveryRowJson } from "../../shapes.js";
import { CopyButton } from "../components/small.js";
import { shortenId } from "./wording.js";

export function EventId({ id }: { readonly id: string }) {
  return (
    <span class="event-id">
      <code title={id}>{shortenId(id)}</code> <CopyButton text={id} label="event ID" />
    </span>
  );
}

export function DeliveryName({
  delivery: { type, subject, eventId },
  link,
}: {
  readonly delivery: Pick<DeliveryRowJson, "type" | "subject" | "eventId">;
  readonly link: string;
}) {
  return (
    <div class="delivery-name">
      <a href={link}>{type}</a>
      {subject !== null && <span class="quiet">{subject}</span>}
      <EventId id={eventId} />
    </div>
  );
}
