/** The parts that forwarding to both services has in common. */

import { HttpError } from "../http/errors.js";
import type { HttpRequest } from "../http/types.js";

/** Returns the named headers of a request, of those that it has. */
export const pickHeaders = (
  headers: HttpRequest["headers"],
  names: readonly string[],
): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** The error for a visitor without access to a part of the page. */
export const notFoundHere = (): HttpError =>
  new HttpError(404, "not_found", "There is nothing here for you.");
