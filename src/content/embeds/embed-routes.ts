/** The oEmbed routes: the site's own posts for others to embed, and other sites' pages for its editors. */

import { toText } from "../../schema/text-of.js";
import type { Json } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestResponse, RestRoute } from "../rest/types.js";
import { type Embed, embedSchema, toXml } from "./embed.js";
import type { ForeignEmbeds } from "./foreign-embeds.js";
import type { OwnEmbeds } from "./own.js";

/** Of what is embedded, unless the client asks for another. */
const DEFAULT_WIDTH = 600;

/** What other sites are asked for lies between these. */
const MIN_PIXELS = 100;
const MAX_PIXELS = 2_000;

export interface EmbedRoutesOptions {
  readonly own: OwnEmbeds;
  /** `undefined`: other sites are not asked. */
  readonly foreign: ForeignEmbeds | undefined;
}

/** One answer for all that cannot be embedded: it tells neither what is hidden here nor what was found elsewhere. */
const notFound = (): RestError => new RestError(404, "oembed_invalid_url", "Not Found");

const tooMany = (): RestError =>
  new RestError(429, "rest_too_many_embeds", "Too many embeds are being fetched; try again in a moment.", {
    retryAfter: 5,
  });

/** A number at the beginning of a text, as the reference reads it; 0 for anything else. */
const countOf = (value: Json | undefined): number => {
  const count = typeof value === "number" || typeof value === "string" ? Number.parseFloat(String(value)) : 0;
  return Number.isNaN(count) ? 0 : Math.trunc(count);
};

const within = (count: number): number => Math.min(Math.max(count, MIN_PIXELS), MAX_PIXELS);

const asJson = (embed: Embed): RestResponse => ({ status: 200, headers: {}, body: { json: { ...embed } } });

const asXml = (embed: Embed): RestResponse => ({
  status: 200,
  headers: {},
  body: { text: toXml(embed), type: "text/xml; charset=UTF-8" },
});

export const embedRoutes = ({ own, foreign }: EmbedRoutesOptions): readonly RestRoute[] => [
  {
    namespace: "oembed/1.0",
    path: "/embed",
    endpoints: [
      {
        methods: ["GET"],
        args: {
          url: {
            description: "The URL of the resource for which to fetch oEmbed data.",
            required: true,
            type: "string",
            format: "uri",
            maxLength: LENGTHS.url,
          },
          format: { default: "json", maxLength: LENGTHS.name },
          maxwidth: { default: DEFAULT_WIDTH, maxLength: LENGTHS.number },
        },
        described: {
          summary: "Embed a post of this site elsewhere",
          form: "json",
          schema: embedSchema,
          otherType: "text/xml",
          errors: [404],
        },
        permit: () => {},
        async handle({ values }) {
          const embed = await own.of(toText(values["url"]), countOf(values["maxwidth"]));
          if (embed === undefined) throw notFound();
          // As in the reference, any other format is JSON.
          return values["format"] === "xml" ? asXml(embed) : asJson(embed);
        },
      },
    ],
  },
  {
    namespace: "oembed/1.0",
    path: "/proxy",
    endpoints: [
      {
        methods: ["GET"],
        args: {
          url: {
            description: "The URL of the resource for which to fetch oEmbed data.",
            required: true,
            type: "string",
            format: "uri",
            maxLength: LENGTHS.url,
          },
          format: {
            description: "The oEmbed format to use.",
            type: "string",
            default: "json",
            enum: ["json", "xml"],
          },
          maxwidth: {
            description: "The maximum width of the embed frame in pixels.",
            type: "integer",
            default: DEFAULT_WIDTH,
          },
          maxheight: { description: "The maximum height of the embed frame in pixels.", type: "integer" },
          discover: {
            description: "Whether to perform an oEmbed discovery request for unsanctioned providers.",
            type: "boolean",
            default: true,
          },
        },
        described: {
          summary: "Ask another site for what it lets others embed",
          form: "json",
          schema: embedSchema,
          errors: [403, 404, 429],
        },
        permit: ({ caller }) => {
          if (caller.has("edit_posts")) return;
          throw refusal(
            caller,
            "rest_forbidden",
            "Sorry, you are not allowed to make proxied oEmbed requests.",
          );
        },
        // As in the reference, the answer is JSON whatever the format.
        async handle({ values, given }) {
          // As it came: what is judged must not have been mended before.
          const url = toText(given["url"]);
          const maxWidth = countOf(values["maxwidth"]);
          const maxHeight = values["maxheight"];
          const embed = own.isOwn(url)
            ? await own.of(url, maxWidth)
            : await foreign?.of({
                url,
                maxWidth: within(maxWidth),
                maxHeight: maxHeight === undefined ? undefined : within(countOf(maxHeight)),
                discover: values["discover"] === true,
              });
          if (embed === "busy") throw tooMany();
          if (embed === undefined) throw notFound();
          return asJson(embed);
        },
      },
    ],
  },
];
