/** Returns the request of the host's framework that an adapter attached to a service's request. */

import { PostbellError } from "../src/core/errors.js";
import type { HttpRequest } from "../src/http/types.js";

/**
 * @param name the name of the calling function, for the message
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export function readHostRequest<T>(name: string, { hostRequest }: HttpRequest): T {
  if (hostRequest !== undefined) return hostRequest as T;
  throw new PostbellError(
    "invalid_argument",
    `${name}: the request did not come through an adapter of Postbell, so it has no host request.`,
    { field: "request" },
  );
}
