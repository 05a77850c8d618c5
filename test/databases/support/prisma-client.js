/**
 * A client of Prisma, as `prisma generate` writes it for a schema without models. The command
 * itself wants to download an engine that generating does not use, and its package weighs 300 MB.
 */

import { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";

const config = {
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "d1b3f377ca835d73fd50954a5e22128b9ebdd6b8",
  activeProvider: "postgresql",
  inlineSchema:
    'generator client {\n  provider = "prisma-client"\n  output   = "../gen"\n}\n\ndatasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: "AAAA" },
  compilerWasm: {
    getRuntime: () => import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"),
    async getQueryCompilerWasmModule() {
      const { wasm } = await import(
        "@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs"
      );
      return new WebAssembly.Module(Buffer.from(wasm, "base64"));
    },
    importName: "./query_compiler_fast_bg.js",
  },
};

/**
 * @typedef {object} PrismaUnderTest
 * @property {(text: string, ...values: unknown[]) => Promise<unknown>} $executeRawUnsafe
 * @property {(text: string, ...values: unknown[]) => Promise<unknown>} $queryRawUnsafe
 * @property {(work: (tx: PrismaUnderTest) => Promise<unknown>) => Promise<unknown>} $transaction
 * @property {() => Promise<void>} $disconnect
 */

/**
 * @param {string} connectionString
 * @returns {PrismaUnderTest}
 */
export function createPrismaClient(connectionString) {
  const PrismaClient = /** @type {any} */ (getPrismaClient(/** @type {any} */ (config)));
  return new PrismaClient({ adapter: new PrismaPg({ connectionString }) });
}
