/** Every option of `createPortal`: its type for hosts, and the table of defaults and ranges. */

import type { Content } from "../src/content/service.js";
import type { Clock } from "../src/core/clock.js";
import { PostbellError } from "../src/core/errors.js";
import { hasMethods, hostOptions } from "../src/core/host-options.js";
import type { Logger, LoggerOption } from "../src/core/logger.js";
import { hook, readOptions, value, wholeNumber } from "../src/core/options.js";
import type { HttpRequest } from "../src/http/types.js";
import type { Subscriber } from "../src/webhooks/access.js";
import type { Webhooks } from "../src/webhooks/service.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Who looks at the portal, as the host knows him. */
export interface Visitor {
  /** Shown on the page. */
  readonly name: string;
  /**
   * The subscriber on whose behalf webhooks are read and changed. Without it the webhooks part is
   * hidden. A webhook that is registered here belongs to the API key `id`.
   */
  readonly subscriber?: Subscriber | undefined;
  /**
   * The user on whose behalf content is read and changed, with that user's permissions. Without it
   * the content part is hidden.
   */
  readonly userId?: number | undefined;
}

/**
 * Returns the visitor that a request comes from, as the host's session says, or `null` (401). It is
 * called for the page and for each of its requests. If it throws or takes longer than 5 s: 503.
 */
export type Authorize = (request: HttpRequest) => Awaitable<Visitor | null | undefined>;

/** The part of a webhook service that the portal uses. */
export type PortalWebhooks = Pick<
  Webhooks<string>,
  "registrations" | "deliveries" | "eventTypes" | "schedule"
>;

/** The options of `createPortal`. */
export interface PortalOptions {
  /** The service whose webhooks are shown. */
  readonly webhooks?: PortalWebhooks | undefined;
  /** The service whose content is shown. */
  readonly content?: Content | undefined;
  readonly authorize: Authorize;
  /** The title of the page. Default: `Postbell`. */
  readonly title?: string | undefined;
  /**
   * Requests about webhooks per minute that the page may send for one account in this process; 0
   * sets no limit. A list counts one more for each webhook in it. Default: 3 000.
   */
  readonly requestsPerMinute?: number | undefined;
  readonly clock?: Clock | undefined;
  /** Default: warnings and errors go to `console`; `false` logs nothing. */
  readonly logger?: Logger | false | undefined;
}

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const portalOptions = {
  webhooks: value<PortalWebhooks | undefined>(
    "a service of createWebhooks",
    (given) =>
      hasMethods("eventTypes")(given) &&
      hasMethods("list", "get", "resend")((given as PortalWebhooks).deliveries) &&
      hasMethods("list", "get", "create")((given as PortalWebhooks).registrations) &&
      Array.isArray((given as PortalWebhooks).schedule),
    undefined,
    "a service",
  ),
  content: value<Content | undefined>(
    "a service of createContent",
    (given) =>
      hasMethods("handleAs", "restoreRevision")(given) && hasMethods("handle")((given as Content).uploads),
    undefined,
    "a service",
  ),
  authorize: hook<Authorize>(),
  title: value<string>(
    "text of 1 to 100 characters",
    (given) => typeof given === "string" && given.length >= 1 && given.length <= 100,
    "Postbell",
    "text",
  ),
  requestsPerMinute: wholeNumber("count", 3_000, { min: 0 }),
  ...hostOptions,
};

/** The options of `createPortal` with their defaults. */
export interface PortalSettings {
  readonly webhooks: PortalWebhooks | undefined;
  readonly content: Content | undefined;
  readonly authorize: Authorize;
  readonly title: string;
  readonly requestsPerMinute: number;
  readonly clock: Clock;
  readonly logger: LoggerOption;
}

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createPortal: ${message}`, { field });
};

/** Errors: `invalid_option`. */
export function readPortalOptions(options: unknown): PortalSettings {
  const { authorize, ...settings } = readOptions("createPortal", portalOptions, options);
  if (!authorize)
    return refuse("authorize", "authorize is missing: it says who may look, by your own session.");
  if (!settings.webhooks && !settings.content)
    refuse("webhooks", "give webhooks, content, or both: there is nothing to show otherwise.");
  return { ...settings, authorize };
}
