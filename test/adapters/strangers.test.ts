/**
 * A stranger, who has no key and no session, cannot make any service fail in any host: every
 * response is below 500, shows no stack, and no logger gets an error.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prometheus } from "../../adapters/prometheus.js";
import type { Logger } from "../../src/core/logger.js";
import type { Service } from "../../src/http/types.js";
import { createPortal } from "../../src/portal/index.js";
import { createReceiver } from "../../src/receiver/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { stopComparing } from "../support/compared-service.js";
import { contentSite, credentials } from "../support/content-site.js";
import { HOSTS } from "../support/hosts.js";
import { dial, untilClosed } from "../support/http-client.js";
import { type LogEntry, recordingLogger, registrationApi, START } from "../support/registration-api.js";

// Some of these paths are described, and left to the host: `/v1/webhooks//`.
stopComparing();

const PREFIX = "/api";
const ID = "0b7a1c5e-65aa-42ec-a945-5fd21dec0538";
const FILE = "/2026/03/a.txt";

interface Target {
  readonly paths: readonly string[];
  readonly create: (logger: Logger) => Promise<Service>;
}

async function createUploads(logger: Logger): Promise<Service> {
  const content = contentSite({ logger, files: memoryFiles(), clock: manualClock(START) });
  const upload = {
    authorization: credentials("editor"),
    "content-type": "text/plain",
    "content-disposition": 'attachment; filename="a.txt"',
  };
  const stored = await content.handle({
    method: "POST",
    path: "/core/v2/media",
    query: "",
    headers: upload,
    body: Buffer.from("hello"),
    baseUrl: "http://localhost",
  });
  expect(stored?.status).toBe(201);
  return content.uploads as Service;
}

const TARGETS: Readonly<Record<string, Target>> = {
  webhooks: {
    paths: ["/v1/webhooks", `/v1/webhooks/${ID}`, "/v1/event-types", "/openapi.json"],
    create: async (logger) => registrationApi({ logger }).webhooks,
  },
  content: {
    paths: ["/", "/core/v2/posts", "/core/v2/posts/1", "/core/v2/media"],
    create: async (logger) => contentSite({ logger, files: memoryFiles(), clock: manualClock(START) }),
  },
  uploads: { paths: [FILE, "/2026"], create: createUploads },
  portal: {
    paths: ["/", "/app.js", "/favicon.svg", "/api/session", "/api/v1/webhooks", "/api/content/posts"],
    create: async (logger) =>
      createPortal({
        webhooks: registrationApi({ logger }).webhooks,
        content: contentSite({ logger, clock: manualClock(START) }),
        authorize: () => null,
        clock: manualClock(START),
        logger,
      }),
  },
  receiver: {
    paths: ["/"],
    create: async (logger) =>
      createReceiver({
        secrets: "whsec_of_nobody_else",
        onEvent: () => {},
        clock: manualClock(START),
        logger,
      }),
  },
  metrics: { paths: ["/metrics"], create: async () => prometheus({ authorize: () => false }).service },
};

const oddTargets = (path: string): readonly string[] => [
  path,
  `${path}/`,
  `${path}//`,
  `${path}/./`,
  `/${path}`,
  path.replaceAll("/", "//"),
  `${path}/..`,
  `${path}/../../../etc/passwd`,
  `${path}/%2e%2e/%2E%2E`,
  `${path}%00`,
  `${path}/%00`,
  `${path}%2f`,
  path.replace(/^\//, "/%2f"),
  `${path};a=b`,
  `${path}/;`,
  `${path}%`,
  `${path}/%zz`,
  `${path}/%c3%28`,
  `${path}\\`,
  `${path}/__proto__`,
  `${path}/constructor`,
  path.toUpperCase(),
  `${path}/${"x".repeat(8_000)}`,
  `${path}${"/a".repeat(3_000)}`,
  `${path}?%zz=%c3%28&%00`,
  `${path}?__proto__[a]=1&constructor[prototype][a]=1&a[][b]=1`,
  `${path}?include[]=&per_page=-1&limit=NaN&cursor=%00&_fields[]=a&_embed[a]=1`,
  `${path}?${"a[b]=1&".repeat(1_000)}`,
];

const METHODS = [
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "QUERY",
  "PROPFIND",
  "M-SEARCH",
];

const JSON_TYPE = "content-type: application/json\r\n";
const body = (text: string): string => `content-length: ${text.length}\r\n\r\n${text}`;

/** Each follows the request line and Host. */
const ODD_HEADERS: readonly string[] = [
  "authorization: Bearer \x7f\r\n",
  "authorization: Bearer\r\nauthorization: Basic Og==\r\n",
  `authorization: Basic ${"A".repeat(8_000)}\r\n`,
  'authorization: Digest username="a"\r\ncookie: \r\ncookie: =;;a\r\n',
  "x-service-signature: t=1, s=0\r\nx-service-signature: t=NaN\r\n",
  "webhook-id: \r\nwebhook-signature: v1,\r\nwebhook-timestamp: x\r\n",
  'if-none-match: W/"\r\nif-match: *\r\nif-modified-since: never\r\n',
  'range: bytes=9-1,-,x\r\nif-range: "\r\n',
  "range: bytes=0-0,1-1\r\naccept: */\r\naccept-encoding: br;q=9\r\n",
  "origin: null\r\naccess-control-request-method: \r\naccess-control-request-headers: ,\r\n",
  "x-forwarded-host: a b\r\nx-forwarded-proto: x:\r\nforwarded: for=\r\n",
  "x-http-method-override: CONNECT\r\nidempotency-key: \r\n",
  "constructor: a\r\n__proto__: b\r\ntostring: c\r\n",
  `host: b\r\n${JSON_TYPE}`,
  `${JSON_TYPE}content-type: text/plain\r\n${body("{}")}`,
  `content-type: multipart/form-data; boundary=\r\n${body("--")}`,
  `content-type: multipart/form-data; boundary=x\r\n${body("--x\r\ncontent-disposition: form-data\r\n\r\n")}`,
  `content-type: application/x-www-form-urlencoded\r\n${body("a[b]=1&a=2&%zz")}`,
  `content-encoding: br\r\n${JSON_TYPE}${body("x")}`,
  `${JSON_TYPE}${body('{"__proto__":{"a":1}}')}`,
  `${JSON_TYPE}${body("[".repeat(20_000))}`,
  `${JSON_TYPE}${body("\xff\x00")}`,
  `content-type: \r\n${body("x")}`,
  `transfer-encoding: chunked\r\n${JSON_TYPE}\r\n3\r\n{}\n\r\n0\r\n\r\n`,
  `transfer-encoding: chunked\r\n${JSON_TYPE}\r\nzz\r\n`,
  "content-length: 99999999999\r\n\r\n",
  "expect: 200-maybe\r\n",
];

/** A whole request as it goes over the wire. */
interface Probe {
  readonly what: string;
  readonly text: string;
}

const probe = (requestLine: string, rest = ""): Probe => {
  const head = `${requestLine}\r\nhost: a\r\nconnection: close\r\n${rest}`;
  return {
    what: `${requestLine} ${rest}`.slice(0, 200),
    text: rest.includes("\r\n\r\n") ? head : `${head}\r\n`,
  };
};

const probesOf = (path: string): readonly Probe[] => {
  const own = PREFIX + path;
  const raw = [
    `GET http://evil.example${own} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
    `GET https://a:b@evil.example:99999${own} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
    `GET ${own} HTTP/1.0\r\n\r\n`,
    `POST ${own} HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}`,
    `GET ${own} HTTP/1.1\r\nhost: \r\nconnection: close\r\n\r\n`,
    `GET ${own} HTTP/1.1\r\nhost: a b/?"<\r\nconnection: close\r\n\r\n`,
    `GET ${own} HTTP/1.1\r\nhost: [::1\r\nconnection: close\r\n\r\n`,
    `get ${own} HTTP/1.1\r\nhost: a\r\n\r\n`,
    `OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
  ];
  return [
    ...oddTargets(path).map((target) => probe(`GET ${PREFIX}${target} HTTP/1.1`)),
    ...METHODS.map((method) => probe(`${method} ${own} HTTP/1.1`)),
    ...METHODS.map((method) => probe(`${method} ${own}/ HTTP/1.1`)),
    ...["GET", "POST"].flatMap((method) =>
      ODD_HEADERS.map((headers) => probe(`${method} ${own} HTTP/1.1`, headers)),
    ),
    ...raw.map((text) => ({ what: text, text })),
  ];
};

async function exchange(origin: string, text: string): Promise<string> {
  const socket = await dial(origin);
  const closed = untilClosed(socket);
  socket.write(Buffer.from(text, "latin1"));
  return closed;
}

const STACK = /\bat \S.*:\d+:\d+|\.ts:\d+|node_modules/;

describe.each(HOSTS.map(({ name, mount }) => [name, mount] as const))("a stranger at %s", (_, mount) => {
  describe.each(Object.entries(TARGETS))("with the service %s", (_name, { paths, create }) => {
    let log: LogEntry[];
    let host: RunningHost;

    beforeAll(async () => {
      const recorded = recordingLogger();
      ({ log } = recorded);
      host = await mount({ service: await create(recorded.logger), prefix: PREFIX, parser: "none" });
    });
    afterAll(() => host.close());

    it.each(paths)("gets no 5xx, no stack and no line of errors in the log, around %s", async (path) => {
      const failed: unknown[] = [];
      for (const { what, text } of probesOf(path)) {
        const response = await exchange(host.origin, text);
        const status = Number(response.split(" ", 2)[1] ?? 0);
        if (!(status >= 100 && status < 500) || STACK.test(response))
          failed.push({ what, response: response.slice(0, 300) });
        const errors = log.splice(0).filter(({ level }) => level === "error");
        if (errors.length > 0) failed.push({ what, errors });
      }
      expect(failed).toEqual([]);
    });
  });
});
