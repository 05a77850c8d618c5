/**
 * Compares the content keys in Redis with each other, past the package: what a commit that was
 * stored by half would leave.
 */

import { Redis } from "ioredis";

/** Lists disagreements, one per line. */
export async function contentFaults(url: string, prefix: string): Promise<readonly string[]> {
  const redis = new Redis(url);
  const key = (name: string): string => `{${prefix}:content}:${name}`;
  const [heads, columns, bodies, names] = await Promise.all(
    ["heads", "columns", "bodies", "names"].map((name) => redis.hgetall(key(name))),
  );
  const changes = await redis.zrange(key("changes"), "0", "-1", "WITHSCORES");
  const last = Number((await redis.hget(key("meta"), "last"))?.split(" ")[0] ?? 0);
  redis.disconnect();

  const faults: string[] = [];
  const expect = (isTrue: boolean, fault: string): void => {
    if (!isTrue) faults.push(fault);
  };
  const held = new Map<string, string>();
  for (const [record, head] of Object.entries(heads ?? {})) {
    const [line = "", ...own] = head.split("\n");
    const [version, residence] = line.split(",");
    expect(bodies?.[record] !== undefined, `${record} has no body`);
    expect(
      residence === "n"
        ? columns?.[record] === undefined
        : columns?.[record]?.startsWith(`${version}\n`) === true,
      `${record} has columns of another version`,
    );
    for (const name of own) {
      expect(!held.has(name), `${name} is held twice`);
      held.set(name, record);
    }
  }
  for (const [name, record] of Object.entries(names ?? {})) {
    expect(held.get(name) === record, `${name} is held by ${record} for nothing`);
  }
  for (const [name, record] of held) expect(names?.[name] === record, `${record} lost ${name}`);
  for (const record of [...Object.keys(columns ?? {}), ...Object.keys(bodies ?? {})]) {
    expect(heads?.[record] !== undefined, `${record} is gone, but for a part`);
  }
  for (let place = 1; place < changes.length; place += 2) {
    expect(Number(changes[place]) <= last, `${changes[place - 1]} changed after the last commit`);
  }
  return faults;
}
