/** `postbell`: the public face of the core. */

export { type Clock, systemClock, type Timer } from "./clock.js";
export { type ErrorCode, isPostbellError, PostbellError } from "./errors.js";
export type {
  Handler,
  HttpRequest,
  HttpResponse,
  ParsedBody,
  ReadableBody,
  RequestBody,
  Service,
} from "./http/types.js";
export type { Logger } from "./logger.js";
export type {
  OutboundFailure,
  OutboundRequest,
  OutboundResponse,
  OutboundResult,
  Send,
} from "./outbound/types.js";
export { type ClinicalEventType, clinicalEvents, type EventCatalogue } from "./webhooks/catalogue.js";
export type { Deliveries, Delivery, DeliveryAttempt } from "./webhooks/deliveries.js";
export type { FhirResource, ParsedResource } from "./webhooks/fhir.js";
export type { Access, Notify, ResolveReference, Subscriber, WebhooksOptions } from "./webhooks/options.js";
export type { Registrations, Webhook, WebhookWithSecret } from "./webhooks/registrations.js";
export { createWebhooks, type Emitted, type EventInput, type Webhooks } from "./webhooks/service.js";
export { type SignatureResult, verifySignature } from "./webhooks/signature.js";
export type { DeliveryState, Storage, WebhookStatus, WebhookStore } from "./webhooks/store.js";
