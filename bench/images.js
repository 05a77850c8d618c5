// `node bench/images.js`: images through the content service, as ratios against sharp called bare:
// the same operations on the same bytes, as many at a time. What the service adds is to judge,
// store and describe them. Absolute figures are those of the machine it runs on.
import { createContent } from "postbell/content";
import { memoryFiles } from "postbell/files";
import { sharpImages } from "postbell/images";
import { memoryStorage } from "postbell/memory";
import sharp from "sharp";
import { median, spread } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** Input of one side, the same each time. */
const IMAGES = Number(process.env.BENCH_IMAGES ?? 8);
const CONCURRENCY = 2;
const [WIDTH, HEIGHT] = [3_000, 2_000];
const SCALED = { width: 2_560, height: 1_707 };
const HEAD = { "content-type": "image/jpeg", "content-disposition": "attachment; filename=photo.jpg" };

/** Not as smooth as a drawing, nor as rough as noise. */
const photo = await sharp({
  create: {
    width: WIDTH / 4,
    height: HEIGHT / 4,
    channels: 3,
    background: "grey",
    noise: { type: "gaussian", mean: 128, sigma: 40 },
  },
})
  .resize(WIDTH, HEIGHT)
  .jpeg({ quality: 90 })
  .toBuffer();

const sizesOf = (width, height) => {
  const within = (side, limitHeight = side) => {
    const ratio = Math.min(side / width, limitHeight / height);
    return [Math.round(width * ratio), Math.round(height * ratio)];
  };
  return [
    [150, 150],
    within(300),
    within(768, Number.POSITIVE_INFINITY),
    within(1_024),
    within(1_536),
    within(2_048),
  ];
};

async function bareVersions(bytes, versions) {
  for (const [width, height] of versions) {
    await sharp(bytes, { sequentialRead: true })
      .autoOrient()
      .resize(width, height)
      .jpeg({ quality: 82 })
      .toBuffer();
  }
}

const bare = {
  upload: () => bareVersions(photo, [[SCALED.width, SCALED.height], ...sizesOf(WIDTH, HEIGHT)]),
  async edit() {
    const crop = { left: 300, top: 200, width: 2_400, height: 1_600 };
    const edited = await sharp(photo, { sequentialRead: true })
      .extract(crop)
      .rotate(90)
      .jpeg({ quality: 82 })
      .toBuffer();
    await bareVersions(
      edited,
      sizesOf(crop.height, crop.width).filter(([, height]) => height < crop.width),
    );
  },
};

const modifiers = [
  { type: "crop", args: { left: 10, top: 10, width: 80, height: 80 } },
  { type: "rotate", args: { angle: 90 } },
];

/** A site whose files are on the heap, and are removed again so that it stays as it is. */
async function postbell() {
  const content = createContent({
    storage: memoryStorage(),
    files: memoryFiles(),
    images: sharpImages({ concurrency: CONCURRENCY }),
    site: { url: "http://localhost", name: "Benchmark" },
    authenticate: () => ({ id: 1 }),
    users: [{ id: 1, slug: "admin", name: "Admin", roles: ["administrator"] }],
  });
  const api = { query: "", baseUrl: "http://localhost/api" };
  const upload = async () => {
    const request = { method: "POST", path: "/core/v2/media", headers: HEAD, body: photo, ...api };
    const answer = await content.handle(request);
    const item = JSON.parse(answer.body);
    if (answer.status !== 201 || Object.keys(item.media_details.sizes).length !== 7) {
      throw new Error(`an upload got the response ${answer.status}`);
    }
    return item;
  };
  const remove = ({ id }) =>
    content.request({ method: "DELETE", path: `/core/v2/media/${id}`, query: { force: true }, as: 1 });
  const source = await upload();
  return {
    upload: async () => remove(await upload()),
    async edit() {
      const { status, body } = await content.request({
        method: "POST",
        path: `/core/v2/media/${source.id}/edit`,
        body: { src: source.source_url, modifiers },
        as: 1,
      });
      if (status !== 201 || body.media_details.width !== 1_600)
        throw new Error(`an edit got the response ${status}`);
      await remove(body);
    },
  };
}

/** Time and processor time, in ms, of `IMAGES` images, `CONCURRENCY` at a time. */
async function cost(work) {
  const start = performance.now();
  const cpu = process.cpuUsage();
  let left = IMAGES;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - start, cpuMs: (user + system) / 1_000 };
}

const own = await postbell();
console.log(
  `Node ${process.version}, sharp ${sharp.versions.sharp}, ${ROUNDS} rounds of ${IMAGES} images for each side; a JPEG of ${WIDTH} × ${HEIGHT} pixels and ${Math.round(photo.length / 1_000)} kB, ${CONCURRENCY} at a time.`,
);
const rows = {};
for (const [name, title] of [
  ["upload", "upload, with seven versions"],
  ["edit", "crop and quarter turn, with its versions"],
]) {
  const results = { bare: [], own: [] };
  // The first round only warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    const sides = Object.entries({ bare: bare[name], own: own[name] });
    for (const [side, work] of round % 2 === 0 ? sides : sides.reverse()) {
      const result = await cost(work);
      if (round > 0) results[side].push(result);
    }
  }
  const ratios = results.own.map(({ ms }, round) => results.bare[round].ms / ms);
  const cpu = results.own.map(({ cpuMs }, round) => cpuMs / results.bare[round].cpuMs);
  const perSecond = (costs) => ((IMAGES / median(costs.map(({ ms }) => ms))) * 1_000).toFixed(2);
  rows[title] = {
    "sharp per second": perSecond(results.bare),
    "postbell per second": perSecond(results.own),
    ratio: median(ratios).toFixed(2),
    spread: spread(ratios),
    "CPU ratio": median(cpu).toFixed(2),
  };
}
console.table(rows);
console.log(
  "Ratios compare with bare sharp in the same round. Medians, with the smallest and the largest. Goal: 0.9 of its throughput.",
);
