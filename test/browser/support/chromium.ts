/** A real Chromium, and a page in it that notes what it should not do. */

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function launch(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) {
    throw new Error(
      "There is no Chromium here: install it (apt-get install chromium), or name one in the environment variable CHROMIUM.",
    );
  }
  // As root, in a container, there is no sandbox to be had.
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}

export interface Watched {
  readonly page: Page;
  /** Requests beyond `origin`, violations of the policy, and errors of the page itself. */
  readonly faults: string[];
}

export async function open(
  browser: Browser,
  origin: string,
  {
    colorScheme = "light",
    width = 1_200,
    locale = "en-GB",
  }: { colorScheme?: "light" | "dark"; width?: number; locale?: string } = {},
): Promise<Watched> {
  const context = await browser.newContext({
    colorScheme,
    viewport: { width, height: 900 },
    locale,
    timezoneId: "UTC",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:") && !url.startsWith("blob:"))
      faults.push(`request: ${url}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      faults.push(`console: ${message.text()}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective))",
  );
  return { page, faults };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Findings of axe: a rule, and the elements that break it. `further`: rules that axe leaves out by
 * default.
 */
export async function axeFindings(page: Page, further: string[] = []): Promise<readonly string[]> {
  await page.evaluate(axe);
  const rules = Object.fromEntries(further.map((name) => [name, { enabled: true }]));
  return page.evaluate<readonly string[]>(
    `axe.run({ rules: ${JSON.stringify(rules)} }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ' ' + failureSummary)))`,
  );
}
