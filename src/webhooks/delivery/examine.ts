/** Examines endpoints: sends each check of an examination, and reports. */

import { randomUUID } from "node:crypto";
import { type Clock, withTimeout } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { isResolverOutage } from "../../outbound/failure.js";
import type { OutboundRequest, Send } from "../../outbound/types.js";
import { newSecret } from "../../signature/signature.js";
import type { Actor } from "../access.js";
import { toAuditActor } from "../audit.js";
import { invalidField } from "../call-arguments.js";
import type { ServiceBase, WebhooksConfig } from "../config/config.js";
import { type Catalogue, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { type BodyForm, readPayload } from "../events/notification.js";
import { createTestEvent } from "../events/test-event.js";
import type { Entitlement } from "../registrations/entitlement.js";
import { addHeaders, createHostHeaders, listSecrets, type SignedContent, signHeaders } from "../sender.js";
import type { WebhookRecord } from "../store.js";
import {
  EXAMINATION_CHECKS,
  type Examination,
  type ExaminationCalls,
  type ExaminationCheck,
  type ExaminationCheckName,
  judgeCheck,
  skipCheck,
} from "./examination.js";
import { classifyResponse, toLoggedAttempt } from "./outcome.js";
import { takeToken } from "./recover.js";

const HOUR_S = 3_600;

/** The time of an examination, hooks included: it ends before clients give up. */
const EXAMINATION_MS = 25_000;

/** No check begins later. */
const LAST_CHECK_MS = 20_000;

/** No response is awaited longer. `delivery.send` gets another second to notice its deadline. */
const LAST_RESPONSE_MS = EXAMINATION_MS - 1_000;

/** When to try again while another examination runs. */
const RUNNING_MS = 5_000;

/** Two seconds for the eight parts of a body. */
const SLOW_PAUSE_MS = 280;

/** The largest body that is sent, which is also the default of `limits.notificationBytes`. */
const MAX_LARGE_BYTES = 262_144;

/** The bytes of a body beyond the text of the test. */
const ENVELOPE_BYTES = 1_024;

const UNKNOWN_TYPE = "postbell.unknown-type";

/** The endpoint, and how its notifications are made. */
export interface ExaminedEndpoint {
  url: string;
  /** The id of the webhook. */
  id: string;
  account: string;
  secrets: SignedContent["secrets"];
  signature: WebhooksConfig["signature"];
  body: BodyForm;
  eventIdField: boolean;
  /** How long a delivery waits for a response. */
  deadlineMs: number;
  maxResponseBytes: number;
  /** The largest notification that the endpoint gets. */
  notificationBytes: number;
  /** False if a function of the host sends the requests, which writes a body at once. */
  canSendSlowly: boolean;
  catalogue: Catalogue;
  /**
   * True if the reader of the report may learn which names exist in the network of the sender.
   * Otherwise the report hides it, as the delivery log does.
   */
  isOwnNetwork: boolean;
  /** Adds the headers that every delivery to the endpoint has. */
  addHeaders: (request: OutboundRequest) => OutboundRequest;
}

/** The checks that send a request. The time is that of the first one. */
type SentCheck = Exclude<ExaminationCheckName, "prompt">;

/** Builds the requests of one examination. The first one is sent twice. */
class ExaminationRequests {
  #endpoint: ExaminedEndpoint;
  #clock: Clock;
  #first: OutboundRequest | undefined;

  constructor(endpoint: ExaminedEndpoint, clock: Clock) {
    this.#endpoint = endpoint;
    this.#clock = clock;
  }

  async build(name: SentCheck): Promise<OutboundRequest> {
    switch (name) {
      case "signed":
        this.#first = await this.#sign({});
        return this.#first;
      case "duplicate":
        return this.#first ?? this.#sign({});
      case "wrong_signature":
        return this.#sign({}, (content) => ({ ...content, secrets: [newSecret()] }));
      case "changed_body":
        return this.#sign({}, (content) => ({
          ...content,
          body: Buffer.concat([content.body, Buffer.from(" ")]),
        }));
      case "old_signature":
        return this.#sign({}, (content) => ({ ...content, timestamp: content.timestamp - HOUR_S }));
      case "unknown_type":
        return this.#sign({ type: UNKNOWN_TYPE });
      case "slow_body":
        return { ...(await this.#sign({})), bodyPauseMs: SLOW_PAUSE_MS };
      case "large_body":
        return this.#sign({ message: "x".repeat(this.#largeBytes()) });
      case "unsigned":
        return this.#removeSignatures(await this.#sign({}));
    }
  }

  #largeBytes(): number {
    const { notificationBytes } = this.#endpoint;
    return Math.max(0, Math.min(notificationBytes, MAX_LARGE_BYTES) - ENVELOPE_BYTES);
  }

  /** @param change what is signed in place of the notification. */
  async #sign(
    { type = TEST_EVENT_TYPE, message }: { type?: string; message?: string },
    change: (content: SignedContent) => SignedContent = (content) => content,
  ): Promise<OutboundRequest> {
    const { url, id: topic, account, secrets, body: form, catalogue, eventIdField } = this.#endpoint;
    const now = this.#clock.now();
    const id = randomUUID();
    const event = await createTestEvent(
      { body: form, catalogue },
      { id, account, sentType: type, now, message },
    );
    const body = readPayload(event.payload).body({ form, topic, allowed: null, eventIdField });
    const content = change({ id, timestamp: Math.floor(now / 1000), body, secrets });
    const { signature, maxResponseBytes } = this.#endpoint;
    // A signature of the service's own key would be right, whatever the secret.
    const isOurs = content.secrets === secrets;
    return this.#endpoint.addHeaders({
      url,
      method: "POST",
      headers: signHeaders(isOurs ? signature : { ...signature, ed25519: [] }, content),
      body,
      deadlineMs: this.#endpoint.deadlineMs,
      maxBodyBytes: maxResponseBytes,
    });
  }

  #removeSignatures(request: OutboundRequest): OutboundRequest {
    const { header } = this.#endpoint.signature;
    const { [header]: _, "webhook-signature": __, ...headers } = request.headers;
    return { ...request, headers };
  }
}

/** The time and the end of an examination. */
interface ExaminationBounds {
  clock: Clock;
  /** When the call began, in monotonic time. */
  startedAt: number;
  /** Ends the examination, which then rejects with its reason. */
  signal: AbortSignal;
}

/** Settles like `promise`, or rejects with the reason of the signal once it is aborted. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** A check, and that of its time. */
interface MadeCheck {
  check: ExaminationCheck;
  prompt: ExaminationCheck;
}

/** Makes all checks, one after another. Without a 2xx to the first one, the others say nothing. */
export async function examineEndpoint(
  endpoint: ExaminedEndpoint,
  send: Send,
  { clock, startedAt, signal }: ExaminationBounds,
): Promise<Pick<Examination, "isPassed" | "checks">> {
  const requests = new ExaminationRequests(endpoint, clock);
  const canBeMade = (name: SentCheck): boolean => name !== "slow_body" || endpoint.canSendSlowly;
  const getElapsedMs = (): number => clock.monotonic() - startedAt;

  /** Sends the request of a check, and returns the check with that of its time. */
  const makeCheck = async (name: SentCheck): Promise<MadeCheck> => {
    const request = await requests.build(name);
    signal.throwIfAborted();
    const deadlineMs = Math.min(request.deadlineMs, Math.floor(LAST_RESPONSE_MS - getElapsedMs()));
    const sentAt = clock.monotonic();
    const response = await orAborted(send({ ...request, deadlineMs }), signal);
    const durationMs = Math.max(0, Math.round(clock.monotonic() - sentAt));
    const made = { ...classifyResponse(response, 0), durationMs };
    const shown = endpoint.isOwnNetwork ? made : toLoggedAttempt(made);
    const isCut = made.kind === "timeout" && deadlineMs < request.deadlineMs && name !== "signed";
    const problem = isResolverOutage(made) ? "unavailable" : undefined;
    const check = isCut ? skipCheck(name) : judgeCheck(name, shown, problem);
    return { check, prompt: check.result === "passed" ? judgeCheck("prompt", shown) : skipCheck("prompt") };
  };

  const checks: ExaminationCheck[] = [];
  let isAccepting = true;
  for (const name of EXAMINATION_CHECKS) {
    // It is judged by the first response.
    if (name === "prompt") continue;
    const isMade: boolean = isAccepting && canBeMade(name) && getElapsedMs() <= LAST_CHECK_MS;
    const { check, prompt }: MadeCheck = isMade
      ? await makeCheck(name)
      : { check: skipCheck(name), prompt: skipCheck("prompt") };
    checks.push(check);
    if (name !== "signed") continue;
    isAccepting = check.result === "passed";
    checks.push(prompt);
  }
  const isPassed = checks.every(
    ({ name, result }) => result === "passed" || (name !== "prompt" && !canBeMade(name)),
  );
  return { isPassed, checks };
}

const webhookEnabled = (): PostbellError =>
  new PostbellError(
    "webhook_enabled",
    "The webhook is ENABLED, so its endpoint may be in production, and an examination sends it wrong signatures and other bad requests: disable it first, or confirm with evenIfEnabled.",
    { field: "evenIfEnabled" },
  );

const hookUnavailable = (message: string): PostbellError =>
  new PostbellError("access_unavailable", `${message}, so nothing was sent. Try again later.`);

/** @param getSignal returns the signal that `stop()` aborts; aborted until the next start. */
export function createExaminations(
  base: ServiceBase,
  entitlement: Entitlement,
  { send, getSignal }: { send: Send; getSignal: () => AbortSignal },
): (actor: Actor) => ExaminationCalls {
  const { store, config, catalogue, audit } = base;
  const { clock, delivery, limits } = config;
  const tokens = createRateLimit({ perMinute: limits.repairsPerMinute, clock });
  const hostHeadersFor = createHostHeaders(base);
  /** The accounts with a running examination. */
  const running = new Set<string>();

  const toEndpoint = async (webhook: WebhookRecord): Promise<ExaminedEndpoint> => {
    const headers = (await hostHeadersFor?.(webhook)) ?? null;
    if (hostHeadersFor !== undefined && headers === null)
      throw hookUnavailable("delivery.headers threw, took too long or returned an invalid value");
    const { id, account, url } = webhook;
    const secrets = listSecrets(webhook, store.now());
    return {
      id,
      account,
      url,
      secrets,
      signature: config.signature,
      body: config.body,
      eventIdField: delivery.eventIdField,
      deadlineMs: delivery.deadlineMs,
      maxResponseBytes: delivery.maxResponseBytes,
      notificationBytes: limits.notificationBytes,
      canSendSlowly: delivery.send === undefined,
      catalogue,
      isOwnNetwork: false,
      addHeaders: (request) => addHeaders(request, webhook, headers),
    };
  };

  return (actor) => ({
    async examine(request) {
      const startedAt = clock.monotonic();
      const { webhookId, evenIfEnabled, signal } = readRequest(request, getSignal());
      /** Ends the wait for hooks in time, too. */
      const inTime = <T>(promise: Promise<T>): Promise<T> => {
        const leftMs = Math.max(0, startedAt + EXAMINATION_MS - clock.monotonic());
        const late = (): PostbellError => hookUnavailable("The hooks of the service took too long");
        return orAborted(withTimeout(clock, leftMs, promise, late), signal);
      };
      const webhook = await entitlement.find(webhookId, actor);
      await inTime(entitlement.requireManager(webhook, actor));
      if (webhook.status === "ENABLED" && !evenIfEnabled) throw webhookEnabled();
      const { account } = webhook;
      if (running.has(account)) throw stillRunning();
      const refusal = takeToken(tokens, webhookId, "Too many examinations of this webhook");
      if (refusal !== undefined) throw refusal;
      running.add(account);
      try {
        const endpoint = await inTime(toEndpoint(webhook));
        audit.record({ account, action: "webhook.examined", actor: toAuditActor(actor), webhookId });
        const at = new Date(store.now());
        return { at, ...(await examineEndpoint(endpoint, send, { clock, startedAt, signal })) };
      } finally {
        running.delete(account);
      }
    },
  });
}

type ExamineRequest = Parameters<ExaminationCalls["examine"]>[0];

/** Checks the arguments, and joins the signal of the caller with that of the service. */
function readRequest(request: ExamineRequest, stopped: AbortSignal) {
  const input = readCallArguments("examine", request, ["webhookId", "evenIfEnabled", "signal"]);
  const { webhookId, evenIfEnabled = false, signal } = input;
  if (typeof evenIfEnabled !== "boolean")
    throw invalidField("evenIfEnabled", "evenIfEnabled must be true or false.");
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw invalidField("signal", "signal must be an AbortSignal.");
  stopped.throwIfAborted();
  const joined = signal === undefined ? stopped : AbortSignal.any([signal, stopped]);
  return { webhookId, evenIfEnabled, signal: joined };
}

const stillRunning = (): PostbellError =>
  new PostbellError(
    "rate_limited",
    `Another examination of this account is running; try again in ${RUNNING_MS / 1_000} s.`,
    { retryAfterMs: RUNNING_MS },
  );
