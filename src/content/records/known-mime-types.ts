/**
 * The media types that WordPress knows for uploads (`get_allowed_mime_types`). A list of media is
 * filtered by these only. Which of them this service accepts is decided in `media/media-type.ts`.
 */

const SUBTYPES: { readonly [kind: string]: string } = {
  image: "jpeg gif png bmp tiff webp avif x-icon heic heif heic-sequence heif-sequence",
  video:
    "x-ms-asf x-ms-wmv x-ms-wmx x-ms-wm avi divx x-flv quicktime mpeg mp4 ogg webm x-matroska 3gpp 3gpp2",
  text: "plain csv tab-separated-values calendar richtext css vtt",
  // `mp4` is the type of the `m4a` files that this service accepts; WordPress calls them `mpeg`.
  audio: "mp4 mpeg aac x-realaudio wav ogg flac midi x-ms-wma x-ms-wax x-matroska",
  application:
    "ttaf+xml rtf pdf java x-tar zip x-gzip rar x-7z-compressed octet-stream msword wordperfect onenote oxps " +
    "vnd.ms-powerpoint vnd.ms-write vnd.ms-excel vnd.ms-access vnd.ms-project vnd.ms-xpsdocument " +
    "vnd.ms-word.document.macroEnabled.12 vnd.ms-word.template.macroEnabled.12 " +
    "vnd.ms-excel.sheet.macroEnabled.12 vnd.ms-excel.sheet.binary.macroEnabled.12 " +
    "vnd.ms-excel.template.macroEnabled.12 vnd.ms-excel.addin.macroEnabled.12 " +
    "vnd.ms-powerpoint.presentation.macroEnabled.12 vnd.ms-powerpoint.slideshow.macroEnabled.12 " +
    "vnd.ms-powerpoint.template.macroEnabled.12 vnd.ms-powerpoint.addin.macroEnabled.12 " +
    "vnd.ms-powerpoint.slide.macroEnabled.12 " +
    "vnd.openxmlformats-officedocument.wordprocessingml.document " +
    "vnd.openxmlformats-officedocument.wordprocessingml.template " +
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet " +
    "vnd.openxmlformats-officedocument.spreadsheetml.template " +
    "vnd.openxmlformats-officedocument.presentationml.presentation " +
    "vnd.openxmlformats-officedocument.presentationml.slideshow " +
    "vnd.openxmlformats-officedocument.presentationml.template " +
    "vnd.openxmlformats-officedocument.presentationml.slide " +
    "vnd.oasis.opendocument.text vnd.oasis.opendocument.presentation vnd.oasis.opendocument.spreadsheet " +
    "vnd.oasis.opendocument.graphics vnd.oasis.opendocument.chart vnd.oasis.opendocument.database " +
    "vnd.oasis.opendocument.formula vnd.apple.keynote vnd.apple.numbers vnd.apple.pages",
};

export const KNOWN_MIME_TYPES: ReadonlySet<string> = new Set(
  Object.entries(SUBTYPES).flatMap(([kind, names]) => names.split(" ").map((name) => `${kind}/${name}`)),
);
