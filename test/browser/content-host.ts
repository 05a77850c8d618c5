/** A host of the console on loopback, over memory, and a browser that looks at it as one of the users. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Browser, Page } from "playwright-core";
import { nodeAdapter } from "../../adapters/node.js";
import { createPortal } from "../../portal/index.js";
import type { JsonObject } from "../../src/schema/types.js";
import { memoryFiles } from "../../storage/files/index.js";
import { contentSite, idOf, type Role } from "../support/content-site.js";
import { listen } from "../support/hosts.js";

const fixtures = JSON.parse(
  readFileSync(new URL("../conformance/fixtures.json", import.meta.url), "utf8"),
) as Record<string, { base64: string }>;

export const fixture = (name: string): Buffer => Buffer.from(fixtures[name]?.base64 ?? "", "base64");

export async function contentHost(browser: Browser, limits: { uploadBytes?: number } = {}) {
  const content = contentSite({ files: memoryFiles(), limits });
  const portal = createPortal({
    content,
    title: "The clinic's site",
    authorize: ({ headers }) => {
      const role = /role=(\w+)/.exec(headers["cookie"] ?? "")?.[1] as Role | undefined;
      return role === undefined ? null : { name: `The ${role}`, userId: idOf(role) };
    },
  });
  const running = await listen(createServer(nodeAdapter(portal, { prefix: "/portal" })));
  const closes: (() => Promise<void>)[] = [];
  /** What the page must never do: break its policy, log an error, ask another origin. */
  const faults: string[] = [];

  return {
    content,
    origin: running.origin,
    faults,
    /** A page of somebody in the role, at a view of the console. */
    async visit(role: Role, view: string, options: { colorScheme?: "light" | "dark" } = {}): Promise<Page> {
      const context = await browser.newContext(options);
      closes.push(() => context.close());
      await context.addCookies([{ name: "role", value: role, url: running.origin }]);
      const page = await context.newPage();
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
          faults.push(message.text());
      });
      page.on("request", (request) => {
        if (!/^(?:data|blob):/.test(request.url()) && new URL(request.url()).origin !== running.origin)
          faults.push(`asked ${request.url()}`);
      });
      await page.goto(`${running.origin}/portal/#${view}`);
      await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      return page;
    },
    async request(as: Role, line: string, body?: JsonObject) {
      const [method = "", address = ""] = line.split(" ");
      const [path = "", search = ""] = address.split("?");
      const answer = await content.request({
        method,
        path: `/core/v2${path}`,
        query: method === "GET" ? { context: "edit", ...Object.fromEntries(new URLSearchParams(search)) } : {},
        body,
        as: idOf(as),
      });
      return answer.body as ReturnType<typeof JSON.parse>;
    },
    async close(): Promise<void> {
      for (const end of closes) await end();
      await running.close();
    },
  };
}
