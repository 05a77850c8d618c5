/** Whether what was just written has reached a replica. */

import type { RedisClient } from "./client.js";
import type { KeySet } from "./partition.js";

export interface ReplicationCheck {
  /**
   * Before the write: remembers the connection that it will go out on. The function it gives asks,
   * after the write: false where no replica has it in time, the connection is another one by now,
   * or nobody could tell.
   */
  begin(on: KeySet): Promise<() => Promise<boolean>>;
}

interface Node {
  readonly client: RedisClient;
  /** How many of its connections have ended. */
  closed: number;
  asking: Promise<boolean> | undefined;
  /** Asks once `asking` has its answer; for all that was written before that. */
  next: Promise<boolean> | undefined;
}

/**
 * Asks with WAIT, which answers for what its own connection sent before. A connection that was
 * replaced meanwhile, perhaps by one to a new master that never saw the write, would answer for
 * nothing: so its answer does not count, even where the client asks again by itself. A WAIT holds
 * its connection up, so one at a time asks for all writes before it.
 */
export function createReplicationCheck(client: RedisClient, timeoutMs: number): ReplicationCheck {
  /** By the first key; its slot never changes, only the node that has it. */
  const slotNumbers = new Map<string, number>();
  const nodes = new WeakMap<RedisClient, Node>();

  const clientFor = async ({ keys: [key = ""] }: KeySet): Promise<RedisClient | undefined> => {
    if (!client.isCluster || !client.nodes) return client;
    const slot = slotNumbers.get(key) ?? Number(await client.call("CLUSTER", "KEYSLOT", key));
    slotNumbers.set(key, slot);
    const { slots } = client as unknown as { readonly slots: readonly (readonly string[])[] };
    const address = slots[slot]?.[0];
    return client.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
  };

  const nodeOf = async (on: KeySet): Promise<Node | undefined> => {
    const own = await clientFor(on).catch(() => undefined);
    if (!own) return undefined;
    const known = nodes.get(own);
    if (known) return known;
    const node: Node = { client: own, closed: 0, asking: undefined, next: undefined };
    own.on("close", () => {
      node.closed += 1;
    });
    nodes.set(own, node);
    return node;
  };

  const wait = async (node: Node): Promise<boolean> => {
    const { closed } = node;
    try {
      return Number(await node.client.call("WAIT", 1, timeoutMs)) >= 1 && node.closed === closed;
    } catch {
      return false;
    }
  };

  const ask = (node: Node): Promise<boolean> => {
    node.next ??= Promise.resolve(node.asking).then(() => {
      node.next = undefined;
      node.asking = wait(node);
      return node.asking;
    });
    return node.next;
  };

  return {
    async begin(on) {
      const node = await nodeOf(on);
      if (node?.client.status !== "ready") return async () => false;
      const { closed } = node;
      return async () =>
        node.closed === closed && (await ask(node)) && node.closed === closed && (await nodeOf(on)) === node;
    },
  };
}
