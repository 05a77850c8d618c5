/**
 * Options of `createWebhooks` for one attempt: how many run, how long they take, how they are
 * signed.
 */

import type { Send } from "../../outbound/types.js";
import type { Webhook } from "../webhook.js";

/**
 * How deliveries are attempted.
 *
 * @example
 * // An endpoint may take 30 s, and one small process sends.
 * delivery: { concurrency: 20, slowConcurrency: 50, deadlineMs: 30_000, leaseMs: 90_000 }
 */
export interface DeliveryOptions {
  /**
   * Attempts in flight in this process to endpoints known to be fast. Default 100, 1 to 10 000.
   * Raise it if deliveries wait although CPU and network are idle; lower it to save memory and
   * sockets.
   */
  concurrency?: number | undefined;
  /**
   * Attempts in flight in this process to all other endpoints: new ones, and those whose last
   * attempt was slow. Default 400, 1 to 10 000. Raise it if many endpoints are slow; each attempt
   * holds a socket.
   */
  slowConcurrency?: number | undefined;
  /**
   * Attempts in flight to one endpoint, over all processes. Default 5, 1 to 10 000. Lower it to
   * protect small endpoints, raise it for few and large subscribers. Use one value on all services
   * of a storage.
   */
  perEndpoint?: number | undefined;
  /**
   * Deliveries of one webhook that may be claimed in one second, over all processes. Default: no
   * limit. 1 to 10 000. First attempts, retries, resends, recovered deliveries and tests count,
   * even if a claimed delivery is then not attempted. The others wait for the next second: the
   * limit never fails a delivery. Seconds are whole seconds of the storage's clock, so up to twice
   * as many can follow each other within 1 000 ms. The limit is per webhook, not per host. Use one
   * value on all services of a storage. Set it for endpoints that refuse bursts.
   */
  perSecond?: number | undefined;
  /**
   * An attempt that takes longer counts as slow and moves to the budget of `slowConcurrency`.
   * Default 500. Detected up to 50 ms late. Raise it if healthy endpoints usually take longer.
   */
  slowAfterMs?: number | undefined;
  /**
   * Time limit of one attempt, from the DNS lookup to the last byte of the response. Default 15
   * 000, at most 10 minutes. Can fire up to 50 ms late. If you raise it, raise `leaseMs` too.
   */
  deadlineMs?: number | undefined;
  /**
   * How long a process holds a delivery that it claimed, at least twice `deadlineMs` plus 20 s. If
   * the process dies, another one takes the delivery over afterwards. Default 60 000, at most an
   * hour. Raise it only together with `deadlineMs`.
   */
  leaseMs?: number | undefined;
  /**
   * At most this much of a response is read. Default 16 384, at most 1 MiB. Of a longer response
   * only the status and this much of the body count. 0 is enough where nobody looks at excerpts.
   */
  maxResponseBytes?: number | undefined;
  /**
   * Interval between the due times of recovered deliveries of one webhook. Default 50, at most an
   * hour. Raise it so that a recovery of many events does not flood the endpoint.
   */
  recoverEveryMs?: number | undefined;
  /**
   * Characters of the response to a failed attempt that the delivery log keeps, for keys that may
   * manage the webhook. Default 0, at most 10 000. Off by default, because an endpoint may quote
   * the record that it refuses. Turn it on to help subscribers find their errors.
   */
  excerptCharacters?: number | undefined;
  /**
   * Adds `event_id` to the body: the event's id, like `id`. Default false. Turn it on if
   * subscribers read that field.
   */
  eventIdField?: boolean | undefined;
  /**
   * Returns headers of your own for an endpoint, such as `authorization` or an API key. Called for
   * each attempt, tests included. Default: none.
   *
   * At most 32 headers of visible ASCII, 8 192 bytes each and 16 KiB together. They cannot replace
   * those of Postbell and of the connection: `content-type`, `user-agent`, the signature,
   * `webhook-*`, `host`, `content-length`, `proxy-*` and the like. If the function throws, returns
   * anything else or takes longer than `limits.hookMs`, the delivery waits as after a failing
   * `canRead`. Values are never logged or stored. Subscribers can change `url`: check it before you
   * return a token that only one host may see.
   *
   * @example
   * headers: async ({ account, url }) =>
   *   new URL(url).host === "hooks.example.org" ? { authorization: await tokenFor(account) } : {}
   */
  headers?: ((webhook: Webhook) => Record<string, string> | PromiseLike<Record<string, string>>) | undefined;
  /**
   * Replaces the built-in HTTP client; your function must then block private destinations itself,
   * and of `destinations` only the check of URLs at registration applies.
   */
  send?: Send | undefined;
}

/**
 * How deliveries are signed.
 *
 * @example
 * signature: { header: "X-Clinic-Signature", standardWebhooks: true }
 */
export interface SignatureOptions {
  /**
   * Name of the header that carries the signature. Default `X-Service-Signature`. Change it to put
   * your own name on it, before the first subscriber registers: receivers read this header.
   */
  header?: string | undefined;
  /**
   * Also sends the three headers of the Standard Webhooks scheme. Default false. Turn it on if
   * subscribers verify with one of its libraries.
   */
  standardWebhooks?: boolean | undefined;
  /**
   * Private Ed25519 keys that sign in addition to the secrets, for subscribers that verify with a
   * public key: at most 5, each in PEM (PKCS#8, not encrypted) or as `whsk_` and Base64. Default:
   * none. Needs `standardWebhooks`.
   *
   * The first key adds `v1a,<Base64>` to `webhook-signature`. The public keys of all are served at
   * `GET /v1/jwks.json`, without an API key. To rotate, add the new key at the end, move it to the
   * front after an hour, and remove the old one once all processes sign with the new one.
   *
   * All endpoints share the key, so a subscriber can pass a delivery on to another, where it
   * verifies. Receivers that must notice this compare `hub.topic`, or verify by their secret.
   *
   * @example
   * signature: { standardWebhooks: true, ed25519: [process.env.WEBHOOK_SIGNING_KEY] }
   */
  ed25519?: readonly string[] | undefined;
}
