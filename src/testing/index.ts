/**
 * `postbell/testing`: a manual clock for the tests of a host, and the contracts that a storage, a
 * content store, a file store and an outbox source must pass.
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
export { type SignNotificationInput, signNotification } from "./sign-notification.js";
export { type StorageContractOptions, type StorageUnderTest, storageContract } from "./storage-contract.js";
