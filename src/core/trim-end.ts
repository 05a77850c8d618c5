/**
 * Removes `characters` from the end of a text. An expression such as `/\/+$/` takes time that grows
 * with the square of a run of them inside the text.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
