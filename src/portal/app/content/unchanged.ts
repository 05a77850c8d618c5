/** Keeps a change from being made over a state that the visitor has not seen. */

import type { RecordJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";

/** Makes a write fail with 412 where the record is no longer the one that is shown. */
export const ifUnchanged = ({
  modified_gmt: modified,
}: Pick<RecordJson, "modified_gmt">): Readonly<Record<string, string>> => ({
  "if-unmodified-since": new Date(`${modified}Z`).toUTCString(),
});

export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.status === 412;
