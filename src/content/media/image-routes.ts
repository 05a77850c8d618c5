/** The routes that work on the file of an image: making smaller versions, and editing. */

import type { PostRenderer } from "../posts/post-renderer.js";
import { createPostResource } from "../posts/post-resource.js";
import { itemSchema } from "../posts/post-schema.js";
import type { PostTypeHandler } from "../posts/post-type-handler.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { refusal } from "../rest/error.js";
import type { RestEndpoint, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { createAddImageVersions } from "./add-image-versions.js";
import { createEditImage } from "./edit-image.js";
import { editArguments, idArgument } from "./image-arguments.js";
import { imageRefused, withFile } from "./image-errors.js";
import type { StoredImages } from "./stored-images.js";

export interface ImageRoutesOptions {
  readonly repository: ContentRepository;
  readonly site: Site;
  readonly renderer: PostRenderer;
  /** `undefined` if the host gave nothing that works on images. */
  readonly images: StoredImages | undefined;
  /** `core/v2` */
  readonly namespace: string;
}

/** `type`: the handler of media. */
export function imageRoutes(type: PostTypeHandler, options: ImageRoutesOptions): readonly RestRoute[] {
  const { namespace, images } = options;
  const resource = createPostResource(type, options);
  const { permissions } = resource;
  const schema = itemSchema(type);
  const getImages = (): StoredImages => {
    if (images !== undefined) return images;
    throw imageRefused("unavailable");
  };

  const addVersions: RestEndpoint = {
    methods: ["POST"],
    args: {
      id: idArgument,
      action: { type: "string", enum: ["create-image-subsizes"], required: true },
    },
    described: {
      summary: "Make the missing smaller versions of an image",
      status: 200,
      schema,
      errors: [501],
    },
    permit: permissions.update,
    handle: withFile(createAddImageVersions(resource, { ...options, getImages })),
  };
  const edit: RestEndpoint = {
    methods: ["POST"],
    args: editArguments(type),
    described: { summary: "Edit an image into a new one", context: "view", schema, errors: [501] },
    permit: (request) => {
      const { caller } = request;
      if (!caller.has("upload_files")) {
        const message = "Sorry, you are not allowed to upload media on this site.";
        throw refusal(caller, "rest_cannot_edit_image", message);
      }
      permissions.update(request);
    },
    handle: withFile(createEditImage(resource, { ...options, getImages })),
  };
  const path = `/${type.collection.base}/:id`;
  return [
    { namespace, path: `${path}/post-process`, endpoints: [addVersions] },
    { namespace, path: `${path}/edit`, endpoints: [edit] },
  ];
}
