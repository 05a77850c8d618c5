// Shared parts of the benchmarks: the event, the receiver, the signed POST of the bare loop, and
// statistics.
import { fork } from "node:child_process";
import { createHmac } from "node:crypto";
import { generate } from "selfsigned";

// As a host runs in production: the default logger writes no line for each failed attempt.
process.env.NODE_ENV ??= "production";

export const CONCURRENCY = 64;
export const ENDPOINTS = 10;

const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], {
  keySize: 2048,
  extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
});

export { freePort, startRedis } from "../scripts/private-redis.js";
export { cert };

export const patient = (index) => ({
  resourceType: "Patient",
  id: `p${index}`,
  name: [{ family: "Example", given: ["Anna", "Maria"] }],
  text: { status: "generated", div: "x".repeat(1_400) },
});

/**
 * A receiver in a process of its own. `collect()` gives what came since the last call: how many
 * POSTs were answered, when the last one was, and the event id and time of each to a path that
 * begins with /timed.
 */
export const startReceiver = () =>
  new Promise((resolve) => {
    const child = fork(new URL("./receiver.js", import.meta.url));
    const collect = () =>
      new Promise((collected) => {
        child.once("message", collected);
        child.send("collect");
      });
    child.once("message", (origins) => resolve({ ...origins, collect, stop: () => child.disconnect() }));
    child.send({ key, cert });
  });

/** Signs and sends one body through an undici pool, as a developer would write it by hand. */
export async function post(pool, path, body) {
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", "secret").update(`${timestamp}.`).update(body).digest("hex");
  const response = await pool.request({
    path,
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-service-signature": `t=${timestamp}, s=${signature}`,
    },
    body,
  });
  await response.body.dump();
  return response.statusCode;
}

/** The value below which the share `part` of all lies. */
export const quantile = (values, part) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];
export const median = (values) => quantile(values, 0.5);
export const spread = (values, digits = 2) =>
  `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`;
