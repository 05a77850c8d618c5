/** Whether what was just written has reached a replica. */

import type { RedisClient } from "./client.js";
import type { Partition } from "./partition.js";

/**
 * Makes the function that asks, with WAIT, on the very connection that wrote to the partition: Redis answers for what that connection sent before.
 * False where no replica has it within `timeoutMs`, or nobody could tell.
 */
export function createReplicationCheck(
  client: RedisClient,
  timeoutMs: number,
): (partition: Partition) => Promise<boolean> {
  const nodes = new Map<number, Promise<RedisClient>>();

  const nodeOf = async ({ keys: [key = ""] }: Partition): Promise<RedisClient> => {
    if (!client.isCluster || !client.nodes) return client;
    const slot = Number(await client.call("CLUSTER", "KEYSLOT", key));
    const { slots } = client as unknown as { readonly slots: readonly (readonly string[])[] };
    const address = slots[slot]?.[0];
    const node = client.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
    if (!node) throw new Error("no node for this slot");
    return node;
  };

  return async (partition) => {
    try {
      const known = nodes.get(partition.number) ?? nodeOf(partition);
      nodes.set(partition.number, known);
      return Number(await (await known).call("WAIT", 1, timeoutMs)) >= 1;
    } catch {
      // A slot may have moved: look it up again.
      nodes.delete(partition.number);
      return false;
    }
  };
}
