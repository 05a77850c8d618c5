/** Creates the error of a mail that was not sent. */

import { PostbellError } from "../src/core/errors.js";

/** `why` must be safe to log: it contains no words of the mail server. */
export const createUnsent = (why: string, cause?: unknown): PostbellError =>
  new PostbellError("mail_not_sent", `smtpNotifier: the mail was not sent: ${why}.`, { cause });
