// `npm run bench`: how the requests of the host itself fare while Postbell delivers from the same
// process.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createWebhooks } from "postbell";
import { redisStorage } from "postbell/redis";
import { ENDPOINTS, median, patient, spread, startReceiver, startRedis } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const DELIVERIES_PER_SECOND = 1_000;
/** Events are emitted in groups, as a host that serves requests would. */
const EVERY_MS = 10;

const { url, stop } = await startRedis();
const receiver = await startReceiver();

/** Answers what a host answers: a small JSON text. */
const host = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(patient(1)));
});
host.listen(0, "127.0.0.1");
await once(host, "listening");

const visitor = fork(new URL("./visitor.js", import.meta.url));
const visitorGone = once(visitor, "exit").then(() => undefined);

/** The p50 and p99 of the host's requests in ms, as its visitor sees them. */
async function visit() {
  visitor.send({ port: host.address().port, seconds: SECONDS });
  const answer = await Promise.race([once(visitor, "message"), visitorGone]);
  if (answer === undefined) throw new Error("The visitor ended before it reported its response times.");
  return answer[0];
}

/** Visits the host while deliveries are made beside. */
async function visitBeside() {
  const storage = redisStorage({ url, prefix: `bench${process.hrtime.bigint()}` });
  const service = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true },
  });
  for (let index = 0; index < ENDPOINTS; index++)
    await service.registrations.create({
      subscriber: { id: "key", account: `a${index}` },
      url: `${receiver.plain}/endpoint-${index}`,
    });
  await service.start();
  let isOver = false;
  let index = 0;
  const emits = [];
  const emitting = (async () => {
    const start = performance.now();
    while (!isOver) {
      const due = ((performance.now() - start) / 1_000) * DELIVERIES_PER_SECOND;
      for (; index < due; index++)
        emits.push(
          service.emit({
            type: "patient.updated",
            account: `a${index % ENDPOINTS}`,
            resource: patient(index),
          }),
        );
      await sleep(EVERY_MS);
    }
  })();
  const latency = await visit();
  isOver = true;
  await emitting;
  await Promise.all(emits);
  await service.idle();
  await service.stop();
  await storage.close();
  const { count } = await receiver.collect();
  if (count < index) throw new Error(`${count} of ${index} deliveries arrived`);
  return { ...latency, perSecond: index / SECONDS };
}

const alone = [];
const beside = [];
for (let round = 0; round <= ROUNDS; round++) {
  process.stderr.write(`host: ${round === 0 ? "warm-up" : `round ${round} of ${ROUNDS}`}\n`);
  const isCalmFirst = round % 2 === 0;
  const first = isCalmFirst ? await visit() : undefined;
  const busy = await visitBeside();
  const calm = first ?? (await visit());
  if (round === 0) continue;
  alone.push(calm);
  beside.push(busy);
}

const of = (rounds, name) => rounds.map((round) => round[name]);
const withSpread = (values) => `${median(values).toFixed(2)} (${spread(values)})`;
const ratios = (name) => of(beside, name).map((value, round) => value / of(alone, name)[round]);
console.log(
  `\n### The host's own requests, 200 a second, during ${Math.round(median(of(beside, "perSecond")))} deliveries a second from Redis\n\n` +
    "|  | p50 ms | p99 ms |\n|---|---|---|\n" +
    `| without | ${withSpread(of(alone, "p50"))} | ${withSpread(of(alone, "p99"))} |\n` +
    `| with | ${withSpread(of(beside, "p50"))} | ${withSpread(of(beside, "p99"))} |\n` +
    `| with / without | ${withSpread(ratios("p50"))} | ${withSpread(ratios("p99"))} |\n\nGoal: a p99 of at most 1.5.`,
);
visitor.disconnect();
receiver.stop();
host.close();
host.closeAllConnections();
stop();
