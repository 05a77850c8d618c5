/**
 * `postbell/files`: where the bytes of media are kept, on the heap of this process or in a folder.
 *
 * @module postbell/files
 */

export { type DiskFilesOptions, diskFiles } from "./disk.js";
export { type MemoryFilesOptions, memoryFiles } from "./memory.js";
