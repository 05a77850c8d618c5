/** `/block-types`: the types of blocks that the host's options list. */

import { PostbellError } from "../../core/errors.js";
import { toText } from "../../schema/text-of.js";
import type { Argument } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError } from "../rest/error.js";
import { contextArgument, readContext, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";
import { BLOCK_TYPES_OPTION, type BlockTypeRecord, blockTypeFields } from "./block-type-fields.js";
import { forEditors, readPlainOption } from "./editor-options.js";

/** The types of blocks by name: `clinic/today`. */
export type BlockTypes = ReadonlyMap<string, BlockTypeRecord>;

/** In characters of JSON. */
const MAX_CHARACTERS = 4_194_304;

const NAME = /^[a-z][a-z0-9-]*\/[a-z][a-z0-9-]*$/;

/** @throws PostbellError `invalid_option` */
export function readBlockTypes(given: unknown): BlockTypes {
  const field = "editor.blockTypes";
  const list = readPlainOption(
    field,
    given,
    BLOCK_TYPES_OPTION,
    MAX_CHARACTERS,
  ) as readonly BlockTypeRecord[];
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

export function blockTypeRoutes(types: BlockTypes, namespace: string): readonly RestRoute[] {
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
