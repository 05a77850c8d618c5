import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildCurlCommand, findSignatureHeader } from "../../../src/portal/app/webhooks/calls.js";

const headers = {
  "content-type": "application/json",
  "user-agent": "Postbell",
  "X-Service-Signature": "(computed for each attempt)",
  "webhook-id": "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11",
  "webhook-timestamp": "(computed for each attempt)",
  "webhook-signature": "(computed for each attempt)",
};

describe("a delivery as a curl command", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "postbell-curl-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("uses the header that the service signs with", () => {
    expect(findSignatureHeader({ headers })).toBe("X-Service-Signature");
    expect(findSignatureHeader({ headers: { "X-Hub-Signature": "" } })).toBe("X-Hub-Signature");
  });

  it("quotes what an attacker may have put into the address and the body", () => {
    const hostile = `{"name":"O'Neill $(touch owned) \`touch owned\`"}`;
    const url = "https://hooks.example.com/in?a='$(touch owned)'";
    const command = buildCurlCommand(
      { method: "POST", url, headers, bytes: 1, body: hostile },
      "X-Service-Signature",
    );
    // `curl` is a function here that prints its arguments.
    const script = `curl() { printf '%s\\n' "$@"; cat notification.json; }\n${command}`;
    const { stdout, stderr } = spawnSync("sh", ["-c", script], {
      cwd: folder,
      env: { ...process.env, WEBHOOK_SECRET: "whsec_x" },
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    expect(stdout.split("\n")[0]).toBe(url);
    expect(stdout).toContain(hostile);
    expect(stdout).toMatch(/X-Service-Signature: t=\d+, s=[0-9a-f]{64}\n/);
    expect(spawnSync("ls", { cwd: folder, encoding: "utf8" }).stdout).toBe("notification.json\n");
  });
});
