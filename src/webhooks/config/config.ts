/** The checked options of `createWebhooks`, and what all parts of a service work with. */

import type { Clock } from "../../core/clock.js";
import type { Logger, LoggerOption } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { ClientCertificate, DestinationOptions } from "../../outbound/destination-options.js";
import type { SigningKey } from "../../signature/asymmetric.js";
import type { Access, Actor } from "../access.js";
import type { Catalogue, EventCatalogue } from "../event-types/catalogue.js";
import type { EventSealer } from "../events/event-sealer.js";
import type { BodyForm, PlainEvent } from "../events/notification.js";
import type { ParsedResource } from "../fhir.js";
import type { Claim, Settlement, Storage, WebhookStore } from "../store.js";
import type { AuditEntry, SubscriberAuditLog } from "../webhook.js";
import type { DeliveryOptions, SignatureOptions } from "./delivery-options.js";
import type { RegistrationOptions } from "./registration-options.js";
import type {
  EndpointHealthOptions,
  Notify,
  ResolveReference,
  RetentionOptions,
  RetryOptions,
  WebhookLimits,
  WebhooksOptions,
} from "./webhooks-options.js";

/** A group of options with every key present. The keys in `Unset` have no default. */
type Filled<T, Unset extends keyof T = never> = {
  readonly [K in keyof T]-?: K extends Unset ? T[K] | undefined : Exclude<T[K], undefined>;
};

/** The options after they were checked and completed with their defaults. */
export interface WebhooksConfig {
  storage: Storage;
  access: Filled<Access<ParsedResource | PlainEvent>, "canRead" | "canActFor">;
  events: EventCatalogue;
  resolveReference: ResolveReference | undefined;
  body: BodyForm;
  checkData: boolean;
  destinations: Omit<Filled<DestinationOptions, "ca" | "resolve" | "proxy">, "clientCertificate"> & {
    clientCertificate: ClientCertificate | undefined;
  };
  delivery: Filled<DeliveryOptions, "headers" | "perSecond" | "send">;
  retry: Filled<RetryOptions>;
  signature: Omit<Filled<SignatureOptions>, "ed25519"> & {
    /** The first key signs. Empty: no such signatures. */
    ed25519: readonly SigningKey[];
  };
  registrations: Filled<RegistrationOptions>;
  endpoints: Filled<EndpointHealthOptions>;
  retention: Filled<RetentionOptions>;
  limits: Filled<WebhookLimits>;
  notify: Filled<Notify, keyof Notify>;
  audit: WebhooksOptions["audit"];
  sealEvents: boolean;
  keyStorage: Storage | undefined;
  awaitStorage: boolean;
  clock: Clock;
  logger: LoggerOption;
  telemetry: Telemetry | undefined;
}

/** An end of a delivery without success, and what was claimed for it. */
export interface FailedEnd {
  claim: Claim;
  result: {
    id: string;
    outcome: Settlement["outcome"];
    attempt: Settlement["attempt"];
  };
}

/** Reports what was done to the host and to the audit log. No call throws or waits. */
export interface Audit {
  /** Records what one call did to a webhook, in order and in one call of the storage. */
  record: (...entries: readonly Omit<AuditEntry, "at">[]) => void;
  /** True if {@link recordEnds} has somebody to report to. */
  reportsEnds: () => boolean;
  /** Records deliveries that were settled as failed or withheld, in one call of the storage. */
  recordEnds: (ends: readonly FailedEnd[]) => void;
  /** The log, as the actor may read it. */
  log: (actor: Actor) => SubscriberAuditLog;
  /** Resolves once everything so far was reported, or after `limits.hookMs`. */
  settled: () => Promise<void>;
}

/** A service before its audit exists, which is made of it. */
export interface UnauditedService {
  store: WebhookStore;
  sealer: EventSealer;
  config: WebhooksConfig;
  logger: Logger;
  /** Guarded: it never throws. */
  telemetry: Telemetry | undefined;
  catalogue: Catalogue;
}

/** The members of a service that all its parts use. */
export interface ServiceBase extends UnauditedService {
  audit: Audit;
}
