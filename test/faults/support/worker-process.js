// A host of the package in a process of its own, which dies, or stalls, at the step that
// WH_CRASH_AT names.
import { appendFileSync } from "node:fs";
import { createWebhooks } from "postbell";
import { openStorage } from "./open-storage.js";

const {
  storage: address,
  journal,
  webhooks: options = {},
  ...settings
} = JSON.parse(process.env.WH_OPTIONS ?? "{}");

/** Written before whatever comes next, so that it is there also where that is the end. */
const note = (entry) => appendFileSync(journal, `${JSON.stringify(entry)}\n`);

const step = (name) => {
  if (process.env.WH_CRASH_AT === name) process.kill(process.pid, "SIGKILL");
};

const isDelivered = (settlements) => settlements.some(({ outcome }) => outcome.state === "delivered");
const isRetried = (settlements) => settlements.some(({ outcome }) => outcome.state === "pending");
const isDisabling = ({ from, status }) => from === "ENABLED" && status === "DISABLED";
const hasClaims = (_request, { claims }) => claims.length > 0;

/**
 * Steps around calls of the store: each is passed when the call that it belongs to is made, or has
 * been answered.
 */
const BEFORE = {
  append: [["c0"]],
  settle: [
    ["c8", isDelivered],
    ["c10", isRetried],
  ],
  settleHealthNotification: [["c13-disable", isDisabling]],
};
const AFTER = {
  append: [["c2"]],
  claim: [
    ["c3", hasClaims],
    ["c12", hasClaims],
  ],
  settle: [
    ["c9", isDelivered],
    ["c11", isRetried],
  ],
  settleHealthNotification: [["c13-disabled", isDisabling]],
  createWebhook: [["c14"]],
};

const pass = (steps = [], ...call) => {
  for (const [name, belongs] of steps) if (!belongs || belongs(...call)) step(name);
};

/** The part of a successful call that a checker needs. */
const report = (method, [request], result) => {
  if (method === "claim" && result.claims.length > 0)
    note({ claimed: result.claims.map(({ id }) => id), token: request.token });
  if (method === "settle")
    for (const [index, { id, outcome }] of request.entries())
      note({ settled: id, as: outcome.state, result: result[index] });
  if (method === "settleHealthNotification" && result && isDisabling(request)) note({ disabled: request.id });
};

const UNWATCHED = ["now", "watch", "partitionOf", "newWebhookId", "connectionProblem"];

const watched = (store) =>
  Object.fromEntries(
    Object.entries(store).map(([method, call]) => {
      if (typeof call !== "function" || UNWATCHED.includes(method)) return [method, call];
      const passing = async (...args) => {
        pass(BEFORE[method], ...args);
        const result = await call(...args);
        report(method, args, result);
        pass(AFTER[method], ...args, result);
        return result;
      };
      return [method, passing];
    }),
  );

const stall = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** May kill the process, stall it, or take its time. */
const canRead = (_subscriber, resource) => {
  note({ asked: resource.id });
  if (resource.id === settings.poison) process.kill(process.pid, "SIGKILL");
  if (settings.stallMs) stall(settings.stallMs);
  if (!settings.answerAfterMs) return true;
  return new Promise((resolve) => setTimeout(resolve, settings.answerAfterMs, true));
};

const storage = await openStorage(address);
const webhooks = createWebhooks({
  ...options,
  storage: { ...storage, webhooks: (context) => watched(storage.webhooks(context)) },
  access: { authenticate: () => null, canRead },
  destinations: {
    allowPrivateNetworks: true,
    ca: settings.ca,
    resolve: async () => {
      step("c4");
      return ["127.0.0.1"];
    },
  },
  notify: {
    warning: ({ webhook }) => {
      note({ notified: "warning", webhook: webhook.id });
      step("c13-warning");
    },
    disabled: ({ webhook }) => {
      note({ notified: "disabled", webhook: webhook.id });
      step("c13-announce");
    },
  },
  logger: {
    debug() {},
    info() {},
    warn: (fields, message) => note({ warn: message, ...fields }),
    error: (fields, message) => note({ error: message, ...fields }),
  },
});

/** As a host does it: ends what it began, and leaves it to Node to find nothing more to do. */
const end = async () => {
  await webhooks.stop({ graceMs: settings.graceMs });
  await storage.close();
  if (process.connected) process.disconnect();
};
process.on("SIGTERM", () => void end());

const COMMANDS = {
  emit: (event) => webhooks.emit(event),
  start: () => webhooks.start(),
  create: (registration) => webhooks.registrations.create(registration),
  update: (change) => webhooks.registrations.update(change),
  remove: (id) => webhooks.registrations.remove(id),
  migrate: async () => void (await storage.migrate?.()),
  close: () => storage.close(),
};

process.on("message", ({ number, command, args }) => {
  const answer = (reply) => process.connected && process.send({ number, ...reply });
  COMMANDS[command](...args).then(
    (value) => answer({ value }),
    ({ code, message }) => answer({ code: code ?? "error", message }),
  );
});
process.send("ready");
