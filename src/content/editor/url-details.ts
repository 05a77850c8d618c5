/** `/wp-block-editor/v1/url-details`: what a linked page says of itself. */

import { type AddressPolicy, checkUrl } from "../../outbound/address-policy.js";
import { toText } from "../../schema/text-of.js";
import type { Argument, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError } from "../rest/error.js";
import { ALL } from "../rest/record-fields.js";
import type { RestRoute } from "../rest/types.js";
import { forEditors } from "./editor-options.js";
import type { LinkedPages } from "./linked-pages.js";

const detail = (description: string, format?: "uri"): Schema => ({
  description,
  type: "string",
  ...(format === undefined ? {} : { format }),
  context: ALL,
  readonly: true,
});

const SCHEMA: Schema = {
  title: "url-details",
  type: "object",
  properties: {
    title: detail("The contents of the <title> element from the URL."),
    icon: detail('The favicon image link of the <link rel="icon"> element from the URL.', "uri"),
    description: detail('The content of the <meta name="description"> element from the URL.'),
    image: detail(
      'The Open Graph image link of the <meta property="og:image"> or <meta property="og:image:url"> element from the URL.',
      "uri",
    ),
  },
};

const FAILURES = {
  no_response: "URL not found. Response returned a non-200 status code for this URL.",
  no_content: "Unable to retrieve body from response at this URL.",
} as const;

const tooMany = (): RestError =>
  new RestError(429, "rest_too_many_embeds", "Too many pages are being fetched; try again in a moment.", {
    retryAfter: 5,
  });

/** Refuses a URL that no page of others can have, such as one with a private address. */
const urlArgument = (policy: AddressPolicy): Argument => ({
  description: "The URL to process.",
  required: true,
  type: "string",
  format: "uri",
  maxLength: LENGTHS.url,
  validate: (value) =>
    typeof value === "string" && checkUrl(value, { ...policy, allowHttp: true }).ok
      ? undefined
      : { code: "", message: "Invalid parameter." },
});

export const urlDetailsRoute = (
  pages: Pick<LinkedPages, "find"> | undefined,
  policy: AddressPolicy,
): RestRoute => ({
  namespace: "wp-block-editor/v1",
  path: "/url-details",
  schema: SCHEMA,
  endpoints: [
    {
      methods: ["GET"],
      args: { url: urlArgument(policy) },
      described: {
        summary: "Ask another site for the title and pictures of a page",
        form: "json",
        schema: SCHEMA,
        errors: [403, 404, 429],
      },
      permit: forEditors(
        "rest_cannot_view_url_details",
        "Sorry, you are not allowed to process remote URLs.",
      ),
      async handle({ given }) {
        // The URL as the client sent it: it was checked before anything repaired it.
        const details = (await pages?.find(toText(given["url"]))) ?? "no_response";
        if (details === "busy") throw tooMany();
        if (typeof details === "string") throw new RestError(404, details, FAILURES[details]);
        return { status: 200, headers: {}, body: { json: { ...details } } };
      },
    },
  ],
});
