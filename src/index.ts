/**
 * `postbell`: the root entry of the package.
 *
 * @module postbell
 */

// For hosts: the factories, their options, and the values that they pass and return.

export type { RoleOptions } from "./content/auth/roles.js";
export type {
  AuthenticateContent,
  AuthenticationRefusal,
  ContentCorsOptions,
  ContentLimits,
  ContentOptions,
  EmbedOptions,
} from "./content/content-options.js";
export type {
  BlockPattern,
  BlockPatternCategory,
  BlockPreview,
  BlockType,
  EditorOptions,
  EditorTheme,
  RenderBlock,
} from "./content/editor/editor-options.js";
export type { ThemeSupports } from "./content/editor/theme-supports.js";
export type { EmbedProvider } from "./content/embeds/providers.js";
export type { FileStore } from "./content/files.js";
export {
  type DiscoveryLinks,
  type DiscoveryOptions,
  discoveryLinks,
} from "./content/hosting/discovery-links.js";
export { createNonces, type NonceOptions, type Nonces } from "./content/hosting/nonces.js";
export { rewriteRestRoute } from "./content/hosting/rest-route.js";
export type { ImageTool } from "./content/media/image-tool.js";
export type { MenuLocationsOptions } from "./content/menu-locations/menu-locations.js";
export type { ContentChanged } from "./content/records/record-changes.js";
export type {
  ImageMetadata,
  MediaFile,
  MenuItem,
  Post,
  PostColumns,
  PostStatus,
  PostType,
  User,
} from "./content/records/records.js";
export { type Content, type ContentAnswer, type ContentRequest, createContent } from "./content/service.js";
export type {
  FixedSetting,
  HostSetting,
  SettingName,
  SettingValues,
  WritableSetting,
} from "./content/settings/setting-fields.js";
export type { SettingChanges, SettingsOptions, WriteSettings } from "./content/settings/setting-options.js";
export type { Render, SiteOptions } from "./content/site.js";
export type { ContentStorage } from "./content/store.js";
export type { UserPage, UserSource, UsersOption } from "./content/users/users.js";
export type { ExportOptions, ExportProgress } from "./content/wxr/export.js";
export type {
  FileSource,
  ImportCounts,
  ImportedFile,
  ImportOptions,
  ImportProgress,
  ImportSummary,
  ImportWarning,
} from "./content/wxr/options.js";
export { type Clock, systemClock } from "./core/clock.js";
export { type ErrorCode, isPostbellError, PostbellError } from "./core/errors.js";
export type { Logger } from "./core/logger.js";
export type { Telemetry } from "./core/telemetry.js";
export {
  type Checked,
  createHealth,
  type Health,
  type HealthOptions,
  type PartHealth,
} from "./health/health-check.js";
export type { HealthStatus as Condition, Problem } from "./health/health-status.js";
export type { Handler, HttpRequest, HttpResponse, Service } from "./http/types.js";
export type { Resolve } from "./outbound/connection.js";
export type { DestinationOptions } from "./outbound/destination-options.js";
export type {
  OutboundFailure,
  OutboundRequest,
  OutboundResponse,
  OutboundResult,
  Send,
} from "./outbound/types.js";
export type { Json, JsonObject } from "./schema/types.js";
export {
  type SignatureProblem,
  type SignatureResult,
  type VerifyInput,
  verifySignature,
} from "./signature/signature.js";
export type { Access, Actor, Subscriber } from "./webhooks/access.js";
export type { HandleAsOptions } from "./webhooks/api/api-handler.js";
export type {
  Deliveries,
  Delivery,
  DeliveryAttempt,
  DeliveryCounts,
  DeliveryRequest,
} from "./webhooks/delivery/deliveries.js";
export type { EndpointHealth } from "./webhooks/delivery/endpoint-health.js";
export type {
  EmitResult,
  Emittable,
  EventAbout,
  EventHint,
  ResourceOf,
} from "./webhooks/emit/event-input.js";
export type { EventCatalogue, EventTypeOf, ResourceTypeOf } from "./webhooks/event-types/catalogue.js";
export {
  type ClinicalEvents,
  type ClinicalEventType,
  clinicalEvents,
} from "./webhooks/event-types/clinical-events.js";
export type { BodyForm } from "./webhooks/events/notification.js";
export type { FhirResource, ParsedResource, ResourceHead } from "./webhooks/fhir.js";
export type { Registrations, WebhookWithSecret } from "./webhooks/registrations/registrations.js";
export {
  createWebhooks,
  type EmitOptions,
  type Emitted,
  type EventInput,
  type Webhooks,
} from "./webhooks/service.js";
export type { DeliveryOptions, SignatureOptions } from "./webhooks/settings/delivery-options.js";
export type {
  EndpointFailure,
  EndpointHealthOptions,
  EndpointWarning,
  FailingEndpoint,
  Notify,
  ResolveReference,
  RetentionOptions,
  RetryOptions,
  WebhookLimits,
  WebhooksOptions,
} from "./webhooks/settings/webhooks-options.js";
export type {
  Attempt,
  AttemptSummary,
  DeliveryState,
  Retention,
  Storage,
  WebhookStatus,
} from "./webhooks/store.js";
export type { Webhook } from "./webhooks/webhook.js";

// For authors of storages and tools: the ports, their records, HTTP values and telemetry.

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
export type { DirectHandler, ParsedBody, ReadableBody, RequestBody } from "./http/types.js";
export { type DeliveryKey, formatDeliveryId, parseDeliveryId } from "./webhooks/delivery/delivery-id.js";
export { subscribes } from "./webhooks/event-types/subscription.js";
export {
  type AppendedEvent,
  type AppendRequest,
  type AppendResponse,
  type AppendResult,
  type Claim,
  type ClaimRequest,
  type ClaimResponse,
  type DeliveryLogStore,
  type DeliveryQueueStore,
  type DeliveryRecord,
  type DeliveryStats,
  type EndpointHealthStore,
  type EndpointReport,
  type EventRecord,
  FIRST_ATTEMPT_HEAD_START_MS,
  type Lane,
  type Page,
  type RecentAttempts,
  type RegistrationStore,
  type SecretRotation,
  type Settlement,
  type SettleResult,
  type StorageContext,
  type StoreStats,
  type WebhookChange,
  type WebhookRecord,
  type WebhookStore,
} from "./webhooks/store.js";
