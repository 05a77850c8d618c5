/**
 * A content site that asks the pretended internet for embeds, with its limits as they are by
 * default.
 */

import { manualClock } from "../../src/testing/manual-clock.js";
import { type CallAnswer, callsOf } from "./content-call.js";
import { contentSite, type Role } from "./content-site.js";
import { reply } from "./https-endpoint.js";
import { type PretendInternet, pretendInternet } from "./pretend-internet.js";

const HOSTS = ["www.youtube.com", "pages.example.org", "oembed.example.org", "video.example.net"] as const;

type EmbedOptions = NonNullable<NonNullable<Parameters<typeof contentSite>[0]>["embeds"]>;

export async function embedSite(options: EmbedOptions = {}) {
  const internet = await pretendInternet(HOSTS);
  const clock = manualClock(Date.UTC(2026, 10, 21));
  const site = contentSite({
    clock,
    site: { url: "https://site.example.com", name: "Example" },
    embeds: {
      ...options,
      destinations: { ca: internet.ca, resolve: internet.resolve, ...options.destinations },
    },
  });
  const call = callsOf(site, "oembed/1.0");
  const proxy = (
    url: string,
    query: { [name: string]: string | number } = {},
    as: Role | null = "editor",
  ): Promise<CallAnswer> => call("GET /proxy", { query: { url, ...query }, ...(as === null ? {} : { as }) });
  const close = async (): Promise<void> => {
    await site.stop();
    await internet.close();
  };
  return { internet, clock, site, call, proxy, close };
}

export const json = (value: unknown): Buffer =>
  reply(200, typeof value === "string" ? value : JSON.stringify(value), {
    "content-type": "application/json",
  });

export const xml = (text: string): Buffer => reply(200, text, { "content-type": "text/xml; charset=utf-8" });

export const page = (text: string): Buffer => reply(200, text, { "content-type": "text/html" });

/** Each path of the pretended hosts answers with its bytes, whatever the query; others with 404. */
export function serve(internet: PretendInternet, answers: { readonly [address: string]: Buffer }): void {
  internet.answer((socket, { host, path }) => {
    socket.write(answers[`${host}${path.split("?", 1)[0]}`] ?? reply(404));
  });
}

export const VIDEO = {
  version: "1.0",
  type: "video",
  title: "A heart",
  width: 480,
  height: 270,
  html: '<iframe src="https://video.example.net/player/1" onload="alert(1)"></iframe>',
};

export const NOT_FOUND = { status: 404, body: { code: "oembed_invalid_url", data: { status: 404 } } };
