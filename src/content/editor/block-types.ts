/** `/block-types`: the types of blocks that the host's options list. */

import { PostbellError } from "../../core/errors.js";
import { toText } from "../../schema/coerce.js";
import type { Argument, Json, JsonObject, Schema } from "../../schema/types.js";
import { COUNTS, LENGTHS, NAMES } from "../argument-bounds.js";
import { RestError } from "../rest/error.js";
import {
  ALL,
  contextArgument,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";
import { forEditors, readPlainOption, toMemberName } from "./editor-options.js";

/** The types of blocks by name: `clinic/today`. */
export type BlockTypes = Map<string, BlockTypeRecord>;

/** In characters of JSON. */
const MAX_CHARACTERS = 4_194_304;

const NAME = /^[a-z][a-z0-9-]*\/[a-z][a-z0-9-]*$/;

/** @throws PostbellError `invalid_option` */
export function readBlockTypes(value: unknown): BlockTypes {
  const field = "editor.blockTypes";
  const list = readPlainOption(field, value, BLOCK_TYPES_OPTION, MAX_CHARACTERS) as BlockTypeRecord[];
  const types = new Map<string, BlockTypeRecord>();
  for (const [at, type] of list.entries()) {
    const path = `${field}[${at}].name`;
    const problem = NAME.test(type.name)
      ? types.has(type.name) && "is the name of another block type"
      : "must be a name such as 'clinic/today'";
    if (problem !== false) {
      throw new PostbellError("invalid_option", `createContent: ${path} ${problem}.`, { field: path });
    }
    types.set(type.name, type);
  }
  return types;
}

const permit = forEditors("rest_block_type_cannot_view", "Sorry, you are not allowed to manage block types.");

const namespaceArgument: Argument = {
  description: "Block namespace.",
  type: "string",
  maxLength: LENGTHS.name,
};
const nameArgument: Argument = { description: "Block name.", type: "string", maxLength: LENGTHS.name };

const namespaceOf = (name: string): string => name.slice(0, name.indexOf("/"));

export function blockTypeRoutes(types: BlockTypes, namespace: string): RestRoute[] {
  const schema = recordSchema("block-type", blockTypeFields);
  const toItem = (type: BlockTypeRecord, request: RestRequest): Item =>
    createItem(
      selectRecordFields(type, blockTypeFields, readContext(request)),
      linksOf(type, (path) => request.url(`/${namespace}${path}`)),
    );

  const list: RestEndpoint = {
    methods: ["GET"],
    args: { context: contextArgument, namespace: namespaceArgument },
    described: { summary: "List the block types of the site", form: "items" },
    permit,
    handle(request) {
      const wanted = request.values["namespace"];
      const listed = [...types.values()].filter(({ name }) => !wanted || namespaceOf(name) === wanted);
      return { status: 200, headers: {}, body: { items: listed.map((type) => toItem(type, request)) } };
    },
  };

  const find = ({ values }: RestRequest): BlockTypeRecord => {
    const type = types.get(`${toText(values["namespace"])}/${toText(values["name"])}`);
    if (type === undefined) throw new RestError(404, "rest_block_type_invalid", "Invalid block type.");
    return type;
  };
  const read: RestEndpoint = {
    methods: ["GET"],
    args: { namespace: namespaceArgument, name: nameArgument, context: contextArgument },
    described: { summary: "Read a block type", form: "item" },
    permit(request) {
      permit(request);
      find(request);
    },
    handle: (request) => ({ status: 200, headers: {}, body: { item: toItem(find(request), request) } }),
  };
  return [
    { namespace, path: "/block-types", schema, endpoints: [list] },
    { namespace, path: "/block-types/:namespace(word)", schema, endpoints: [list] },
    { namespace, path: "/block-types/:namespace(word)/:name(word)", schema, endpoints: [read] },
  ];
}

const linksOf = ({ name, isDynamic }: BlockTypeRecord, to: (path: string) => string): Item["links"] => ({
  collection: [{ href: to("/block-types") }],
  self: [{ href: to(`/block-types/${name}`) }],
  up: [{ href: to(`/block-types/${namespaceOf(name)}`) }],
  ...(isDynamic === true
    ? { "https://api.w.org/render-block": [{ href: to(`/block-renderer/${name}?context=edit`) }] }
    : {}),
});

// The fields of `/block-types`, in the order of WordPress, and the option that fills them.

/** A type of block: the members of its option that the host gave. */
type BlockTypeRecord = JsonObject & { name: string };

const shown = (schema: Schema): Schema => ({ ...schema, context: ALL, readonly: true });
const text = (description: string): Schema =>
  shown({ description, type: "string", default: "", maxLength: LENGTHS.title });
const nullableText = (description: string): Schema =>
  shown({ description, type: ["string", "null"], default: null, maxLength: LENGTHS.content });
const names = (description: string): Schema => shown({ description, ...NAMES, default: [] });
const nullableNames = (description: string): Schema =>
  shown({ ...NAMES, description, type: ["array", "null"], default: null });

/** Like WordPress, responses have an empty list in place of an empty object. */
const OBJECT_OR_EMPTY: Schema = { anyOf: [{ type: "object" }, { type: "array", maxItems: 0 }] };

const object = (description: string, more: Schema = {}): Schema =>
  shown({
    description,
    type: "object",
    maxProperties: COUNTS.members,
    properties: {},
    default: [],
    answered: OBJECT_OR_EMPTY,
    ...more,
  });

const innerBlocks: Schema = {
  description: "The list of inner blocks used in the example.",
  type: "array",
  itemLimit: COUNTS.members,
  items: {
    type: "object",
    properties: {
      name: {
        description: "The name of the inner block.",
        type: "string",
        maxLength: LENGTHS.name,
        required: true,
      },
      attributes: { description: "The attributes of the inner block.", type: "object" },
      innerBlocks: {
        description:
          "A list of the inner block's own inner blocks. This is a recursive definition following the parent innerBlocks schema.",
        type: "array",
      },
    },
  },
};

const example: Schema = {
  description: "Block example.",
  type: ["object", "null"],
  default: null,
  properties: {
    attributes: { description: "The attributes used in the example.", type: "object" },
    innerBlocks,
  },
};

const styles: Schema = {
  description: "Block style variations.",
  type: "array",
  itemLimit: COUNTS.members,
  default: [],
  items: {
    type: "object",
    properties: {
      name: {
        description: "Unique name identifying the style.",
        type: "string",
        maxLength: LENGTHS.name,
        required: true,
      },
      label: { description: "The human-readable label for the style.", type: "string" },
      inline_style: {
        description: "Inline CSS code that registers the CSS class required for the style.",
        type: "string",
      },
      style_handle: { description: "Contains the handle that defines the block style.", type: "string" },
    },
  },
};

const variations: Schema = {
  description: "Block variations.",
  type: "array",
  itemLimit: COUNTS.members,
  default: [],
  items: {
    type: "object",
    properties: {
      name: {
        description: "The unique and machine-readable name.",
        type: "string",
        maxLength: LENGTHS.name,
        required: true,
      },
      title: { description: "A human-readable variation title.", type: "string", required: true },
      description: { description: "A detailed variation description.", type: "string" },
      category: { description: "Block category.", type: ["string", "null"] },
      icon: { description: "Icon of block type.", type: ["string", "null"] },
      isDefault: {
        description: "Indicates whether the current variation is the default one.",
        type: "boolean",
      },
      attributes: { description: "The initial values for attributes.", type: "object" },
      innerBlocks,
      example,
      scope: {
        description:
          "The list of scopes where the variation is applicable. When not provided, it assumes all available scopes.",
        type: ["array", "null"],
        itemLimit: 3,
        items: { type: "string", enum: ["block", "inserter", "transform"] },
      },
      keywords: { description: "Block keywords.", ...NAMES },
    },
  },
};

/** The schemas of all fields that a host may give. */
const SCHEMAS: { [field: string]: Schema } = {
  attributes: shown({
    description: "Block attributes.",
    type: ["object", "null"],
    properties: {},
    default: null,
    additionalProperties: { type: "object" },
  }),
  is_dynamic: shown({ description: "Is the block dynamically rendered.", type: "boolean", default: false }),
  api_version: shown({ description: "Version of block API.", type: "integer", default: 1 }),
  name: shown({
    description: "Unique name identifying the block type.",
    type: "string",
    maxLength: LENGTHS.name,
    required: true,
  }),
  title: text("Title of block type."),
  description: text("Description of block type."),
  icon: nullableText("Icon of block type."),
  category: nullableText("Block category."),
  keywords: names("Block keywords."),
  parent: nullableNames("Parent blocks."),
  ancestor: nullableNames("Ancestor blocks."),
  allowed_blocks: nullableNames("Allowed child block types."),
  provides_context: object("Context provided by blocks of this type.", {
    additionalProperties: { type: "string" },
  }),
  uses_context: names("Context values inherited by blocks of this type."),
  selectors: object("Custom CSS selectors."),
  supports: object("Block supports."),
  styles: shown(styles),
  textdomain: nullableText("Public text domain."),
  example: shown(example),
  editor_script_handles: names("Editor script handles."),
  script_handles: names("Public facing and editor script handles."),
  view_script_handles: names("Public facing script handles."),
  view_script_module_ids: names("Public facing script module IDs."),
  editor_style_handles: names("Editor style handles."),
  style_handles: names("Public facing and editor style handles."),
  view_style_handles: names("Public facing style handles."),
  variations: shown(variations),
  block_hooks: object(
    "This block is automatically inserted near any occurrence of the block types used as keys of this map, into a relative position given by the corresponding value.",
    { additionalProperties: { type: "string", enum: ["before", "after", "first_child", "last_child"] } },
  ),
};

/** Fields that WordPress deprecated: each shows the first of the handles of its successor. */
const DEPRECATED: { [field: string]: string } = {
  editor_script: "Editor script handle.",
  script: "Public facing and editor script handle.",
  view_script: "Public facing script handle.",
  editor_style: "Editor style handle.",
  style: "Public facing and editor style handle.",
};

/** The schema of the option `editor.blockTypes`: the fields under the names of `block.json`. */
const BLOCK_TYPES_OPTION: Schema = {
  type: "array",
  itemLimit: COUNTS.members,
  items: {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(SCHEMAS).map(([field, schema]) => [toMemberName(field), schema]),
    ),
  },
};

/** Attributes that every block has. */
const GLOBAL_ATTRIBUTES: JsonObject = { lock: { type: "object" }, metadata: { type: "object" } };

export const readAttributes = ({ attributes }: JsonObject): { [name: string]: Schema } => ({
  ...((attributes ?? {}) as { [name: string]: Schema }),
  ...(GLOBAL_ATTRIBUTES as { [name: string]: Schema }),
});

const isEmptyObject = (value: Json): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

const readMember = (field: string, schema: Schema) => {
  const name = toMemberName(field);
  return (record: BlockTypeRecord): Json => {
    const value = record[name] ?? schema.default ?? null;
    return isEmptyObject(value) ? [] : value;
  };
};

const readFirstHandle = (field: string) => {
  const name = toMemberName(`${field}_handles`);
  return (record: BlockTypeRecord): Json => (record[name] as string[] | undefined)?.[0] ?? null;
};

const blockTypeFields: RecordFields<BlockTypeRecord> = {
  ...Object.fromEntries(
    Object.entries(SCHEMAS).map(([field, schema]) => [field, { schema, read: readMember(field, schema) }]),
  ),
  attributes: {
    schema: SCHEMAS["attributes"] as Schema,
    read: (record) => readAttributes(record) as unknown as JsonObject,
  },
  ...Object.fromEntries(
    Object.entries(DEPRECATED).map(([field, description]) => [
      field,
      {
        schema: nullableText(`${description} DEPRECATED: Use \`${field}_handles\` instead.`),
        read: readFirstHandle(field),
      },
    ]),
  ),
};
