/** The oEmbed routes: the site's own posts for others to embed, and other sites' pages for its editors. */

import { RestError, refusal } from "../rest/error.js";
import type { RestRoute } from "../rest/types.js";

/** Of what is embedded, unless the client asks for another. */
const DEFAULT_WIDTH = 600;

const unavailable = (): never => {
  throw new RestError(501, "rest_embeds_unavailable", "This site does not answer embeds.");
};

export const embedRoutes = (): readonly RestRoute[] => [
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
          },
          format: { default: "json" },
          maxwidth: { default: DEFAULT_WIDTH },
        },
        permit: () => {},
        handle: unavailable,
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
        permit: ({ caller }) => {
          if (caller.has("edit_posts")) return;
          throw refusal(
            caller,
            "rest_forbidden",
            "Sorry, you are not allowed to make proxied oEmbed requests.",
          );
        },
        handle: unavailable,
      },
    ],
  },
];
