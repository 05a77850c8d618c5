/** The settings of endpoints over REST, where the option `registrations` turns them on. */

import type { JsonObject } from "../../schema/types.js";
import type { WebhooksConfig } from "../config/config.js";
import { FILTER_BOUNDS } from "../event-types/event-filter.js";
import { type EndpointSettings, HEADER_BOUNDS, MAX_PER_SECOND } from "../registrations/endpoint-settings.js";
import type { NewRegistration } from "../registrations/registrations.js";
import type { Webhook } from "../webhook.js";

type Offered = WebhooksConfig["registrations"];

/** The names of settings in requests that differ from those of the host's calls. */
export const REQUEST_NAMES = { perSecond: "per_second" } as const;

const text: JsonObject = { type: "string", maxLength: FILTER_BOUNDS.valueCharacters };
const scalar: JsonObject = { anyOf: [text, { type: ["number", "boolean", "null"] }] };
const ordered: JsonObject = { anyOf: [text, { type: "number" }] };

const filterSchema: JsonObject = {
  type: ["object", "null"],
  minProperties: 1,
  maxProperties: FILTER_BOUNDS.operators,
  propertyNames: { pattern: "^data(?:\\.[^.]+)*$", maxLength: FILTER_BOUNDS.pathCharacters },
  additionalProperties: {
    type: "object",
    minProperties: 1,
    properties: {
      eq: scalar,
      in: { type: "array", minItems: 1, maxItems: FILTER_BOUNDS.listed, items: scalar },
      gt: ordered,
      gte: ordered,
      lt: ordered,
      lte: ordered,
      exists: { type: "boolean" },
      prefix: text,
    },
    additionalProperties: false,
  },
  description: `Conditions on the data of events, by path: \`{ "data.amount": { "gte": 100 } }\`. All must hold, at most ${FILTER_BOUNDS.operators} operators in all. The webhook must subscribe to types with data only. Replaces the filter; null removes it.`,
};

const headersSchema: JsonObject = {
  type: ["object", "null"],
  minProperties: 1,
  maxProperties: HEADER_BOUNDS.count,
  propertyNames: {
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    maxLength: HEADER_BOUNDS.nameCharacters,
  },
  additionalProperties: {
    type: "string",
    pattern: "^[\\x21-\\x7e](?:[\\t\\x20-\\x7e]*[\\x21-\\x7e])?$",
    maxLength: HEADER_BOUNDS.valueBytes,
  },
  writeOnly: true,
  description:
    "Secret headers of the deliveries, such as an API key of the receiver. No response has the values. A URL of another origin needs them again. They replace all headers; null removes them.",
};

const perSecondSchema: JsonObject = {
  type: ["integer", "null"],
  minimum: 1,
  maximum: MAX_PER_SECOND,
  description: "How many deliveries are attempted in one second at most. Null: as the service decides.",
};

type Details = Pick<NewRegistration, "description" | "metadata" | keyof EndpointSettings>;

/** Converts the fields of a body that need not be there. */
export const toDetails = ({ per_second, ...others }: Record<string, unknown>): Details => ({
  ...others,
  ...(per_second !== undefined && { perSecond: per_second as number | null }),
});

/** Describes the settings that a request may have. */
export const describeSettings = ({
  filters,
  headers,
  perSecond,
}: Offered): { [name: string]: JsonObject } => ({
  ...(filters && { filter: filterSchema }),
  ...(headers && {
    headers: headersSchema,
    header_names: { type: "array", items: { type: "string" }, readOnly: true },
  }),
  ...(perSecond && { per_second: perSecondSchema }),
});

/** Returns the settings of a webhook that `include=details` shows, in the form of a request. */
export const toSettings = (webhook: Webhook, { filters, headers, perSecond }: Offered) => ({
  ...(filters && { filter: webhook.filter ?? null }),
  ...(headers && { header_names: webhook.headerNames ?? [] }),
  ...(perSecond && { per_second: webhook.perSecond ?? null }),
});

/** Adds the settings to the schema of a webhook's record. */
export const addRecordSettings = (
  record: JsonObject,
  { filters, headers, perSecond }: Offered,
): JsonObject => {
  const details = "Only with `include=details`:";
  return {
    ...record,
    properties: {
      ...(record["properties"] as JsonObject),
      ...(filters && {
        filter: { ...filterSchema, description: `${details} the conditions on the data of its events.` },
      }),
      ...(headers && {
        header_names: {
          type: "array",
          items: { type: "string" },
          description: `${details} the names of its secret headers, in lower case.`,
        },
      }),
      ...(perSecond && {
        per_second: { ...perSecondSchema, description: `${details} its own rate; null without one.` },
      }),
    },
  };
};

/** Adds the count of filtered events to the schema of statistics. */
export const addFilteredCount = (stats: JsonObject): JsonObject => ({
  ...stats,
  required: [...(stats["required"] as string[]), "filtered"],
  properties: {
    ...(stats["properties"] as JsonObject),
    filtered: {
      type: "integer",
      minimum: 0,
      description: "How many events the filter has refused since the webhook was registered.",
    },
  },
});
