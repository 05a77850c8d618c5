/**
 * `postbell/images`: what makes smaller versions of uploaded images, and edits them.
 *
 * @module postbell/images
 */

export type { SharpImagesOptions } from "./sharp-images.js";
export { sharpImages } from "./sharp-images.js";
