/** The identity of an event: the UUID that its host has for it, or one for a key of the host. */

import { PostbellError } from "../../core/errors.js";
import { isUuid, nameUuid, randomUUID } from "../../core/uuid.js";
import { checkName } from "../call-arguments.js";

/** The namespace of the UUIDs of idempotency keys. It may never change. */
const KEY_NAMESPACE = "5b5c1b0e-6e5f-4d0c-9a1f-3b8f6a2c7d41";

const invalid = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_argument", message, { field });

/**
 * Returns the id of an event, in lower case: `id`; or the name-based UUID of its account and
 * `idempotencyKey`, the same in every process; or a new one.
 *
 * @throws `invalid_argument` if one of them cannot be used, or both are given.
 */
export function toEventId(
  account: string,
  { id, idempotencyKey }: { id?: unknown; idempotencyKey?: unknown },
): string {
  if (idempotencyKey === undefined) {
    if (id === undefined) return randomUUID();
    if (typeof id === "string" && isUuid(id)) return id.toLowerCase();
    throw invalid("id", "id must be a UUID; for another text of your own, use idempotencyKey.");
  }
  if (id !== undefined)
    throw invalid("idempotencyKey", "An event has either id or idempotencyKey: leave out one of them.");
  checkName("idempotencyKey", idempotencyKey);
  // Neither may contain NUL, so no two pairs have one name.
  return nameUuid(KEY_NAMESPACE, `${account}\u0000${idempotencyKey}`);
}
