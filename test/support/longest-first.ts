/** The order of the test files: no core is left idle at the end because a long file came last. */

import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Those that take longest, measured without coverage. One that is missing here costs time and
 * nothing else.
 */
const LONGEST = [
  "storage/sqlite/storage-contract.test.ts",
  "storage/redis/storage-contract.test.ts",
  "adapters/cli/redis-commands.test.ts",
  "content/media/images.test.ts",
  "content/wxr/import.test.ts",
  "adapters/cli/webhook-commands.test.ts",
  "content/text/sanitise-html.test.ts",
  "content/text/render.test.ts",
  "content/security.test.ts",
];

/**
 * By project, as Vitest sorts them: a shared process goes on to the next file only within its
 * project.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((file) => moduleId.endsWith(`/test/${file}`));
      return projects.indexOf(project.name) * 100 + (place === -1 ? LONGEST.length : place);
    };
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
