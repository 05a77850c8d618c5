/** The URLs of media files, which may be on another host. */

import { parseUrl } from "../../core/parse-url.js";
import type { MediaFile } from "../records/records.js";
import type { Site } from "../site.js";
import { toWebUrl } from "../text/urls.js";

/** Returns the last segment of the name of a stored file. */
export const getFileBaseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/**
 * Returns the URL of a file of the item: the one shown, or the one with `name`. A stored record may
 * hold a URL that an earlier version took from an import unchecked, so it is checked here.
 */
export function getMediaUrl(file: MediaFile, site: Pick<Site, "upload">, name = file.name): string {
  const whole = file.elsewhere === undefined ? "" : toWebUrl(file.elsewhere);
  if (whole === "") return site.upload(name);
  return name === file.name ? whole : (parseUrl(`./${getFileBaseName(name)}`, whole)?.href ?? whole);
}
