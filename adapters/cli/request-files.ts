/** Saves received requests to numbered files of a folder. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type HttpMessage, writeMessage } from "./http-message.js";

export interface RequestFiles {
  /** Saves a request, and returns the path of its file. `name` becomes part of it. */
  readonly save: (message: HttpMessage, name: string) => Promise<string>;
}

export function createRequestFiles(folder: string): RequestFiles {
  let number = 0;
  return {
    async save(message, name) {
      const safeName = name.replace(/[^A-Za-z0-9-]+/g, "-").slice(0, 80);
      for (;;) {
        const file = join(folder, `${String(++number).padStart(4, "0")}-${safeName}.http`);
        try {
          await writeFile(file, writeMessage(message), { flag: "wx", mode: 0o600 });
          return file;
        } catch (error) {
          // An earlier run may have used the number.
          if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
        }
      }
    },
  };
}
