/**
 * The load of `bench/faults.js` and `bench/soak.js`: two workers that emit and deliver over one
 * storage, and the endpoint that they deliver to. What was promised and what arrived is written
 * down in this process, which no fault touches.
 */
import { fork } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

const PROGRAM = new URL("./faults-worker.js", import.meta.url);
const WORKERS = 2;
/** A call of a worker that the fault keeps from answering. */
const CALL_MS = 30_000;

/** The requests that arrived, and how the endpoint answers: a status, or `undefined` for never. */
export async function startEndpoint(host = "127.0.0.1", port = 0, arrivals = []) {
  const endpoint = {
    status: 200,
    port: 0,
    keepsConnections: true,
    /** Of requests answered 200: the event, when, and where it was delivered to. */
    arrivals,
    backlog: 0,
    /** Holds for connections from their next response on. */
    closeIdleAfter(ms) {
      server.keepAliveTimeout = ms;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("error", () => {});
    request.on("end", () => {
      if (endpoint.status === undefined) return;
      const [, id] = /"id":"([^"]+)"/.exec(Buffer.concat(chunks).toString("latin1", 0, 200)) ?? [];
      if (request.url === "/backlog") endpoint.backlog++;
      else if (endpoint.status === 200) endpoint.arrivals.push({ id, at: performance.now(), host });
      // Written out, so that Node does not announce when it closes the connection.
      const connection = endpoint.keepsConnections ? "keep-alive" : "close";
      response.writeHead(endpoint.status, { "content-length": "0", connection }).end();
    });
  });
  server.listen(port, host);
  await once(server, "listening");
  endpoint.port = server.address().port;
  return endpoint;
}

const HOSTS = {
  process: (settings) => fork(PROGRAM, { serialization: "advanced", ...settings }),
  cluster({ execArgv = [] }) {
    cluster.setupPrimary({ exec: PROGRAM.pathname, execArgv, serialization: "advanced" });
    return cluster.fork().process;
  },
  thread: () => new Worker(PROGRAM),
};

/** Starts a worker; `call` asks it for one of the commands of `faults-worker.js`. */
export function startWorker(onReport, host = "process", settings = {}) {
  const worker = HOSTS[host](settings);
  const calls = new Map();
  let count = 0;
  let isOver = false;
  worker.on("error", (error) => onReport({ log: "error", message: `${error}` }));
  let ready;
  const isReady = new Promise((resolve) => {
    ready = resolve;
  });
  worker.on("message", (message) => {
    if (message.isReady) {
      ready();
      return;
    }
    if (message.number === undefined) {
      onReport(message);
      return;
    }
    const { resolve, reject } = calls.get(message.number) ?? {};
    calls.delete(message.number);
    if (message.error === undefined) resolve?.(message.value);
    else reject?.(new Error(message.error));
  });
  const exited = once(worker, "exit").then(() => {
    isOver = true;
    for (const { reject } of calls.values()) reject(new Error("The worker ended."));
  });
  return {
    isOver: () => isOver,
    call(command, value, withinMs = CALL_MS) {
      const number = ++count;
      const message = { number, command, value };
      return new Promise((resolve, reject) => {
        const timer = setTimeout(reject, withinMs, new Error(`${command} had no answer in ${withinMs} ms`));
        const settle = (then) => (result) => {
          clearTimeout(timer);
          then(result);
        };
        calls.set(number, { resolve: settle(resolve), reject: settle(reject) });
        if (isOver) calls.get(number).reject(new Error("The worker ended."));
        else
          void isReady.then(() =>
            host === "thread" ? worker.postMessage(message) : worker.send(message, () => {}),
          );
      });
    },
    kill: async () => {
      if (host === "thread") await worker.terminate();
      else worker.kill("SIGKILL");
      await exited;
    },
  };
}

/**
 * Starts the load. `storage` is the address that the workers open, with its `kind`; `webhooks` are
 * further options of `createWebhooks`.
 *
 * @param {{ storage: object, perSecond: number, endpoints?: number, webhooks?: object,
 *   host?: "process" | "cluster" | "thread", settings?: object,
 *   urlOf?: (endpoint: { port: number }, index: number) => string, listenOn?: string,
 *   endpoint?: Awaited<ReturnType<typeof startEndpoint>> }} options
 */
export async function startLoad(options) {
  const { storage, perSecond, endpoints = 4, webhooks, host, settings } = options;
  const { urlOf = ({ port }) => `http://127.0.0.1:${port}` } = options;
  const { endpoint = await startEndpoint(options.listenOn) } = options;
  /** The delivery of each event whose emit resolved. */
  const promised = new Map();
  const refused = new Map();
  const logged = new Map();
  const webhookIds = [];
  const count = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);
  const onReport = ({ promised: id, deliveryId, refused: code, log, message }) => {
    if (id !== undefined) promised.set(id, deliveryId);
    else if (code !== undefined) count(refused, code);
    else count(logged, `${log}: ${message}`);
  };
  const open = async () => {
    const worker = startWorker(onReport, host, settings);
    await worker.call("open", { storage, webhooks });
    return worker;
  };
  const emitFrom = (worker) => worker.call("emit", { perSecond: perSecond / WORKERS, accounts: endpoints });

  const workers = [];
  const close = async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    endpoint.close();
  };
  try {
    while (workers.length < WORKERS) workers.push(await open());
    for (let index = 0; index < endpoints; index++) {
      const url = `${urlOf(endpoint, index)}/${index}`;
      webhookIds.push(await workers[0].call("register", { account: `bench-${index}`, url }));
    }
    for (const worker of workers) await worker.call("start");
    for (const worker of workers) await emitFrom(worker);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    endpoint,
    workers,
    webhookIds,
    promised,
    refused,
    logged,
    /** Ends the worker as a crash does, and starts another one in its place. */
    async replace(index) {
      await workers[index].kill();
      workers[index] = await open();
      await workers[index].call("start");
      await emitFrom(workers[index]);
    },
    pause: () => Promise.allSettled(workers.map((worker) => worker.call("pause"))),
    resume: () => Promise.all(workers.map(emitFrom)),
    /** Events whose emit resolved and that have not arrived. */
    missing() {
      const arrived = new Set(endpoint.arrivals.map(({ id }) => id));
      return [...promised.keys()].filter((id) => !arrived.has(id));
    },
    /**
     * Which of these events the storage still has to deliver, as a worker sees it that starts now.
     * The workers go on meanwhile, so some may have arrived since.
     */
    async listPending(events) {
      if (events.length === 0) return new Set();
      const reader = await open();
      const ids = events.map((id) => promised.get(id));
      const pending = await reader.call("listPending", ids).finally(() => void reader.kill());
      const isPending = new Set(pending);
      return new Set(events.filter((id) => isPending.has(promised.get(id))));
    },
    repeated() {
      const ids = endpoint.arrivals.map(({ id }) => id);
      return ids.length - new Set(ids).size;
    },
    close,
  };
}

/** Waits until `condition` holds. Returns whether it did. */
export async function waitFor(condition, withinMs, everyMs = 100) {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await sleep(everyMs);
  }
  return true;
}
