/** The maximum lengths of texts in requests to the registration API, in characters. Plain data. */

export const TEXT_LENGTHS = {
  /** Browsers accept no longer URL. `checkUrl` checks the length before it parses the text. */
  url: 2_048,
  /** ISO 8601 with milliseconds and an offset has 29 characters. */
  time: 64,
  /** The cursors of all storages are far shorter. */
  cursor: 256,
  /** A UUID, or two of them with a serial number. */
  id: 100,
  header: 8_192,
} as const;
