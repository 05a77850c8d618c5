/**
 * Generates TypeScript clients from the OpenAPI documents, compiles requests with them, and sends
 * them through a socket.
 */

import { createServer } from "node:http";
import { resolve } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { JsonObject } from "../../src/schema/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import { contentSite, credentials } from "../support/content-site.js";
import { listen } from "../support/hosts.js";
import { registrationApi } from "../support/registration-api.js";

const FOLDER = resolve(import.meta.dirname, "../data/generated-client");

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};

/** As the generator's manual says: a file is a `Blob`. */
async function generateTypes(document: JsonObject): Promise<string> {
  const blob = ts.factory.createTypeReferenceNode("Blob");
  const nodes = await openapiTS(JSON.stringify(document), {
    transform: (schema) => ("contentMediaType" in schema ? blob : undefined),
  });
  return astToString(nodes);
}

/** Compiles the requests with the generated types, and returns the messages of the compiler. */
async function compile(name: "content" | "webhook", document: JsonObject): Promise<readonly string[]> {
  const types = await generateTypes(document);
  const generated = resolve(FOLDER, `${name}-types.d.ts`);
  const disk = ts.createCompilerHost(OPTIONS);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (file) => resolve(file) === generated || disk.fileExists(file),
    readFile: (file) => (resolve(file) === generated ? types : disk.readFile(file)),
    // The one of `disk` would not ask the functions above.
    getSourceFile(file, target) {
      const text = this.readFile(file);
      return text === undefined ? undefined : ts.createSourceFile(file, text, target);
    },
  };
  const program = ts.createProgram([resolve(FOLDER, `${name}-requests.ts`)], OPTIONS, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file === undefined ? "" : file.getLineAndCharacterOfPosition(start).line + 1;
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
  });
}

/** Without the types of the module: they exist in the compilation above alone. */
const importRequests = async <Name extends string>(name: "content" | "webhook") =>
  (await import(`../data/generated-client/${name}-requests.ts`)) as {
    readonly [name in Name]: (baseUrl: string, credentials: string) => Promise<unknown>;
  };

it("types and sends the requests of a content client", async () => {
  const clock = manualClock(Date.UTC(2026, 10, 21, 12));
  const server = createServer();
  const host = await listen(server);
  const content = contentSite({ clock, files: memoryFiles(), site: { url: host.origin, name: "Example" } });
  server.on("request", nodeAdapter(content, { prefix: "/api" }));
  expect(await compile("content", content.openApi() as JsonObject)).toEqual([]);
  const { useContent } = await importRequests<"useContent">("content");
  expect(await useContent(`${host.origin}/api`, credentials("administrator"))).toEqual({
    lists: {
      one: ["One"],
      several: ["One", "Two"],
      slugs: ["One", "Two"],
      status: ["Two"],
      category: ["One"],
      both: ["Two"],
      later: [],
    },
    edited: { raw: "One", rendered: "One" },
    embedded: { id: 1, title: { raw: "One", rendered: "One" } },
    uploads: [
      { raw: "In a form", rendered: "In a form" },
      "alone",
      `${host.origin}/uploads/2026/11/form.txt`,
    ],
    items: [4, 1, 1],
    batch: [201, 200],
    embed: "One",
    me: "administrator",
    missing: "rest_post_invalid_id",
  });
  await host.close();
});

it("types and sends the requests of a webhook client", async () => {
  const { webhooks } = registrationApi();
  const host = await listen(createServer(nodeAdapter(webhooks, { prefix: "/api" })));
  expect(await compile("webhook", webhooks.openApi() as JsonObject)).toEqual([]);
  const { useWebhooks } = await importRequests<"useWebhooks">("webhook");
  expect(await useWebhooks(`${host.origin}/api`, "key-a1")).toEqual({
    isSecret: true,
    tested: 202,
    listed: 1,
    refused: "invalid_url",
  });
  await host.close();
});
