/**
 * A Vite plugin that puts a watched module in the place of a module of the package, wherever that
 * is imported.
 */

import { join, resolve } from "node:path";
import type { Plugin } from "vite";

const root = resolve(import.meta.dirname, "../..");
const watched = join(root, "test/support/watched");

/** The replaced modules and their replacements. */
const STAND_INS: ReadonlyMap<string, string> = new Map([
  [join(root, "src/core/errors.ts"), join(watched, "errors.ts")],
  [join(root, "src/http/errors.ts"), join(watched, "http-errors.ts")],
  [join(root, "src/core/logger.ts"), join(watched, "logger.ts")],
  [join(root, "src/core/telemetry.ts"), join(watched, "telemetry.ts")],
  [join(root, "src/webhooks/service.ts"), join(watched, "webhooks-service.ts")],
  [join(root, "src/content/service.ts"), join(watched, "content-service.ts")],
]);

/**
 * The stand-in itself gets the original. `vi.mock` in a set-up file cannot do this: it applies to
 * one test file, and the files of a shared process have already loaded the modules.
 */
export const watchedModules: Plugin = {
  name: "watched-modules",
  enforce: "pre",
  async resolveId(source, importer, options) {
    if (importer === undefined || !source.startsWith(".")) return undefined;
    const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
    if (resolved === null) return undefined;
    const standIn = STAND_INS.get(resolved.id);
    return standIn === undefined || standIn === importer ? undefined : standIn;
  },
};
