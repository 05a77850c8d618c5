/** The headers that a route may set, and their names where WordPress shows them in a body. */

/** Names in lower case, as in every HTTP response. */
export interface RestHeaders {
  allow?: string;
  link?: string;
  location?: string;
  "retry-after"?: string;
  "x-wp-total"?: string;
  "x-wp-totalpages"?: string;
}

const WORDPRESS_NAMES: { [name in keyof RestHeaders]-?: string } = {
  allow: "Allow",
  link: "Link",
  location: "Location",
  "retry-after": "Retry-After",
  "x-wp-total": "X-WP-Total",
  "x-wp-totalpages": "X-WP-TotalPages",
};

/**
 * Returns the headers under WordPress's names. An envelope, a batch response and a response inside
 * the process show them as data, where case counts.
 */
export const toWordPressNames = (headers: RestHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [WORDPRESS_NAMES[name as keyof RestHeaders], value]),
  );
