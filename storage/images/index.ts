/** `postbell/images`: what makes smaller versions of uploaded images, and edits them. */

export { type SharpImagesOptions, sharpImages } from "./sharp-images.js";
