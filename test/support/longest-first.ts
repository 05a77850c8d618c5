/** The order of the test files: no core is left idle at the end because a long file came last. */

import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Those that take longest, measured without coverage. One that is missing here costs time and nothing else. */
const LONGEST = [
  "storage-redis.test.ts",
  "guide-blocks.test.ts",
  "cli-redis.test.ts",
  "content-images.test.ts",
  "wxr-import.test.ts",
  "cli-webhooks.test.ts",
  "content-text-filter.test.ts",
  "content-text-render.test.ts",
  "content-security.test.ts",
];

/** By project, as Vitest sorts them: a shared process goes on to the next file only within its project. */
export class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const place = LONGEST.indexOf(basename(moduleId));
      return projects.indexOf(project.name) * 100 + (place === -1 ? LONGEST.length : place);
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
