/** The options of `createReceiver`: their types, and the one table of defaults and ranges. */

import { type Clock, systemClock } from "../core/clock.js";
import { loggerOption } from "../core/host-options.js";
import type { Logger } from "../core/logger.js";
import { flag, hook, value, wholeNumber } from "../core/options.js";
import { parseUrl } from "../core/parse-url.js";
import { readPublicKey } from "../signature/asymmetric.js";
import { isSecret, SIGNATURE_HEADER } from "../signature/signature.js";
import type { EventCatalogue } from "../webhooks/event-types/catalogue.js";
import type { EventNotification, NotificationOf, PlainNotification } from "./notification.js";
import type { ReceivedEvents } from "./received-events.js";
import type { WebhookScheme } from "./scheme.js";

/**
 * The options of {@link createReceiver}. Only `onEvent` and one of `secrets` and `publicKeys` are
 * required.
 *
 * @example
 * const options: ReceiverOptions = {
 *   secrets: [process.env.WEBHOOK_SECRET, process.env.PREVIOUS_SECRET],
 *   onEvent: async ({ id, event }) => queue.add(event["hub.event"], event.context[0].resource),
 *   logger: console,
 * };
 */
export interface ReceiverOptions {
  /**
   * Required, unless `publicKeys` is set. The endpoint's secret; during a rotation, both, so that
   * no delivery is refused. Public keys are refused: everybody could sign with them.
   */
  secrets?: string | readonly string[] | undefined;
  /**
   * Public keys of the sender, in place of `secrets`: at most 5, each `whpk_` and the `x` of a key
   * of its `/v1/jwks.json`. Default: none. Then one of the `v1a` signatures in `webhook-signature`
   * must match. The sender uses one key for all its endpoints, so also check that the event is for
   * you, such as by `hub.topic`.
   */
  publicKeys?: string | readonly string[] | undefined;
  /**
   * Required. Called once for each event; the delivery is acknowledged when it returns or its
   * promise resolves. If it throws, the sender is told and delivers again. The sender waits 15
   * seconds.
   *
   * It must settle, because this process refuses repetitions of the event until then. Other
   * processes with the same `storage` refuse them for five minutes. After that they handle the
   * event too, because this process may have died. If it can take longer, write its effect with
   * `markHandled` of the storage, so that it happens once all the same.
   */
  onEvent: (event: EventNotification) => unknown;
  /** Leave it out for events with a FHIR resource; {@link PlainReceiverOptions} are for others. */
  body?: undefined;
  /** Leave it out for deliveries of Postbell; {@link SchemeReceiverOptions} are for others. */
  verify?: undefined;
  /**
   * Header that carries the signature. Default `X-Service-Signature`. Set it if the sender uses
   * another name.
   */
  header?: string | undefined;
  /**
   * Path of deliveries, below the mount point. Default: the mount point itself, whatever a route of
   * the host matches, such as `app.post("/webhooks/in", expressAdapter(receiver))`, and where the
   * host hands over whole paths (`createServer(nodeAdapter(receiver))`, a route of Next.js), every
   * POST that has the signature header. Set it if several receivers share such a host.
   */
  path?: string | undefined;
  /**
   * Largest difference between the time of a signature and now, in either direction. Default 300
   * 000, five minutes. Raise it only if your clock is inaccurate: it is the window for replays.
   */
  toleranceMs?: number | undefined;
  /** The memory of event ids, by which repetitions are recognised. */
  duplicates?:
    | {
        /** Event ids remembered. Default 10 000. Raise it if you receive more within `ttlMs`. */
        max?: number | undefined;
        /**
         * How long they are remembered. Default 6 days: three of retries, and three in which a
         * failed delivery can be resent. With `catchUp`, at least as long as the sender keeps
         * events.
         */
        ttlMs?: number | undefined;
      }
    | undefined;
  /**
   * Remembers event ids for all processes and beyond a restart, in addition to `duplicates`:
   * `pgReceived`, `sqliteReceived` or `redisReceived` of `postbell/received`. Default: none, ids
   * are remembered in this process only. Set it if `onEvent` must not see an event twice.
   */
  storage?: ReceivedEvents | undefined;
  limits?:
    | {
        /** Largest body of a delivery. Larger ones are refused unread. Default 1 MiB. */
        requestBytes?: number | undefined;
      }
    | undefined;
  /**
   * Fetches the events that were missed, after {@link Receiver.start} and from then on every
   * `everyMs`: those whose deliveries failed while this endpoint was away. Each event is handled
   * once, whether it arrives as a delivery or is fetched. Needs `storage`, which also remembers how
   * far the feed was read, the cursor. For deliveries of Postbell. Default: nothing is fetched.
   *
   * If `onEvent` throws for an event, the feed waits at it: each further run begins there, until
   * `onEvent` returns or the sender no longer keeps the event. Deliveries go on.
   *
   * A run without a cursor, the first one or after the sender's storage was replaced, leaves out
   * events whose delivery was acknowledged. `duplicates.ttlMs` should be at least as long as the
   * sender keeps events, so that such a run repeats none of the others.
   */
  catchUp?:
    | {
        /** The feed of the webhook: `https://api.example.com/v1/webhooks/{id}/events`. */
        url: string;
        /** The API key that owns the webhook. */
        apiKey: string;
        /** Milliseconds between two runs. Default 10 minutes. */
        everyMs?: number | undefined;
        /** Allows an `http:` URL, for development. Default false. The key is sent in clear. */
        allowHttp?: boolean | undefined;
      }
    | undefined;
  /** As in `createWebhooks`. */
  clock?: Clock | undefined;
  /**
   * Receives refused deliveries and errors of `onEvent`. Default: `console`, for warnings and
   * errors; `false` logs nothing.
   */
  logger?: Logger | false | undefined;
}

/**
 * The options of {@link createReceiver} for events without a FHIR resource.
 *
 * @typeParam C the sender's catalogue, so that `onEvent` gets a union by `type`. Default: any.
 *
 * @example
 * const options: PlainReceiverOptions = {
 *   secrets: process.env.WEBHOOK_SECRET,
 *   body: "plain",
 *   onEvent: async ({ id, type, data }) => queue.add(type, data, { jobId: id }),
 * };
 */
export interface PlainReceiverOptions<C = EventCatalogue> extends Omit<ReceiverOptions, "body" | "onEvent"> {
  /** Required. Bodies of another form are refused. */
  body: "plain";
  /** Required. As in {@link ReceiverOptions}. */
  onEvent: (event: NotificationOf<C>) => unknown;
}

/**
 * The options of {@link createReceiver} for the webhooks of another sender.
 *
 * @example
 * const options: SchemeReceiverOptions<ProviderEvent> = {
 *   verify: github(process.env.GITHUB_SECRET),
 *   onEvent: async ({ id, type, payload }) => queue.add(type, payload, { jobId: id }),
 * };
 */
export interface SchemeReceiverOptions<E extends { id: string }>
  extends Omit<ReceiverOptions, "secrets" | "publicKeys" | "header" | "body" | "verify" | "onEvent"> {
  /** Required. `stripe(secret)`, `github(secret)` …, or a scheme of your own. */
  verify: WebhookScheme<E>;
  /** Required. As in {@link ReceiverOptions}. */
  onEvent: (event: E) => unknown;
}

const DAY_MS = 86_400_000;

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

const hasMethods = (value: unknown, names: string[]): boolean =>
  isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");

const isScheme = (value: unknown): boolean =>
  hasMethods(value, ["verify", "read"]) && typeof (value as { header?: unknown }).header === "string";

const isHttpUrl = (value: unknown): boolean =>
  typeof value === "string" && value.length <= 2_048 && /^https?:$/.test(parseUrl(value)?.protocol ?? "");

const isApiKey = (value: unknown): boolean =>
  typeof value === "string" && value.length <= 8_192 && /^[\x21-\x7e]+$/.test(value);

const STORAGE_METHODS = ["claim", "confirm", "release", "readCursor", "writeCursor"];

function isSecrets(value: unknown): boolean {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.length > 0 && list.every(isSecret);
}

const MAX_PUBLIC_KEYS = 5;

function arePublicKeys(value: unknown): boolean {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || list.length > MAX_PUBLIC_KEYS) return false;
  return list.every((key) => readPublicKey(key) !== undefined);
}

export const receiverOptions = {
  secrets: value<ReceiverOptions["secrets"] | undefined>(
    "a secret, or a list of secrets, none of them a public key",
    isSecrets,
    undefined,
    "a secret, or a list of secrets",
  ),
  publicKeys: value<ReceiverOptions["publicKeys"]>(
    `a public key, 'whpk_' and Base64, or a list of at most ${MAX_PUBLIC_KEYS}`,
    arePublicKeys,
    undefined,
    "a public key, or a list of them",
  ),
  body: value<"plain" | undefined>("'plain'", (value) => value === "plain", undefined),
  verify: value<WebhookScheme<{ id: string }> | undefined>(
    "a scheme such as stripe(secret)",
    isScheme,
    undefined,
    "a scheme",
  ),
  onEvent: hook<(event: EventNotification | PlainNotification) => unknown>(),
  header: value("a header name", (name) => typeof name === "string" && name !== "", SIGNATURE_HEADER),
  path: value<string | undefined>(
    "a path such as '/webhooks'",
    (value) => typeof value === "string" && value.startsWith("/"),
    undefined,
  ),
  toleranceMs: wholeNumber("ms", 300_000, { min: 0 }),
  duplicates: {
    max: wholeNumber("count", 10_000, { min: 1, max: 10_000_000 }),
    ttlMs: wholeNumber("ms", 6 * DAY_MS, { min: 1 }),
  },
  storage: value<ReceivedEvents | undefined>(
    "what remembers events, such as pgReceived({ pool }) of postbell/received",
    (input) => hasMethods(input, STORAGE_METHODS),
    undefined,
    "a storage of postbell/received",
  ),
  limits: { requestBytes: wholeNumber("bytes", 1_048_576, { min: 1 }) },
  catchUp: {
    url: value<string | undefined>("the https: URL of a feed", isHttpUrl, undefined, "a URL"),
    apiKey: value<string | undefined>("an API key of visible characters", isApiKey, undefined, "a key"),
    everyMs: wholeNumber("ms", 600_000, { min: 1_000, max: 86_400_000 }),
    allowHttp: flag(false),
  },
  clock: value<Clock>("a clock", isObject, systemClock),
  logger: loggerOption,
};
