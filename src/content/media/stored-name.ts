/** Gives a staged file a name of its own, where others may have taken the one that is wanted. */

import { randomUUID } from "node:crypto";
import type { StagedFile } from "../files.js";

/** Numbers that are tried for a name that is taken, before one is drawn. */
const NUMBERED_NAMES = 20;

export interface NameParts {
  /** `2026/11` */
  readonly folder: string;
  /** `heart` */
  readonly base: string;
  /** `png` */
  readonly extension: string;
}

/**
 * Publishes it as `2026/11/heart.png`, or `heart-1.png` where that is taken; resolves with the
 * parts it got.
 */
export async function publishUnderFreeName(
  staged: StagedFile,
  { folder, base: wanted, extension }: NameParts,
): Promise<{ readonly name: string; readonly base: string }> {
  for (const base of candidates(wanted)) {
    const name = `${folder}/${base}.${extension}`;
    if (await staged.publish(name)) return { name, base };
  }
  throw new Error("Every name that was tried for a file is taken.");
}

function* candidates(base: string): Generator<string> {
  yield base;
  for (let number = 1; number <= NUMBERED_NAMES; number += 1) yield `${base}-${number}`;
  yield `${base}-${randomUUID().slice(0, 8)}`;
}

/**
 * Year and month. `localTime` is the site's wall-clock time in epoch ms, as in `PostColumns.date`.
 */
export function toUploadFolder(localTime: number): string {
  const [year, month] = new Date(localTime).toISOString().split("-");
  return `${year}/${month}`;
}

/** Of a stored file, whose name has always an extension. */
export function splitFileName(name: string): NameParts {
  const [slash, dot] = [name.lastIndexOf("/"), name.lastIndexOf(".")];
  return {
    folder: name.slice(0, slash),
    base: name.slice(slash + 1, dot),
    extension: name.slice(dot + 1),
  };
}
