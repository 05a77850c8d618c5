/**
 * Measures how long one request keeps a process from everything else, in units of a piece of work
 * that is timed in the same run.
 */

import { Agent, request as httpRequest } from "node:http";
import { cpuMsSoFar } from "./cpu-time.js";

export interface Probe {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface Cost {
  readonly status: number;
  /** CPU of the whole request, client and server, in units. */
  readonly cpu: number;
  /** The most CPU between a ping of another connection and its answer, in units. */
  readonly blocked: number;
}

/** Sends requests over connections of its own, and pings with `ping` meanwhile. */
export function createEventLoopProbe(origin: string, ping: Probe, unit: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const pings = new Agent({ keepAlive: true, maxSockets: 1 });

  const exchange = ({ method, target, headers = {}, body }: Probe, over: Agent): Promise<number> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(origin);
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const sent = httpRequest(
        { hostname, port, method, path: target, headers: { ...headers, ...length }, agent: over },
        (response) => {
          response.on("error", reject);
          response.on("end", () => resolve(response.statusCode ?? 0));
          response.resume();
        },
      );
      sent.on("error", (error: NodeJS.ErrnoException) => {
        // A server that refuses a body may close before it has read it.
        if (error.code === "ECONNRESET" || error.code === "EPIPE") resolve(0);
        else reject(error);
      });
      sent.end(body);
    });

  const once = async (probe: Probe): Promise<Cost> => {
    let isOver = false;
    let blocked = 0;
    const start = cpuMsSoFar();
    const answered = exchange(probe, agent).finally(() => {
      isOver = true;
    });
    do {
      const before = cpuMsSoFar();
      await exchange(ping, pings);
      blocked = Math.max(blocked, cpuMsSoFar() - before);
    } while (!isOver);
    return { status: await answered, cpu: (cpuMsSoFar() - start) / unit, blocked: blocked / unit };
  };

  return {
    /**
     * Of up to six tries the cheapest, since a collection of garbage may fall into any; more than
     * one only where the first is above `enough` units.
     */
    async cost(probe: Probe, enough: number): Promise<Cost> {
      let best = await once(probe);
      for (let again = 0; again < 5 && best.blocked > enough && best.blocked < 20 * enough; again += 1) {
        const next = await once(probe);
        if (next.blocked < best.blocked) best = next;
      }
      return best;
    },
    close(): void {
      agent.destroy();
      pings.destroy();
    },
  };
}
