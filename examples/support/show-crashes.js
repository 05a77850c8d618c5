// Kills a server of an example at the worst moments, starts it again, and shows that nothing is
// lost and nothing is sent for what was rolled back.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSubscriber } from "./subscriber.js";

/** Ends this process as `kill -9` does, if the request has asked for it. For the show only. */
export function crashAt(moment, asked) {
  if (process.env.SHOW_CRASHES === "1" && asked === moment) process.kill(process.pid, "SIGKILL");
}

/** Starts the server of an example. Resolves with its process and its address. */
async function startServer(path, env) {
  const child = spawn(process.execPath, ["--no-warnings", path], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  for await (const chunk of child.stdout) {
    said += chunk;
    const address = /Listening on (\S+)/.exec(said)?.[1];
    // Reading on would end with the loop, and close the stream.
    if (address) return { child, address };
  }
  throw new Error(`The server has ended: ${said}`);
}

/** `env`: the environment of the server, such as the address of its database. */
export async function showCrashes(path, env = {}) {
  const dir = mkdtempSync(join(tmpdir(), "postbell-example-"));
  const endpoint = await startSubscriber();
  const settings = {
    ...env,
    FILE: join(dir, "clinic.db"),
    PORT: "0",
    SHOW_CRASHES: "1",
    SUBSCRIBER_CA: endpoint.ca,
  };
  let server = await startServer(path, settings);
  const arrived = new Set();
  let onArrival = () => {};
  const headers = { authorization: "Bearer demo-key", "content-type": "application/json" };
  const registered = await fetch(`${server.address}/api/v1/webhooks`, {
    method: "POST",
    headers,
    body: JSON.stringify({ url: endpoint.url }),
  });
  const { secret } = await registered.json();
  endpoint.receive(secret, ({ event }) => {
    arrived.add(event.context[0].resource.entry[0].resource.id);
    onArrival();
  });

  /** Saves a patient. Resolves with the status, or with the signal that killed the server. */
  const save = async (id, name, crash = "") => {
    const exit = once(server.child, "exit");
    const query = new URLSearchParams({ name, crash });
    const asked = fetch(`${server.address}/patients/${id}?${query}`, { method: "PUT" });
    const result = await asked.then(({ status }) => status).catch(async () => (await exit)[1]);
    if (result === "SIGKILL") server = await startServer(path, settings);
    return result;
  };
  console.log(`ada: ${await save("ada", "Ada")}`);
  console.log(`nobody, rolled back: ${await save("nobody", "")}`);
  console.log(`grace, killed before the commit: ${await save("grace", "Grace", "before the commit")}`);
  console.log(`joan, killed after the commit: ${await save("joan", "Joan", "after the commit")}`);
  console.log(`mary: ${await save("mary", "Mary")}`);

  const wanted = ["ada", "joan", "mary"];
  await new Promise((resolve) => {
    onArrival = () => wanted.every((id) => arrived.has(id)) && resolve();
    onArrival();
  });
  const exit = once(server.child, "exit");
  server.child.kill("SIGTERM");
  await exit;
  endpoint.close();
  rmSync(dir, { recursive: true });
  const others = [...arrived].filter((id) => !wanted.includes(id));
  console.log(
    `Delivered: ${wanted.join(", ")}. Sent for what was not committed: ${others.join(", ") || "nothing"}.`,
  );
  if (others.length > 0) process.exitCode = 1;
}
