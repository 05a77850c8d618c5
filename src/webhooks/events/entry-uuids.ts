/** Assigns the UUIDs that identify the entries of a bundle, the same in every attempt. */

import { isUuid, nameUuid } from "../../core/uuid.js";
import type { ResourceText } from "./resource-text.js";

/**
 * The namespace for resources whose id is not a UUID. It must never change, or their `fullUrl`
 * would change.
 */
const RESOURCES = "6b0f7c52-3d0e-4c59-9a3e-8f5f0f1f7a4d";

/**
 * Returns the UUID of each entry's `fullUrl`.
 *
 * - If the resource's id is a UUID: that id.
 * - With another id: a UUID named by account, type and id, so it is the same in every event.
 * - Without an id: a UUID named by the event and the position.
 */
export function assignEntryUuids(
  entries: readonly ResourceText[],
  { account, eventId }: { readonly account: string; readonly eventId: string },
): readonly string[] {
  const taken = new Set<string>();
  return entries.map(({ resourceType, id }, index) => {
    const own = id !== undefined && isUuid(id) ? id.toLowerCase() : undefined;
    // Two types may share an id, but two entries of a bundle may not share a fullUrl (FHIR R4,
    // bdl-7).
    const uuid =
      own !== undefined && !taken.has(own)
        ? own
        : id === undefined
          ? nameUuid(eventId, `entry ${index}`)
          : nameUuid(RESOURCES, JSON.stringify([account, resourceType, id]));
    taken.add(uuid);
    return uuid;
  });
}
