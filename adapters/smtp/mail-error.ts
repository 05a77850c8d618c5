/** Creates the error for a mail that could not be sent. */

import { PostbellError } from "../../src/core/errors.js";

/** `why` must be safe to log: it contains no words of the mail server. */
export const createUnsent = (why: string, cause?: unknown): PostbellError =>
  new PostbellError("mail_not_sent", `smtpNotifier: the mail was not sent: ${why}.`, { cause });
