/** What is asked of a Redis client: the part that `Redis` and `Cluster` of ioredis 5 and 6 have in common. */

/** What a command takes. */
export type RedisArgument = string | number;

/** The part of a `Redis` or `Cluster` of ioredis 5 and 6 that the storage uses. */
export interface RedisClient {
  readonly status: string;
  /** True for a client of a Cluster. */
  readonly isCluster?: boolean;
  /** Sends any command. */
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  /** Begins to listen to channels. */
  subscribe(...channels: string[]): Promise<unknown>;
  /** Stops listening to channels. */
  unsubscribe(...channels: string[]): Promise<unknown>;
  /** Adds a listener. */
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Removes a listener. */
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Opens the connection of a client that was made lazy. */
  connect(): Promise<void>;
  /** Drops the connection at once. */
  disconnect(reconnect?: boolean): void;
  /** Closes the connection once what was sent is answered. */
  quit(): Promise<unknown>;
  /** Another client to the same server, with the same options. */
  duplicate(): RedisClient;
  /** Of a Cluster: its connections to the nodes. */
  nodes?(role: "master"): readonly (RedisClient & {
    readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  })[];
}
