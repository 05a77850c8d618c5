/** Finds what makes the smaller versions of imported images. */

import { createRequire } from "node:module";
import { sharpImages } from "../images/index.js";
import type { ImageTool } from "../src/content/media/image-tool.js";

/** `undefined` where `sharp` is not installed beside the command: images stay as they come. */
export function findImageTool(): ImageTool | undefined {
  try {
    createRequire(import.meta.url).resolve("sharp");
  } catch {
    return undefined;
  }
  return sharpImages();
}
