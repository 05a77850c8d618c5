/**
 * The oEmbed routes: the site's posts for others to embed, and other sites' pages for its
 * editors.
 */

import { toText } from "../../schema/coerce.js";
import type { Argument, Json } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestEndpoint, RestResponse, RestRoute } from "../rest/types.js";
import { type Embed, embedSchema, toXml } from "./embed.js";
import type { ForeignEmbeds } from "./foreign-embeds.js";
import type { OwnEmbeds } from "./own.js";

/** The width of an embed in pixels, unless the client requests another. */
const DEFAULT_WIDTH = 600;

/** The bounds of the size that other sites are asked for. */
const MIN_PIXELS = 100;
const MAX_PIXELS = 2_000;

/**
 * One error for every failure, so that it reveals neither hidden posts nor other sites' responses.
 */
const notFound = (): RestError => new RestError(404, "oembed_invalid_url", "Not Found");

const tooMany = (): RestError =>
  new RestError(429, "rest_too_many_embeds", "Too many embeds are being fetched; try again in a moment.", {
    retryAfter: 5,
  });

/**
 * Parses the number at the beginning of a text, without its sign, as WordPress does; 0 for anything
 * else.
 */
const parsePixels = (value: Json | undefined): number => {
  const count = typeof value === "number" || typeof value === "string" ? Number.parseFloat(String(value)) : 0;
  return Number.isNaN(count) ? 0 : Math.abs(Math.trunc(count));
};

const clampPixels = (count: number): number => Math.min(Math.max(count, MIN_PIXELS), MAX_PIXELS);

const toEmbedResponse = (embed: Embed): RestResponse => ({
  status: 200,
  headers: {},
  body: { json: { ...embed } },
});

const toXmlResponse = (text: string, status = 200): RestResponse => ({
  status,
  headers: {},
  body: { text, type: "text/xml; charset=UTF-8" },
});

const toXmlError = ({ status, code, message }: RestError): RestResponse =>
  toXmlResponse(toXml({ code, message, data: { status } }), status);

const URL_ARGUMENT: Argument = {
  description: "The URL of the resource for which to fetch oEmbed data.",
  required: true,
  type: "string",
  format: "uri",
  maxLength: LENGTHS.url,
};

export const embedRoutes = (
  ownEmbeds: OwnEmbeds,
  /** `undefined`: embeds of other sites are turned off. */
  foreign: ForeignEmbeds | undefined,
): RestRoute[] => [
  toRoute("/embed", createOwnEndpoint(ownEmbeds)),
  toRoute("/proxy", createProxyEndpoint(ownEmbeds, foreign)),
];

const toRoute = (path: string, endpoint: RestEndpoint): RestRoute => ({
  namespace: "oembed/1.0",
  path,
  endpoints: [endpoint],
});

/** Describes a post of this site to another one. */
const createOwnEndpoint = (ownEmbeds: OwnEmbeds): RestEndpoint => ({
  methods: ["GET"],
  args: {
    url: URL_ARGUMENT,
    format: {
      default: "json",
      maxLength: LENGTHS.name,
      accepted: { type: "string", enum: ["json", "xml"] },
    },
    maxwidth: { default: DEFAULT_WIDTH, maxLength: LENGTHS.number, accepted: { type: "integer" } },
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
    const embed = await ownEmbeds.find(toText(values["url"]), parsePixels(values["maxwidth"]));
    // As in WordPress, any other format means JSON.
    if (values["format"] !== "xml") {
      if (embed === undefined) throw notFound();
      return toEmbedResponse(embed);
    }
    return embed === undefined ? toXmlError(notFound()) : toXmlResponse(toXml(embed));
  },
});

/** WordPress accepts any value, and reads the number at its beginning. */
const lenientPixels: Argument = {
  validate: () => undefined,
  sanitize: parsePixels,
};

const PROXY_ARGUMENTS: RestEndpoint["args"] = {
  url: URL_ARGUMENT,
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
    ...lenientPixels,
  },
  maxheight: {
    description: "The maximum height of the embed frame in pixels.",
    type: "integer",
    ...lenientPixels,
  },
  discover: {
    description: "Whether to perform an oEmbed discovery request for unsanctioned providers.",
    type: "boolean",
    default: true,
  },
};

/** Fetches the embed of any page for the site's editors. */
const createProxyEndpoint = (ownEmbeds: OwnEmbeds, foreign: ForeignEmbeds | undefined): RestEndpoint => ({
  methods: ["GET"],
  args: PROXY_ARGUMENTS,
  described: {
    summary: "Ask another site for what it lets others embed",
    form: "json",
    schema: embedSchema,
    errors: [403, 404, 429],
  },
  permit({ caller }) {
    if (caller.has("edit_posts")) return;
    throw refusal(caller, "rest_forbidden", "Sorry, you are not allowed to make proxied oEmbed requests.");
  },
  // As in WordPress, the response is JSON whatever the format.
  async handle({ values, input }) {
    // The URL as the client sent it: it is checked before anything repairs it.
    const url = toText(input["url"]);
    const maxWidth = Number(values["maxwidth"]);
    const maxHeight = values["maxheight"];
    const embed = ownEmbeds.isOwn(url)
      ? await ownEmbeds.find(url, maxWidth)
      : await foreign?.find({
          url,
          maxWidth: clampPixels(maxWidth),
          maxHeight: maxHeight === undefined ? undefined : clampPixels(Number(maxHeight)),
          discover: values["discover"] === true,
        });
    if (embed === "busy") throw tooMany();
    if (embed === undefined) throw notFound();
    return toEmbedResponse(embed);
  },
});
