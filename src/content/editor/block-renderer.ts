/** `/block-renderer`: previews of dynamic blocks, which the host renders. */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { toText } from "../../schema/coerce.js";
import { JSON_TYPES } from "../../schema/describe-arguments.js";
import type { Argument, Json, JsonObject, Schema } from "../../schema/types.js";
import { type ReadResult, readValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { ContentBase } from "../content-base.js";
import type { Post, User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { invalidParams } from "../rest/request-input.js";
import type { RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";
import { type BlockTypes, readAttributes } from "./block-types.js";
import type { BlockPreview, RenderBlock } from "./editor-options.js";

const RENDERED: Schema = {
  title: "rendered-block",
  type: "object",
  properties: {
    rendered: {
      description: "The rendered block.",
      type: "string",
      required: true,
      context: ["edit"],
    },
  },
};

const invalidBlock = (): RestError => new RestError(404, "block_invalid", "Invalid block.");

const nameOf = ({ namespace, name }: { [name: string]: Json | undefined }): string =>
  `${toText(namespace)}/${toText(name)}`;

/**
 * Keeps the parts of an attribute's schema that are checked. WordPress accepts any value for a type
 * that is not one of JSON, such as `rich-text`.
 */
function toChecked({ type, enum: choices }: Schema): Schema {
  const isKnown = Array.isArray(type)
    ? type.length > 0 && type.every((one) => JSON_TYPES.includes(one))
    : JSON_TYPES.includes(type);
  return {
    ...(isKnown ? { type: type as NonNullable<Schema["type"]> } : {}),
    ...(Array.isArray(choices) ? { enum: choices } : {}),
  };
}

function readAttributeValues(value: Json, type: JsonObject | undefined): ReadResult {
  const bounded: Schema = { type: "object", maxProperties: COUNTS.members };
  if (type === undefined) return readValue(value, bounded, "attributes");
  const properties = Object.fromEntries(
    Object.entries(readAttributes(type)).map(([name, schema]) => [name, toChecked(schema)]),
  );
  return readValue(value, { ...bounded, properties, additionalProperties: false }, "attributes");
}

const withDefaults = (values: JsonObject, type: JsonObject | undefined): JsonObject => {
  if (type === undefined) return values;
  const defaults = Object.entries(readAttributes(type)).flatMap(([name, schema]) =>
    schema.default === undefined ? [] : [[name, schema.default] as const],
  );
  return { ...Object.fromEntries(defaults), ...values };
};

export function blockRendererRoutes(
  { repository, namespace }: ContentBase,
  types: BlockTypes,
  /** `undefined`: the host renders no blocks. */
  render: ContainedRenderBlock | undefined,
): RestRoute[] {
  const attributes: Argument = {
    description: "Attributes for the block.",
    type: "object",
    default: [],
    maxProperties: COUNTS.members,
    validate: (value, _, values) => readAttributeValues(value, types.get(nameOf(values))).problem,
    sanitize: (value) => value,
  };
  const word = (description: string): Argument => ({
    description,
    type: "string",
    maxLength: LENGTHS.name,
  });

  /** Returns the post in whose context the block is shown, if the request names one. */
  async function load({ values }: RestRequest): Promise<Post | null> {
    const id = Number(values["post_id"] ?? 0);
    if (id <= 0) return null;
    return (await repository.posts([id]))[0] ?? null;
  }

  const endpoint: RestEndpoint = {
    methods: ["GET", "POST"],
    args: {
      namespace: word("The namespace of the block."),
      name: word("The name of the block in its namespace."),
      context: {
        description: "Scope under which the request is made; determines fields present in response.",
        type: "string",
        enum: ["edit"],
        default: "view",
      },
      attributes,
      post_id: { description: "ID of the post context.", type: "integer" },
    },
    described: {
      summary: "Render the preview of a dynamic block",
      form: "json",
      schema: RENDERED,
      errors: [403, 404],
    },
    // As in WordPress, the default is not accepted: clients must ask for the context `edit`.
    check({ values }) {
      if (values["context"] === "edit") return;
      const message = "context is not one of edit.";
      const details = { context: { code: "rest_not_in_enum", message, data: null } };
      throw invalidParams({ context: message }, details);
    },
    permit(request) {
      permitPreview(request, repository);
    },
    async handle(request) {
      const name = nameOf(request.values);
      const type = types.get(name);
      const isStatic = type !== undefined && type["isDynamic"] !== true;
      if (render === undefined || isStatic) throw invalidBlock();
      const read = readAttributeValues(request.values["attributes"] ?? {}, type);
      const attributes = read.problem === undefined ? (read.value as JsonObject) : {};
      const post = await load(request);
      const html = await render({
        name,
        attributes: withDefaults(attributes, type),
        post,
        content: "",
        user: request.caller.user as User,
      });
      if (html === undefined) throw invalidBlock();
      return { status: 200, headers: {}, body: { json: { rendered: html } } };
    },
  };
  return [
    {
      namespace,
      path: "/block-renderer/:namespace(word)/:name(word)",
      schema: RENDERED,
      endpoints: [endpoint],
    },
  ];
}

function permitPreview({ values, caller }: RestRequest, { index }: ContentRepository): void {
  const id = Number(values["post_id"] ?? 0);
  const code = "block_cannot_read";
  if (id > 0) {
    const post = index.post(id);
    const parent = post?.status === "inherit" ? index.post(post.parent) : undefined;
    if (post !== undefined && caller.may("edit", post, parent)) return;
    throw refusal(caller, code, "Sorry, you are not allowed to read blocks of this post.");
  }
  if (caller.has("edit_posts")) return;
  throw refusal(caller, code, "Sorry, you are not allowed to read blocks as this user.");
}

/**
 * Resolves with the HTML, or with `undefined` if the host does not know the block.
 *
 * @throws RestError 503 `rest_block_unavailable` if the host's function fails
 */
type ContainedRenderBlock = (block: BlockPreview) => Promise<string | undefined>;

const TIMEOUT_MS = 5_000;
/** In characters. */
const MAX_HTML = 1_048_576;

export function containRenderBlock(
  render: RenderBlock,
  { clock, logger }: { clock: Clock; logger: Logger },
): ContainedRenderBlock {
  const late = (): Error => new Error(`renderBlock took more than ${TIMEOUT_MS} ms`);
  return async (block) => {
    try {
      const html = await withTimeout(clock, TIMEOUT_MS, Promise.resolve(render(block)), late);
      if (html === null || html === undefined) return undefined;
      if (typeof html !== "string") throw new Error("renderBlock did not return a text");
      if (html.length > MAX_HTML) throw new Error(`renderBlock returned more than ${MAX_HTML} characters`);
      return html;
    } catch (error) {
      logger.warn({ error, block: block.name }, "the host's function `renderBlock` has failed");
      throw new RestError(
        503,
        "rest_block_unavailable",
        "The block cannot be rendered at the moment; try again later.",
      );
    }
  };
}
