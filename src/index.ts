/**
 * `postbell`: the webhook service, signatures, errors, the health of a process, and the clock.
 *
 * @module postbell
 */

export { type Clock, systemClock } from "./core/clock.js";
export { type ErrorCode, isPostbellError, PostbellError } from "./core/errors.js";
export type { Logger } from "./core/logger.js";
export type { Telemetry } from "./core/telemetry.js";
export { createHealth, type Health, type HealthOptions } from "./health/health-check.js";
export type { HealthStatus, Problem } from "./health/health-status.js";
export type { HttpRequest } from "./http/types.js";
export type { DestinationOptions } from "./outbound/destination-options.js";
export type { Send } from "./outbound/types.js";
export {
  type SignatureProblem,
  type SignatureResult,
  type VerifyInput,
  verifySignature,
} from "./signature/signature.js";
export {
  type Access,
  bearer,
  type Operator,
  type PlainAccess,
  type Subscriber,
} from "./webhooks/access.js";
export type { DeliveryOptions, SignatureOptions } from "./webhooks/config/delivery-options.js";
export type { RegistrationOptions } from "./webhooks/config/registration-options.js";
export type {
  EndpointHealthOptions,
  EndpointWarning,
  FailingEndpoint,
  Notify,
  ResolveReference,
  RetentionOptions,
  RetryOptions,
  WebhookLimits,
  WebhooksOptions,
} from "./webhooks/config/webhooks-options.js";
export type {
  Deliveries,
  Delivery,
  DeliveryAttempt,
  DeliveryCounts,
  DeliveryRequest,
  RecoverySelection,
  ReplayRequest,
} from "./webhooks/delivery/deliveries.js";
export type { EndpointHealth } from "./webhooks/delivery/endpoint-health.js";
export type { EventFeedRequest, EventPage, FeedEvent } from "./webhooks/delivery/event-feed.js";
export type { Explanation, ExplanationReason } from "./webhooks/delivery/explanation.js";
export { defineEvents, type EventCatalogue } from "./webhooks/event-types/catalogue.js";
export {
  type ClinicalEvents,
  type ClinicalEventType,
  clinicalEvents,
} from "./webhooks/event-types/clinical-events.js";
export type { EventData } from "./webhooks/event-types/event-data.js";
export type { PlainEventType, TypeRetry } from "./webhooks/event-types/plain-event-type.js";
export type { BodyForm, PlainEvent } from "./webhooks/events/notification.js";
export type { FhirResource } from "./webhooks/fhir.js";
export type { StopOptions } from "./webhooks/lifecycle.js";
export type { List, ListPage } from "./webhooks/list.js";
export type {
  NewRegistration,
  RegistrationChange,
  Registrations,
  SubscriberRegistrations,
  WebhookWithSecret,
} from "./webhooks/registrations/registrations.js";
export {
  type CatalogueEvent,
  createWebhooks,
  type EmitOptions,
  type Emitted,
  type EventInput,
  type SubscriberWebhooks,
  type Webhooks,
} from "./webhooks/service.js";
export type { Attempt, Storage, WebhookStatus } from "./webhooks/store.js";
export type { SubscriberAuditLog, Webhook } from "./webhooks/webhook.js";
