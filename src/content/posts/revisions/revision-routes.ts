/** The routes of the revisions of a post type: list, read, delete. */

import type { Argument, Arguments } from "../../../schema/types.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import type { RestEndpoint, RestRequest, RestRoute } from "../../rest/types.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import { createDeleteRevision } from "./delete-revision.js";
import { createListRevisions } from "./list-revisions.js";
import { revisionListArguments } from "./revision-list.js";
import {
  createRevisionResource,
  type RevisionResource,
  type RevisionRoutesOptions,
} from "./revision-resource.js";

const parentArgument: Argument = { description: "The ID for the parent of the revision.", type: "integer" };
const idArgument: Argument = { description: "Unique identifier for the revision.", type: "integer" };

const withParent = (args: Arguments): Arguments => ({ parent: parentArgument, ...args });

function readEndpoint({ permissions, loadParent, renderer, permitRead }: RevisionResource): RestEndpoint {
  return {
    methods: ["GET"],
    args: withParent({ id: idArgument, context: contextArgument }),
    permit: permitRead,
    handle: async (request) => {
      const { values, caller, url } = request;
      const post = permissions.read(Number(values["parent"]), caller);
      const revision = await permissions.find(Number(values["id"]), post);
      const parent = await loadParent(revision.parent);
      const item = await renderer.render(revision, parent, { context: readContext(request), url });
      return { status: 200, headers: {}, body: { item } };
    },
  };
}

function deleteEndpoint(resource: RevisionResource, options: RevisionRoutesOptions): RestEndpoint {
  const findRemovable = ({ values, caller }: RestRequest) =>
    resource.permissions.remove(Number(values["id"]), Number(values["parent"]), caller);
  return {
    methods: ["DELETE"],
    args: withParent({
      id: idArgument,
      force: {
        description: "Required to be true, as revisions do not support trashing.",
        type: "boolean",
        default: false,
      },
    }),
    permit: async (request) => void (await findRemovable(request)),
    handle: createDeleteRevision(resource, findRemovable, options.repository),
  };
}

/** Returns no route for a type without revisions. */
export function revisionRoutes(type: PostTypeHandler, options: RevisionRoutesOptions): readonly RestRoute[] {
  const { base, hasRevisions } = type.collection;
  if (!hasRevisions) return [];
  const { namespace } = options;
  const resource = createRevisionResource(type, options);
  const { schema } = resource.renderer;
  const list: RestEndpoint = {
    methods: ["GET"],
    args: withParent(revisionListArguments),
    permit: resource.permitRead,
    handle: createListRevisions(type.collection, resource, options),
  };
  return [
    { namespace, path: `/${base}/:parent/revisions`, schema, endpoints: [list] },
    {
      namespace,
      path: `/${base}/:parent/revisions/:id`,
      schema,
      endpoints: [readEndpoint(resource), deleteEndpoint(resource, options)],
    },
  ];
}
