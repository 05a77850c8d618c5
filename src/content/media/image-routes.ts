/** The routes that work on the file of an image: making smaller versions, and editing. */

import type { Argument, Arguments, Schema } from "../../schema/types.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { PostBase } from "../posts/post-base.js";
import { createPostResource, type PostResource } from "../posts/post-resource.js";
import { itemSchema, type PostTypeHandler, writeArguments } from "../posts/post-type-handler.js";
import type { MediaFile } from "../records/records.js";
import { refusal } from "../rest/error.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import { createEditImage, imageRefused, withFile } from "./edit-image.js";
import { uploadedImage } from "./image-versions.js";
import type { StoredImages } from "./stored-images.js";

export function imageRoutes(
  base: PostBase,
  /** `undefined` if the host gave nothing that works on images. */
  images: StoredImages | undefined,
): RestRoute[] {
  const { namespace, postTypes } = base;
  const type = postTypes.get("attachment");
  const resource = createPostResource(type, base);
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
    handle: withFile(createAddImageVersions(resource, base, getImages)),
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
    handle: withFile(createEditImage(resource, base, getImages)),
  };
  const path = `/${type.collection.base}/:id`;
  return [
    { namespace, path: `${path}/post-process`, endpoints: [addVersions] },
    { namespace, path: `${path}/edit`, endpoints: [edit] },
  ];
}

// Makes the smaller versions that an image lacks.

function createAddImageVersions(
  { load, permissions, render }: PostResource,
  { repository }: PostBase,
  getImages: () => StoredImages,
): (request: RestRequest) => Promise<RestResponse> {
  /** Versions that another request has stored in the meantime stay. */
  async function addVersions(request: RestRequest, file: MediaFile, mimeType: string): Promise<void> {
    const images = getImages();
    const completed = await images.complete(await images.measured(file, mimeType), mimeType);
    if (completed.file === file) return;
    let stored: MediaFile | null = null;
    try {
      await repository.change(async (transaction) => {
        stored = null;
        const post = await load(Number(request.values["id"]));
        permissions.update(request, post);
        if (post.media === null || uploadedImage(post.media).name !== uploadedImage(file).name) return;
        const { altText, sizes, original } = post.media;
        const shown = original === undefined ? completed.file : post.media;
        stored = { ...shown, altText, sizes: { ...completed.file.sizes, ...sizes } };
        transaction.putPost({ ...post, media: stored });
      });
    } catch (error) {
      await completed.discard();
      throw error;
    }
    await completed.discard(stored);
  }

  return async (request) => {
    const id = Number(request.values["id"]);
    const { media, mimeType } = await load(id);
    if (media !== null && mimeType.startsWith("image/")) await addVersions(request, media, mimeType);
    return { status: 200, headers: {}, body: { item: await render(await load(id), request, "edit") } };
  };
}

// The arguments of the routes that work on the file of an image.

const idArgument: Argument = { description: "Unique identifier for the attachment.", type: "integer" };

const percentage = (description: string): Argument => ({
  description,
  type: "number",
  minimum: 0,
  maximum: 100,
});

const modifier = (title: string, type: string, args: Schema): Schema => ({
  title,
  properties: {
    type: { description: `${title} type.`, type: "string", enum: [type] },
    args: { description: `${title} arguments.`, type: "object", ...args },
  },
});

const numbers = (descriptions: { [name: string]: string }): Schema => ({
  required: Object.keys(descriptions),
  properties: Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [
      name,
      { description, type: "number" } as Schema,
    ]),
  ),
});

const modifiers: Argument = {
  description: "Array of image edits.",
  type: "array",
  minItems: 1,
  itemLimit: COUNTS.edits,
  items: {
    description: "Image edit.",
    type: "object",
    required: ["type", "args"],
    oneOf: [
      modifier("Flip", "flip", {
        required: ["flip"],
        properties: {
          flip: {
            description: "Flip direction.",
            type: "object",
            required: ["horizontal", "vertical"],
            properties: {
              horizontal: { description: "Whether to flip in the horizontal direction.", type: "boolean" },
              vertical: { description: "Whether to flip in the vertical direction.", type: "boolean" },
            },
          },
        },
      }),
      modifier("Rotation", "rotate", numbers({ angle: "Angle to rotate clockwise in degrees." })),
      modifier(
        "Crop",
        "crop",
        numbers({
          left: "Horizontal position from the left to begin the crop as a percentage of the image width.",
          top: "Vertical position from the top to begin the crop as a percentage of the image height.",
          width: "Width of the crop as a percentage of the image width.",
          height: "Height of the crop as a percentage of the image height.",
        }),
      ),
    ],
  },
};

/** WordPress had these arguments before `modifiers`. */
const deprecated = (description: string): string => `${description} DEPRECATED: Use \`modifiers\` instead.`;

const deprecatedArguments: Arguments = {
  rotation: {
    description: deprecated("The amount to rotate the image clockwise in degrees."),
    type: "integer",
    minimum: 0,
    exclusiveMinimum: true,
    maximum: 360,
    exclusiveMaximum: true,
  },
  x: percentage(deprecated("As a percentage of the image, the x position to start the crop from.")),
  y: percentage(deprecated("As a percentage of the image, the y position to start the crop from.")),
  width: percentage(deprecated("As a percentage of the image, the width to crop the image to.")),
  height: percentage(deprecated("As a percentage of the image, the height to crop the image to.")),
};

const EDITED_FIELDS = ["caption", "description", "title", "post", "alt_text"] as const;

/** `type`: the handler of media. */
function editArguments(type: PostTypeHandler): Arguments {
  const writable = writeArguments(type);
  return {
    src: {
      description: "URL to the edited image file.",
      type: "string",
      format: "uri",
      maxLength: LENGTHS.url,
      required: true,
    },
    modifiers,
    ...deprecatedArguments,
    ...Object.fromEntries(EDITED_FIELDS.map((name) => [name, writable[name] as Argument])),
  };
}
