/** Compares validators of responses (RFC 9110 §8.8.3). Pure. */

const toOpaque = (tag: string): string => tag.trim().replace(/^W\//, "");

/** True if `If-None-Match` names the tag, by weak comparison (RFC 9110 §13.1.2). */
export const isMatch = (ifNoneMatch: string | undefined, tag: string | undefined): boolean =>
  ifNoneMatch !== undefined &&
  tag !== undefined &&
  (ifNoneMatch.trim() === "*" ||
    ifNoneMatch.split(",").some((candidate) => toOpaque(candidate) === toOpaque(tag)));
