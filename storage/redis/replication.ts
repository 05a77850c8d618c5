/** Whether what was just written has reached a replica. */

import type { RedisClient } from "./client.js";
import type { Partition } from "./partition.js";

export interface ReplicationCheck {
  /** Before the write: remembers the connection that it will go out on. */
  begin(partition: Partition): Promise<{
    /** After it: false where no replica has it in time, the connection is another one by now, or nobody could tell. */
    readonly isConfirmed: () => Promise<boolean>;
    readonly end: () => void;
  }>;
}

/**
 * Asks with WAIT, which answers for what its own connection sent before. A connection that was replaced meanwhile, perhaps by one to a new master that never saw
 * the write, would answer for nothing: so its answer does not count, even where the client asks again by itself.
 */
export function createReplicationCheck(client: RedisClient, timeoutMs: number): ReplicationCheck {
  /** Of partitions; the slot of a key never changes, only the node that has it. */
  const slotNumbers = new Map<number, number>();

  const nodeOf = async ({ number, keys: [key = ""] }: Partition): Promise<RedisClient | undefined> => {
    if (!client.isCluster || !client.nodes) return client;
    const slot = slotNumbers.get(number) ?? Number(await client.call("CLUSTER", "KEYSLOT", key));
    slotNumbers.set(number, slot);
    const { slots } = client as unknown as { readonly slots: readonly (readonly string[])[] };
    const address = slots[slot]?.[0];
    return client.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
  };

  return {
    async begin(partition) {
      const node = await nodeOf(partition).catch(() => undefined);
      let isSame = node?.status === "ready";
      const onClose = (): void => {
        isSame = false;
      };
      node?.on("close", onClose);
      return {
        async isConfirmed() {
          if (!node || !isSame) return false;
          try {
            const replicas = Number(await node.call("WAIT", 1, timeoutMs));
            return isSame && replicas >= 1 && (await nodeOf(partition)) === node;
          } catch {
            return false;
          }
        },
        end: () => void node?.off("close", onClose),
      };
    },
  };
}
