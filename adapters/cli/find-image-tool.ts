/** Finds the tool that makes smaller versions of imported images. */

import { createRequire } from "node:module";
import type { ImageTool } from "../../src/content/media/image-tool.js";
import { sharpImages } from "../sharp/index.js";

/**
 * Returns `undefined` if `sharp` is not installed next to the command: images then keep one size.
 */
export function findImageTool(): ImageTool | undefined {
  try {
    createRequire(import.meta.url).resolve("sharp");
  } catch {
    return undefined;
  }
  return sharpImages();
}
