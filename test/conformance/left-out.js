// The recorded cases that are not run yet, and why. A case is named by its id, or a group of them by `prefix*`; `count` is how many that are.

const IMAGES = "images are not edited yet, and no smaller versions are made";

export const LEFT_OUT = [
  { cases: "media-edit.*", count: 29, why: IMAGES },
  { cases: "media-post-process.*", count: 6, why: IMAGES },
  { cases: "combine-media.post-deleted-then-edit", count: 1, why: IMAGES },
  { cases: "media-upload.raw-photo.jpg", count: 1, why: IMAGES },
  { cases: "media-upload.defaults", count: 1, why: IMAGES },
];
