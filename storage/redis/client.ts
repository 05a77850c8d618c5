/** What is asked of a Redis client: the part that `Redis` and `Cluster` of ioredis 5 and 6 have in common. */

export type Argument = string | number;

export interface RedisClient {
  readonly status: string;
  /** True for a client of a Cluster. */
  readonly isCluster?: boolean;
  call(command: string, ...args: Argument[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  quit(): Promise<unknown>;
  duplicate(): RedisClient;
  /** Of a Cluster: its connections to the nodes. */
  nodes?(role: "master"): readonly (RedisClient & {
    readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  })[];
}
