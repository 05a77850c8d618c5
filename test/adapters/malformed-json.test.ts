/** Malformed JSON in front of and behind `express.json()`, as docs/guides/mount.md describes it. */

import { createServer } from "node:http";
import express from "express";
import express4 from "express4";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressAdapter } from "../../adapters/express.js";
import { bearer, createWebhooks } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { listen } from "../support/hosts.js";

const KEY = "s3cret";

const openService = () =>
  createWebhooks({
    storage: memoryStorage(),
    access: {
      authenticate: (request) => (bearer(request) === KEY ? { id: "key-1", account: "clinic" } : null),
      canRead: () => true,
    },
    logger: false,
  });

/** Sends malformed JSON to the registration API of an app. */
async function sendMalformed(app: express.Express): Promise<{ status: number; type: string; text: string }> {
  const host = await listen(createServer(app));
  onTestFinished(() => host.close());
  const response = await fetch(`${host.origin}/api/v1/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: '{"url": "https://hooks.example.com/in"',
  });
  const type = response.headers.get("content-type") ?? "";
  return { status: response.status, type, text: await response.text() };
}

describe.each([
  ["Express 4", express4 as unknown as typeof express],
  ["Express 5", express],
])("malformed JSON on %s", (_name, framework) => {
  it("gets Postbell's error if the service is mounted in front of the parser", async () => {
    const app = framework();
    app.use("/api", expressAdapter(openService()));
    app.use(framework.json());
    const { status, text } = await sendMalformed(app);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "invalid_json" } });
  });

  it("gets Express's page behind the parser, and JSON with the error handler of the guide", async () => {
    const app = framework();
    app.use(framework.json());
    app.use("/api", expressAdapter(openService()));
    const page = await sendMalformed(app);
    expect([page.status, page.type]).toEqual([400, "text/html; charset=utf-8"]);

    const handled = framework();
    handled.use(framework.json());
    handled.use("/api", expressAdapter(openService()));
    const handler: express.ErrorRequestHandler = (error, _request, response, next) => {
      if (error.type !== "entity.parse.failed") return next(error);
      response.status(400).json({ error: { code: "invalid_json", message: "The body is not valid JSON." } });
    };
    handled.use(handler);
    const { status, text } = await sendMalformed(handled);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "invalid_json" } });
  });
});
