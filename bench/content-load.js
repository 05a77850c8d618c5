// Shared parts of the content benchmarks: servers in separate processes, connections that request
// as fast as they can, and rows of ratios.
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { median, spread } from "./support.js";

export const child = (file, ...args) =>
  fork(new URL(file, import.meta.url), args, { execArgv: ["--expose-gc"] });

export function asked(process, message) {
  return new Promise((resolve, reject) => {
    const ended = (code, signal) => {
      reject(new Error(`a benchmark process exited with ${code ?? signal}`));
    };
    process.once("exit", ended);
    process.once("message", (reply) => {
      process.off("exit", ended);
      resolve(reply);
    });
    process.send(message);
  });
}

/** `message`: see content-server.js. */
export async function startServer(framework, message = {}) {
  const process = child("content-server.js", framework);
  const { origin } = await asked(process, message);
  const cpuMicros = async () => {
    const { user, system } = (await asked(process, "cpu")).cpu;
    return user + system;
  };
  return { origin, cpuMicros, stop: () => process.disconnect() };
}

/**
 * One connection that sends `request` again and again. All answers are equally long, so that they
 * need only be counted.
 */
async function connection(origin, request, size) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let received = 0;
  let count = 0;
  let isOver = false;
  const done = new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`${origin} closed a connection`)));
    socket.on("data", (chunk) => {
      if (received === 0 && chunk.toString("latin1", 9, 12) !== "200") {
        reject(new Error(chunk.toString("latin1")));
      }
      received += chunk.length;
      if (received < size) return;
      if (received > size) reject(new Error(`a response of ${received} bytes instead of ${size}`));
      received = 0;
      count++;
      if (isOver) resolve(count);
      else socket.write(request);
    });
  });
  return {
    start: () => socket.write(request),
    async stop() {
      isOver = true;
      const result = await done;
      socket.removeAllListeners("close").destroy();
      return result;
    },
  };
}

/** Asks for `path` as fast as it can over `connections`. */
export async function load({ origin, cpuMicros }, path, connections, ms) {
  const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const size = await sizeOf(origin, request);
  const lanes = await Promise.all(
    Array.from({ length: connections }, () => connection(origin, request, size)),
  );
  const cpuBefore = await cpuMicros();
  const start = performance.now();
  for (const lane of lanes) lane.start();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const counts = await Promise.all(lanes.map((lane) => lane.stop()));
  const elapsed = performance.now() - start;
  const count = counts.reduce((sum, one) => sum + one);
  return {
    perSecond: (count / elapsed) * 1_000,
    cpuMicros: ((await cpuMicros()) - cpuBefore) / count,
  };
}

/** Of a whole answer, head and body. */
async function sizeOf(origin, request) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(request);
  let text = "";
  for await (const chunk of socket) {
    text += chunk.toString("latin1");
    const end = text.indexOf("\r\n\r\n") + 4;
    const [, length] = /content-length: (\d+)/i.exec(text) ?? [];
    if (end > 3 && length !== undefined) return end + Number(length);
  }
  throw new Error(`no length in ${text}`);
}

export const row = (name, own, base) => {
  const ratios = own.map(({ perSecond }, round) => perSecond / base[round].perSecond);
  const cpu = own.map(({ cpuMicros }, round) => cpuMicros / base[round].cpuMicros);
  return {
    name,
    "per second": Math.round(median(own.map(({ perSecond }) => perSecond))),
    ratio: median(ratios).toFixed(2),
    spread: spread(ratios),
    "CPU µs": median(own.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
    "CPU ratio": median(cpu).toFixed(2),
  };
};

export const print = (rows) => {
  console.table(Object.fromEntries(rows.map(({ name, ...figures }) => [name, figures])));
};
