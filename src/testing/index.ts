/** `postbell/testing`: a clock for tests of a host, and the contract for whoever writes a storage. */

export { type ManualClock, manualClock } from "./manual-clock.js";
export { type StorageContractOptions, type StorageUnderTest, storageContract } from "./storage-contract.js";
