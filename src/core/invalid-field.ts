/** Creates the error of a field that a caller gave. */

import { PostbellError } from "./errors.js";

/** `message` names the field and says what to change. */
export const invalidField = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });
