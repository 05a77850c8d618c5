/** Builds the OpenAPI 3.1 document of the registration API and of the notification. Pure. */

import { buildOpenApiDocument, componentRef, toPathTemplate } from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { type Catalogue, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import type { WebhooksSettings } from "../settings/settings.js";
import { TEXT_LENGTHS } from "../text-lengths.js";
import { deliverySchemas } from "./delivery-schemas.js";
import { errorResponses } from "./openapi-errors.js";
import { describeNotification, type NotificationSettings } from "./openapi-notification.js";
import { describeOperation, describePathParameters } from "./openapi-operations.js";
import { responseHeaders, webhookSchemas } from "./openapi-schemas.js";
import { type Operation, tags } from "./operation.js";
import { operations } from "./operations.js";

/** The version of the interface description that this follows, not of the package. */
const INTERFACE_VERSION = "1.4.2";

const INTRODUCTION = `Register HTTPS endpoints and receive signed notifications of record changes.

A path that supports GET also supports HEAD, and every path supports OPTIONS (204 with \`Allow\`). Another method of a known path returns 405
with \`Allow\` and the error \`method_not_allowed\`. Every error has the schema \`Error\`; each response lists its codes. New codes and new
properties of responses may be added.`;

/**
 * Describes the interface with the options of this service: event types, form of the notification,
 * headers of the signature, schemes of a URL.
 *
 * @param baseUrl the URL of the mount point.
 */
export function describeWebhooksOpenApi(
  settings: NotificationSettings & Pick<WebhooksSettings, "destinations">,
  catalogue: Catalogue,
  baseUrl: string,
): JsonObject {
  const types = [...catalogue.types.keys()].sort();
  return buildOpenApiDocument({
    info: { title: "Webhooks", version: INTERFACE_VERSION, description: INTRODUCTION },
    baseUrl,
    security: [{ apiKey: [] }],
    tags: { ...tags, Notifications: "The requests that an endpoint receives." },
    paths: describePaths(),
    webhooks: { notification: { post: describeNotification(types, settings) } },
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "The API key of the account." },
      },
      schemas: {
        ...webhookSchemas,
        ...deliverySchemas,
        ...describeEventTypes(types, catalogue),
        EndpointUrl: describeEndpointUrl(settings.destinations.allowHttp),
      },
      responses: errorResponses,
      headers: responseHeaders,
    },
  });
}

function describePaths(): JsonObject {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, operation] of Object.entries<Operation>(operations)) {
    const template = toPathTemplate(operation.path);
    paths[template] ??= describePathParameters(operation.path);
    paths[template][operation.method.toLowerCase()] = describeOperation(operationId, operation);
  }
  return paths;
}

const describeEndpointUrl = (isHttpAllowed: boolean): JsonObject => ({
  type: "string",
  pattern: `^[hH][tT][tT][pP][sS]${isHttpAllowed ? "?" : ""}://\\S+$`,
  maxLength: TEXT_LENGTHS.url,
  description: `The URL of the endpoint: absolute, ${isHttpAllowed ? "HTTPS or HTTP" : "and HTTPS"}.`,
});

const describeEventTypes = (types: readonly string[], { prefixes }: Catalogue): JsonObject => ({
  EventType: { type: "string", enum: types },
  NotifiedType: {
    anyOf: [
      componentRef("schemas", "EventType"),
      { type: "string", const: TEST_EVENT_TYPE, description: "A test that the subscriber requested." },
    ],
  },
  EventTypePattern: {
    type: "string",
    enum: [...types, ...[...prefixes].sort().map((prefix) => `${prefix}.*`), "*"],
  },
});
