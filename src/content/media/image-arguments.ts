/** The arguments of the routes that work on the file of an image. */

import type { Argument, Arguments, Schema } from "../../schema/types.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import { writeArguments } from "../posts/post-schema.js";
import type { PostTypeHandler } from "../posts/post-type-handler.js";

export const idArgument: Argument = { description: "Unique identifier for the attachment.", type: "integer" };

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

const numbers = (descriptions: { readonly [name: string]: string }): Schema => ({
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
  mostItems: COUNTS.edits,
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
export function editArguments(type: PostTypeHandler): Arguments {
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
