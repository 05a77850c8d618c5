// Prints the size of the package as it is published, and how many packages npm installs for it.
// Fails if there is more than there should be.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const MAX_PACKED_BYTES = 1_650_000;
const MAX_PACKAGES = 20;

const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
  encoding: "utf8",
  maxBuffer: 10_000_000,
});
const [{ size, unpackedSize, entryCount }] = JSON.parse(output);
const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
// The root is the package itself. Peers are the host's choice.
const installed = Object.values(packages).filter(
  ({ dev, devOptional, peer }) => !(dev || devOptional || peer),
);

const inMegabytes = (bytes) => `${(bytes / 1_000_000).toFixed(2)} MB`;
console.log(`${inMegabytes(size)} packed, ${inMegabytes(unpackedSize)} unpacked, ${entryCount} files`);
console.log(`${installed.length} packages installed`);
const complaints = [
  size > MAX_PACKED_BYTES && `The package should be at most ${inMegabytes(MAX_PACKED_BYTES)} packed.`,
  installed.length > MAX_PACKAGES && `npm should install at most ${MAX_PACKAGES} packages.`,
].filter(Boolean);
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
