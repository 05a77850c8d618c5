// Prints the size of the package as it is published. Fails if it is larger than it should be.
import { execFileSync } from "node:child_process";

const MAX_PACKED_BYTES = 1_800_000;

const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
  encoding: "utf8",
  maxBuffer: 10_000_000,
});
const [{ size, unpackedSize, entryCount }] = JSON.parse(output);
const inMegabytes = (bytes) => `${(bytes / 1_000_000).toFixed(2)} MB`;
console.log(`${inMegabytes(size)} packed, ${inMegabytes(unpackedSize)} unpacked, ${entryCount} files`);
if (size > MAX_PACKED_BYTES) {
  console.error(`The package should be at most ${inMegabytes(MAX_PACKED_BYTES)} packed.`);
  process.exitCode = 1;
}
