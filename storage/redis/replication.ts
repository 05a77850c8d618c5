/** Checks if a write has reached a replica. */

import type { RedisClient } from "./clients.js";
import type { KeySet } from "./partition.js";

export interface ReplicationCheck {
  /**
   * Call it before the write: it remembers the connection that the write will go out on. Call the
   * returned function after the write. It resolves with false if no replica confirms in time, if
   * the connection was replaced, or if that cannot be told.
   */
  begin(on: KeySet): Promise<() => Promise<boolean>>;
}

interface Node {
  client: RedisClient;
  /** How many of its connections have ended. */
  closed: number;
  waiting: Promise<boolean> | undefined;
  /** The next WAIT, sent once `waiting` has settled. It covers all writes before it is sent. */
  next: Promise<boolean> | undefined;
}

/**
 * Uses WAIT, which covers the writes that its own connection sent before. A connection that was
 * replaced meanwhile, perhaps by one to a new master without the write, would confirm nothing. So
 * its reply does not count, even if the client retries by itself. A WAIT blocks its connection, so
 * one at a time serves all writes before it.
 */
export function createReplicationCheck(client: RedisClient, timeoutMs: number): ReplicationCheck {
  /** Slot numbers by first key. The slot of a key never changes, only the node that holds it. */
  const slotNumbers = new Map<string, number>();
  const nodes = new WeakMap<RedisClient, Node>();

  const findClient = async ({ keys: [key = ""] }: KeySet): Promise<RedisClient | undefined> => {
    if (!client.isCluster || !client.nodes) return client;
    const slot = slotNumbers.get(key) ?? Number(await client.call("CLUSTER", "KEYSLOT", key));
    slotNumbers.set(key, slot);
    const { slots } = client as unknown as { slots: readonly (readonly string[])[] };
    const address = slots[slot]?.[0];
    return client.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
  };

  const getNode = async (on: KeySet): Promise<Node | undefined> => {
    const nodeClient = await findClient(on).catch(() => undefined);
    if (!nodeClient) return undefined;
    const found = nodes.get(nodeClient);
    if (found) return found;
    const node: Node = { client: nodeClient, closed: 0, waiting: undefined, next: undefined };
    nodeClient.on("close", () => {
      node.closed += 1;
    });
    nodes.set(nodeClient, node);
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

  const isConfirmed = (node: Node): Promise<boolean> => {
    node.next ??= Promise.resolve(node.waiting).then(() => {
      node.next = undefined;
      node.waiting = wait(node);
      return node.waiting;
    });
    return node.next;
  };

  return {
    async begin(on) {
      const node = await getNode(on);
      if (node?.client.status !== "ready") return async () => false;
      const { closed } = node;
      return async () =>
        node.closed === closed &&
        (await isConfirmed(node)) &&
        node.closed === closed &&
        (await getNode(on)) === node;
    },
  };
}
