/** Which part of a list a call reads. */
export interface Page {
  /** The `next` of the page before. Any other value is refused with `invalid_argument`. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}
