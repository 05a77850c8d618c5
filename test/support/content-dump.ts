/** All that a content service holds, for comparing two of them. */

import type { Content } from "../../src/content/service.js";
import type { ContentStorage } from "../../src/content/store.js";
import { silentLogger } from "../../src/core/logger.js";
import { manualClock } from "../../src/testing/manual-clock.js";

/** The export as one text. */
export async function exported(content: Content): Promise<string> {
  let text = "";
  for await (const part of content.export()) text += part;
  return text;
}

/** The records themselves, without versions, by key. */
export async function records(storage: ContentStorage): Promise<readonly unknown[]> {
  const store = storage.content({ clock: manualClock(0), logger: silentLogger });
  const { batches } = await store.load();
  const keys: string[] = [];
  for await (const batch of batches) keys.push(...batch.map(({ key }) => key));
  const found = await store.read(keys.sort());
  return found.map((record) => record && { ...record, version: 0 });
}
