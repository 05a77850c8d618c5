import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { decide } from "../../scripts/redis-for-tests.js";

const script = resolve(import.meta.dirname, "../../scripts/redis-for-tests.js");

const decision = (programs: string[], asRoot?: string[]) =>
  decide({ programs: new Set(programs), asRoot: () => asRoot });

describe("the decision where the tests get their Redis from", () => {
  it.each([
    ["Redis", decision(["redis-server", "apt-get"], [])],
    ["Valkey", decision(["valkey-server", "brew"])],
  ])("is to do nothing where there is %s", (_, made) => {
    expect(made).toMatchObject({ ready: true, ways: [] });
  });

  it("does not so much as try sudo where a server is there", () => {
    const asRoot = (): never => {
      throw new Error("asked");
    };
    expect(decide({ programs: new Set(["apt-get", "redis-server"]), asRoot })).toMatchObject({
      ready: true,
      ways: [],
    });
  });

  it.each([
    ["root", [], ""],
    ["a user of sudo", ["sudo", "-n"], "sudo -n "],
  ])("takes apt-get for %s, and stops the service that comes with the package", (_, asRoot, prefix) => {
    const { ways } = decision(["apt-get"], asRoot);
    expect(ways.map((way) => way.map((command) => command.join(" ")))).toEqual([
      [
        `${prefix}env DEBIAN_FRONTEND=noninteractive apt-get -qq update`,
        `${prefix}env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends redis-server`,
        `${prefix}service redis-server stop`,
      ],
    ]);
  });

  it("takes Homebrew after apt-get, and instead of it where nobody may be root", () => {
    const brew = [["brew", "install", "redis"]];
    expect(decision(["apt-get", "brew"], []).ways).toEqual([expect.any(Array), brew]);
    expect(decision(["apt-get", "brew"]).ways).toEqual([brew]);
  });

  it("leaves Docker to the reader, with what to type, and says what else there is to do", () => {
    expect(decision(["docker"])).toMatchObject({ ready: false, ways: [] });
    expect(decision(["docker"]).remedy).toMatch(/docker run .*npm ci && npm run servers && npm test"$/);
    expect(decision(["apt-get"]).remedy).toMatch(/Install redis-server or valkey-server\.$/);
  });
});

describe("the script, on a machine with these programs", () => {
  function run(programs: Record<string, string>, ...args: string[]) {
    const folder = mkdtempSync(join(tmpdir(), "postbell-path-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [name, body] of Object.entries(programs)) {
      writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`);
      chmodSync(join(folder, name), 0o755);
    }
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
      env: { PATH: folder },
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  }

  it.each([
    ["redis-server", run.bind(null, { "redis-server": "exit 1" })],
    ["valkey-server", run.bind(null, { "valkey-server": "exit 1" })],
  ])("is silent with %s", (_, running) => {
    expect(running()).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  const brew = '[ "$*" = "install redis" ] && /bin/cp "$0" "$(/usr/bin/dirname "$0")/redis-server"';

  it("installs nothing without --install, and names the one command that does", () => {
    expect(run({ brew })).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(/^No Redis server for the tests.*: npm run servers\n$/),
    });
  });

  it("installs a server with what there is, and says so in one line", () => {
    expect(run({ brew }, "--install")).toEqual({
      status: 0,
      stdout: "No Redis server for the tests. Running: brew install redis\n",
      stderr: "",
    });
  });

  it("ends with 1 and one line where the installer brings no server", () => {
    const { status, stderr } = run({ brew: "exit 1" }, "--install");
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^No Redis server for the tests.*\n$/)]);
  });

  it("ends with 1 and one line where there is nothing", () => {
    const { status, stdout, stderr } = run({});
    expect([status, stdout, stderr]).toEqual([
      1,
      "",
      expect.stringMatching(/^No Redis server for the tests.*Install.*\n$/),
    ]);
  });
});
