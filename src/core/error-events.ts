/**
 * Keeps the `error` events of what the host has passed from ending its process: pools, clients,
 * streams. Node throws an `error` event that has no listener. Nothing is hidden: calls on an
 * emitter that failed reject.
 */

type Listener = (value: unknown) => void;

interface Emitter {
  on(event: string, listener: Listener): unknown;
  removeListener(event: string, listener: Listener): unknown;
}

const isEmitter = (value: unknown): value is Emitter =>
  typeof value === "object" &&
  value !== null &&
  ["on", "removeListener"].every(
    (method) => typeof (value as Record<string, unknown>)[method] === "function",
  );

const ignore = (): void => {};

const ignored = new WeakSet<object>();

/**
 * Adds a listener of `error` that does nothing, once for each emitter. It stays, because an emitter
 * that failed may emit again when it is no longer used. Values that emit nothing are left alone.
 */
export function ignoreErrors(value: unknown): void {
  if (!isEmitter(value) || ignored.has(value)) return;
  ignored.add(value);
  value.on("error", ignore);
}

/** The listener of a guarded pool, and what its users want to be called with lost connections. */
interface Guard {
  onError: Listener;
  users: Set<{ onLost: Listener }>;
}

const guards = new WeakMap<object, Guard>();

function addGuard(pool: Emitter): Guard {
  const users: Guard["users"] = new Set();
  const onError: Listener = (error) => {
    for (const { onLost } of users) onLost(error);
  };
  pool.on("error", onError);
  pool.on("acquire", ignoreErrors);
  const guard = { onError, users };
  guards.set(pool, guard);
  return guard;
}

/**
 * Guards a pool of `pg`: its idle connections, which report to the pool, and those that it lends,
 * to the host too. However many users a pool has, it gets one listener of each event. The returned
 * function removes both with the last user.
 *
 * @param onLost called with the error of an idle connection that ended.
 */
export function guardPool(pool: unknown, onLost: Listener = ignore): () => void {
  if (!isEmitter(pool)) return ignore;
  const { onError, users } = guards.get(pool) ?? addGuard(pool);
  const user = { onLost };
  users.add(user);
  return () => {
    if (!users.delete(user) || users.size > 0) return;
    guards.delete(pool);
    pool.removeListener("error", onError);
    pool.removeListener("acquire", ignoreErrors);
  };
}
