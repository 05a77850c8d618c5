/** Decides which test files share a process with others. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/**
 * Patterns of code that changes the whole process: it replaces modules, globals, the environment or
 * a function of the platform, hears every event of the process, or measures the heap or the code
 * that runs. Add what is missing here, not a list of files.
 */
const TOUCHES_THE_PROCESS = new RegExp(
  [
    String.raw`\bvi\.(?:mock|doMock|hoisted|resetModules|importActual|stubGlobal|stubEnv|useFakeTimers|setSystemTime)\(`,
    String.raw`\bvi\.spyOn\((?:process|console|globalThis|dns|net|tls|http|https|fs|crypto|Date|Math|performance|dgram|timers)\b`,
    String.raw`\bpretendInternet\(`,
    String.raw`\bprocess\.(?:on|once|listenerCount|chdir|emit\w*|exitCode|umask)\b`,
    String.raw`\bprocess\.env(?:\.\w+|\[[^\]]+\]) *=[^=]`,
    String.raw`\bObject\.(?:defineProperty|assign)\((?:globalThis|global|process)\b`,
    String.raw`\b(?:globalThis|global)\.\w+ *=[^=]`,
    String.raw`\.prototype(?:\.\w+|\[[^\]]+\]) *=[^=]`,
    String.raw`\bError\.stackTraceLimit *=[^=]`,
    String.raw`\bprocess\.std(?:out|err)\.write *=[^=]`,
    String.raw`\bheapUsed\(|\bcountExecutedBlocks\(|\bcountSteps\(|\bsetGlobalDispatcher\(`,
    String.raw`\bvi\.spyOn\([\w.]*\.prototype\b`,
  ].join("|"),
);

/** True if a test file with this text needs its own process. */
export const needsOwnProcess = (text: string): boolean => TOUCHES_THE_PROCESS.test(text);

/**
 * The test files of the suite that need a process of their own, from the root of the repository.
 */
export const filesWithOwnProcess = (): readonly string[] =>
  readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter(
      (name) => /(?<!\.thorough)\.test\.ts$/.test(name) && !/^(?:faults|databases|browser)\//.test(name),
    )
    .map((name) => `test/${name}`)
    .filter((file) => needsOwnProcess(readFileSync(join(root, file), "utf8")));
