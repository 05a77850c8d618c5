/**
 * The calls that manage webhooks: create, get, list, update, remove, rotate the secret, transfer.
 */

import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { type AddressPolicy, type AddressRefusal, checkUrl } from "../../outbound/address-policy.js";
import { createAddressPolicy } from "../../outbound/destination-options.js";
import { newSecret } from "../../signature/signature.js";
import { type Actor, hasAuthority, type Operator, type Subscriber } from "../access.js";
import { recordChange, toAuditActor } from "../audit.js";
import {
  checkName,
  invalidField,
  notFound,
  readDescription,
  readLimit,
  readMetadata,
  readSecret,
  readSubscriber,
  selectAccount,
} from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { readEventTypes } from "../event-types/catalogue.js";
import { PagedList } from "../list.js";
import { getRotation } from "../store/records.js";
import type { WebhookChange, WebhookRecord, WebhookStatus } from "../store.js";
import { toWebhook } from "../webhook.js";
import {
  checkFilteredTypes,
  checkSettings,
  type EndpointSettings,
  listSettings,
  readSettings,
} from "./endpoint-settings.js";
import { type Entitlement, isDisablingOnly, ownedByAnotherKey, tooManyEnabled } from "./entitlement.js";
import { registerWebhook } from "./register-webhook.js";
import type {
  NewRegistration,
  Registrations,
  SubscriberRegistrations,
  WebhookWithSecret,
} from "./registrations.js";

const DAY_MS = 86_400_000;

/** Tells a host which option would allow a URL that the address policy refuses. */
const OPTION_HINTS: Record<NonNullable<AddressRefusal["allowedBy"]>, string> = {
  allow: " To allow this host, list it or its network in the option destinations.allow.",
  allowHttp: " To allow http:// URLs, set the option destinations.allowHttp.",
};

/** Only the host, who can change the options, is told which one would allow the URL. */
function readUrl(url: unknown, policy: AddressPolicy, actor: Actor): string {
  if (url === undefined) {
    throw invalidField("url", "url is missing: pass the HTTPS address of the endpoint.");
  }
  if (typeof url !== "string") throw invalidField("url", "url must be a string.");
  const checked = checkUrl(url, policy);
  if (checked.ok) return url;
  const hint = actor === "host" && checked.allowedBy !== undefined ? OPTION_HINTS[checked.allowedBy] : "";
  throw new PostbellError("invalid_url", checked.message + hint, { field: "url" });
}

function readStatus(status: unknown): WebhookStatus {
  if (status === "ENABLED" || status === "DISABLED") return status;
  throw invalidField("status", "status must be ENABLED or DISABLED.");
}

/** Reads a field that a call may leave out. */
const ifGiven = <T, R>(value: T | undefined, read: (value: T) => R): R | undefined =>
  value === undefined ? undefined : read(value);

function checkOverlap(overlapMs: number): void {
  if (Number.isSafeInteger(overlapMs) && overlapMs >= 0 && overlapMs <= 7 * DAY_MS) return;
  throw invalidField("overlapMs", "overlapMs must be a whole number of milliseconds from 0 to 7 days.");
}

const REGISTRATION_FIELDS = [
  "url",
  "eventTypes",
  "idempotencyKey",
  "secret",
  "description",
  "metadata",
] as const;

/** The calls of the host, and those of a subscriber. */
interface RegistrationCalls {
  forHost: Registrations;
  forActor: (actor: Subscriber | Operator) => SubscriberRegistrations;
}

export function createRegistrations(
  { store, config, catalogue, audit }: ServiceBase,
  entitlement: Entitlement,
): RegistrationCalls {
  const { destinations, limits } = config;
  const policy = createAddressPolicy(destinations);
  const { enabledWebhooks: enabledLimit } = limits;

  const offered = (actor: Actor): (keyof EndpointSettings)[] =>
    listSettings(config.registrations, hasAuthority(actor));

  const report = (
    action: "webhook.created" | "webhook.deleted",
    { id: webhookId, account }: WebhookRecord,
    actor: Actor,
  ): void => audit.record({ account, action, actor: toAuditActor(actor), webhookId });

  /**
   * `owner`: the key that the change was permitted for. If the webhook was transferred meanwhile,
   * nothing changes.
   */
  const updateRecord = async (
    webhook: WebhookRecord,
    change: WebhookChange,
    actor: Actor,
    owner?: string,
  ): Promise<WebhookRecord> => {
    const { id, account } = webhook;
    const updated = await store.updateWebhook({ id, account, change, owner, enabledLimit, now: store.now() });
    if (updated.result === "updated") {
      recordChange(audit, webhook, change, actor);
      return updated.webhook;
    }
    if (updated.result === "not_owner") throw ownedByAnotherKey();
    throw updated.result === "enabled_limit" ? tooManyEnabled(enabledLimit) : notFound("webhook");
  };

  /** Returns the changed record. Throws if the actor may not make this change. */
  const changeWebhook = async (
    webhook: WebhookRecord,
    change: WebhookChange,
    actor: Actor,
  ): Promise<WebhookRecord> => {
    // Writes only the status: a request of another key must not restore a URL that the owner
    // replaces meanwhile.
    if (!hasAuthority(actor) && isDisablingOnly(webhook, change))
      return updateRecord(webhook, { status: "DISABLED" }, actor);
    await entitlement.requireManager(webhook, actor);
    checkSettings(webhook, change, catalogue);
    return updateRecord(webhook, change, actor, hasAuthority(actor) ? undefined : webhook.subscriberId);
  };

  const create = async (
    registration: NewRegistration,
    subscriber: Subscriber,
    actor: Actor,
  ): Promise<WebhookWithSecret> => {
    const { url, idempotencyKey, secret, description, metadata } = registration;
    const eventTypes = readEventTypes(registration.eventTypes, catalogue);
    const settings = readSettings(registration, config);
    checkFilteredTypes({ eventTypes, filter: settings.filter }, catalogue);
    if (idempotencyKey !== undefined) checkName("idempotencyKey", idempotencyKey);
    const { record, isNew } = await registerWebhook(store, limits, {
      ...settings,
      subscriber,
      url: readUrl(url, policy, actor),
      eventTypes,
      idempotencyKey,
      secret: ifGiven(secret, readSecret),
      description: ifGiven(description, readDescription),
      metadata: ifGiven(metadata, readMetadata),
    });
    if (isNew) report("webhook.created", record, actor);
    return { webhook: toWebhook(record), secret: record.secret };
  };

  /** The calls that the host and subscribers make alike. */
  const bind = (actor: Actor): Omit<SubscriberRegistrations, "create"> => ({
    async get(id) {
      return toWebhook(await entitlement.find(id, actor));
    },

    list: (request = {}) =>
      new PagedList(request?.cursor, async (cursor) => {
        const input = readCallArguments("list", request, ["account", "cursor", "limit"]);
        const account = selectAccount(input.account, actor);
        const page = await store.listWebhooks({ account, cursor, limit: readLimit(input.limit) });
        return { items: page.webhooks.map(toWebhook), next: page.next };
      }),

    async update(request) {
      const names = ["id", "url", "status", "eventTypes", "description", "metadata"] as const;
      const input = readCallArguments("update", request, [...names, ...offered(actor)]);
      const { id, url, status, eventTypes, description, metadata } = input;
      const change: WebhookChange = {
        ...(url === undefined ? {} : { url: readUrl(url, policy, actor) }),
        ...(status === undefined ? {} : { status: readStatus(status) }),
        ...(eventTypes === undefined ? {} : { eventTypes: readEventTypes(eventTypes, catalogue) }),
        ...(description === undefined ? {} : { description: readDescription(description) }),
        ...(metadata === undefined ? {} : { metadata: readMetadata(metadata) }),
        ...readSettings(input, config),
      };
      return toWebhook(await changeWebhook(await entitlement.find(id, actor), change, actor));
    },

    async remove(id) {
      const webhook = await entitlement.find(id, actor);
      const { account } = webhook;
      if (!(await store.removeWebhook({ id, account, now: store.now() }))) throw notFound("webhook");
      report("webhook.deleted", webhook, actor);
    },

    async rotateSecret(request) {
      const input = readCallArguments("rotateSecret", request, ["id", "overlapMs", "secret"]);
      const { id, overlapMs = DAY_MS } = input;
      checkOverlap(overlapMs);
      const secret = ifGiven(input.secret, readSecret) ?? newSecret();
      const webhook = await entitlement.find(id, actor);
      const rotateAt = store.now() + overlapMs;
      await changeWebhook(webhook, { rotation: { secret, rotateAt } }, actor);
      return { secret, rotatesAt: new Date(rotateAt) };
    },

    async finishRotation(id) {
      const webhook = await entitlement.find(id, actor);
      if (getRotation(webhook, store.now()) === null) await entitlement.requireManager(webhook, actor);
      else await changeWebhook(webhook, { rotation: { finish: true } }, actor);
    },
  });

  return {
    forHost: Object.freeze<Registrations>({
      ...bind("host"),
      async create(registration) {
        const names = ["subscriber", ...REGISTRATION_FIELDS, ...offered("host")] as const;
        const input = readCallArguments("create", registration, names);
        return create(input, readSubscriber(input.subscriber), "host");
      },
      async transfer(request) {
        const { id, subscriberId } = readCallArguments("transfer", request, ["id", "subscriberId"]);
        checkName("subscriberId", subscriberId);
        return toWebhook(await changeWebhook(await entitlement.find(id, "host"), { subscriberId }, "host"));
      },
    }),
    forActor: (actor) =>
      Object.freeze<SubscriberRegistrations>({
        ...bind(actor),
        async create(registration) {
          const names = [...REGISTRATION_FIELDS, ...offered(actor)];
          const input = readCallArguments("create", registration, names);
          if (!hasAuthority(actor)) return create(input, actor, actor);
          throw new PostbellError(
            "webhook_owned_by_another_key",
            "An operator owns no webhooks: register it with an API key of the account, or in the host's code with registrations.create({ subscriber, url }).",
          );
        },
      }),
  };
}
