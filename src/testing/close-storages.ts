/** Closes the storages of a contract test when it ends. */

interface Closable {
  close(): Promise<void> | void;
}

/** Closes the storage twice, because closing a closed storage must succeed. */
export async function closeStorages({
  storage,
  peer,
  destroy,
}: {
  storage: Closable;
  peer?: Closable | undefined;
  destroy?: (() => unknown) | undefined;
}): Promise<void> {
  await storage.close();
  await storage.close();
  await peer?.close();
  await destroy?.();
}
