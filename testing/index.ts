/**
 * `postbell/testing`: a clock for tests of a host, and the contract for whoever writes a storage.
 *
 * @module postbell/testing
 */

export {
  type ContentStorageUnderTest,
  type ContentStoreContractOptions,
  contentStoreContract,
} from "./content-store-contract.js";
export { type FilesContractOptions, type FilesUnderTest, filesContract } from "./files-contract.js";
export { type ManualClock, manualClock } from "./manual-clock.js";
export {
  type OutboxSourceContractOptions,
  type OutboxSourceUnderTest,
  type OutboxTransaction,
  outboxSourceContract,
} from "./outbox-source-contract.js";
export { type StorageContractOptions, type StorageUnderTest, storageContract } from "./storage-contract.js";
