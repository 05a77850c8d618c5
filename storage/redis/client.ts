/** The part of a Redis client that the storage uses. */

/** An argument of a command. */
export type RedisArgument = string | number;

/** The methods that `Redis` and `Cluster` of ioredis 5 and 6 have in common. */
export interface RedisClient {
  readonly status: string;
  /** The options of the client. */
  readonly options?: object;
  /** True for a client of a Cluster. */
  readonly isCluster?: boolean;
  /** Sends any command. */
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  /** Subscribes to channels. */
  subscribe(...channels: string[]): Promise<unknown>;
  /** Unsubscribes from channels. */
  unsubscribe(...channels: string[]): Promise<unknown>;
  /** Adds a listener. */
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Removes a listener. */
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Opens the connection of a client with `lazyConnect`. */
  connect(): Promise<void>;
  /** Drops the connection at once. */
  disconnect(reconnect?: boolean): void;
  /** Closes the connection once all sent commands have a reply. */
  quit(): Promise<unknown>;
  /** Creates another client for the same server, with the same options but for those given. */
  duplicate(options?: object): RedisClient;
  /** For a Cluster: its connections to the nodes. */
  nodes?(role: "master"): readonly (RedisClient & {
    readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  })[];
}
