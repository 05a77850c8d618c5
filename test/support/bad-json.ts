/**
 * The recorded request bodies that must be refused: 4xx, never 5xx, and the next good request
 * works.
 */

import { readFileSync } from "node:fs";
import type { ReadableBody } from "../../src/http/types.js";

export interface BadCase {
  readonly id: string;
  readonly api: "registration" | "content";
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly bodyBase64?: string;
  readonly bodyRepeat?: readonly (readonly [text: string, count: number])[];
  readonly why: string;
}

export const badCases = (api: BadCase["api"]): readonly BadCase[] => {
  const text = readFileSync(new URL("../data/bad-json.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { cases: readonly BadCase[] }).cases.filter((one) => one.api === api);
};

export const bytesOf = ({ body = "", bodyBase64, bodyRepeat }: BadCase): Buffer =>
  bodyBase64 !== undefined
    ? Buffer.from(bodyBase64, "base64")
    : Buffer.from(bodyRepeat?.map(([text, count]) => text.repeat(count)).join("") ?? body);

export async function* streamed(bytes: Uint8Array): ReadableBody {
  for (let at = 0; at < bytes.length; at += 16_384) yield bytes.subarray(at, at + 16_384);
}
