/** The errors of the routes that work on images. */

import { isPostbellError } from "../../core/errors.js";
import { RestError } from "../rest/error.js";
import type { RestEndpoint } from "../rest/types.js";
import type { ImageRefusal } from "./image-tool.js";

type Refusal = ImageRefusal | "unavailable";

const REFUSALS: {
  readonly [refusal in Refusal]: readonly [status: number, code: string, message: string];
} = {
  busy: [503, "rest_image_busy", "Too many images are being worked on; try again later."],
  animated: [400, "rest_cannot_edit_file_type", "An image that moves cannot be edited."],
  too_large: [400, "rest_image_too_large", "The image is too large to be edited."],
  unreadable: [400, "rest_image_unreadable", "The file cannot be read as an image."],
  unavailable: [501, "rest_image_editing_unavailable", "This site does not edit images."],
  too_slow: [400, "rest_image_too_slow", "Editing the image takes too long."],
};

/** Seconds after which a place for another image is probably free. */
const RETRY_AFTER = 5;

export const imageRefused = (refused: Refusal): RestError =>
  new RestError(...REFUSALS[refused], refused === "busy" ? { retryAfter: RETRY_AFTER } : {});

export const unknownAttachment = (): RestError =>
  new RestError(404, "rest_unknown_attachment", "Unable to get meta information for file.");

/** Turns a file that the host has lost into a 404: it is not a failure of the service. */
export const withFile =
  (handle: RestEndpoint["handle"]): RestEndpoint["handle"] =>
  async (request) => {
    try {
      return await handle(request);
    } catch (error) {
      throw isPostbellError(error, "not_found") ? unknownAttachment() : error;
    }
  };
