/** The formats of posts, such as an aside or a quote. */

/** The post formats of WordPress. A post without a format has `standard`. */
export const POST_FORMATS = [
  "standard",
  "aside",
  "chat",
  "gallery",
  "link",
  "image",
  "quote",
  "status",
  "video",
  "audio",
] as const;
