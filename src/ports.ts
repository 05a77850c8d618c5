/**
 * `postbell/storage`: the ports, records and values that authors of storages, adapters and tools
 * need. Hosts do not need it.
 *
 * @module postbell/storage
 */

export { type ByteRange, type FileEntry, isFileName, type StagedFile } from "./content/files.js";
export type { Area, PixelOperation, PixelSize } from "./content/media/image-edits.js";
export type { ImageRefusal, ImageSource, MadeImage, WantedImage } from "./content/media/image-tool.js";
export type {
  ContentBasis,
  ContentChange,
  ContentChanges,
  ContentCommit,
  ContentContext,
  ContentRecord,
  ContentSnapshot,
  ContentStore,
  ContentWrite,
} from "./content/store.js";
export type { Timer } from "./core/clock.js";
export {
  type Labels,
  type Metric,
  type MetricName,
  metrics,
  type Reading,
  type Span,
  type SpanAttributes,
  type SpanStart,
} from "./core/telemetry.js";
export type { Checked, PartHealth } from "./health/health-check.js";
export type {
  DirectHandler,
  Handler,
  HttpRequest,
  HttpResponse,
  ParsedBody,
  ReadableBody,
  RequestBody,
  Service,
} from "./http/types.js";
export type { Resolve } from "./outbound/resolver.js";
export type { OutboundFailure, OutboundRequest, OutboundResponse, OutboundResult } from "./outbound/types.js";
export type { Json, JsonObject } from "./schema/types.js";
export type {
  Account,
  Accounts,
  ErasedEvents,
  EraseEvents,
  Events,
  ListAccounts,
} from "./webhooks/accounts.js";
export type { SubscriberHandler } from "./webhooks/api/api-handler.js";
export type { EndpointFailure, ExhaustedDelivery } from "./webhooks/config/webhooks-options.js";
export type {
  EmitResult,
  Emittable,
  EventAbout,
  EventHint,
  ResourceOf,
} from "./webhooks/emit/event-input.js";
export { subscribes } from "./webhooks/event-types/catalogue.js";
export type { EventName, ResourceTypeOf } from "./webhooks/event-types/event-data.js";
export type { EventFilter, FilterCondition } from "./webhooks/event-types/event-filter.js";
export { createFilterTest } from "./webhooks/events/notification.js";
export type { ParsedResource, ResourceHead } from "./webhooks/fhir.js";
export { type DeliveryKey, formatDeliveryId, parseDeliveryId } from "./webhooks/store/records.js";
export {
  type AccountListStore,
  type AccountSummary,
  type AddedDataKey,
  type AppendedEvent,
  type AppendRequest,
  type AppendResponse,
  type AppendResult,
  type AttemptSummary,
  type AuditLogStore,
  type AuditRecord,
  type Claim,
  type ClaimRequest,
  type ClaimResponse,
  type CreateFilterTest,
  type DataKeyStore,
  type DeliveryLogStore,
  type DeliveryQueueStore,
  type DeliveryRecord,
  type DeliveryState,
  type DeliveryStats,
  type EndpointHealthStore,
  type EndpointReport,
  type ErasedRecords,
  type ErasureStore,
  type EventKey,
  type EventRecord,
  type EventStanding,
  FIRST_ATTEMPT_HEAD_START_MS,
  type FoundEvent,
  type HourStats,
  type Lane,
  MAX_RESENT,
  type Page,
  type RecentAttempts,
  type RecoverableState,
  type RegistrationStore,
  type Retention,
  type SecretRotation,
  type Settlement,
  type SettleResult,
  type StorageContext,
  type StoredEventRecord,
  type StoreStats,
  type WebhookChange,
  type WebhookRecord,
  type WebhookStore,
} from "./webhooks/store.js";
export type { AuditAction, AuditActor, AuditEntry, AuditLog } from "./webhooks/webhook.js";
