// Visits the host in bench/host.js from a process of its own, at a steady rate, and says how long
// the answers took.
import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "./support.js";

const EVERY_MS = 5;
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

const visit = (port) =>
  new Promise((resolve, reject) => {
    const start = performance.now();
    get({ port, host: "127.0.0.1", agent }, (response) => {
      response.resume();
      response.on("end", () => resolve(performance.now() - start));
    }).on("error", reject);
  });

/** Visits the host for some seconds, at the same rate however long an answer takes. */
async function visitSteadily({ port, seconds }) {
  const visits = [];
  const start = performance.now();
  for (let index = 0; index * EVERY_MS < seconds * 1_000; index++) {
    const wait = start + index * EVERY_MS - performance.now();
    if (wait > 0) await sleep(wait);
    visits.push(visit(port));
  }
  const latencies = await Promise.all(visits);
  process.send?.({ p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) });
}

process.on("message", (order) => void visitSteadily(order));
process.once("disconnect", () => process.exit(0));
