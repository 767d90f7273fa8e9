// What others wrote, made safe to read: characters that can't be seen, or that move what is around them, are shown by
// their numbers, and what is too long is cut. The DOM takes it as text in any case; this is for the reader's eye.

/** Characters that are shown of one text, at most. */
export const MAX_SHOWN = 4000

/**
 * The characters that the host takes for hidden, too: controls, format characters but for number signs that are drawn,
 * what is ignorable by default, separators of lines, private use, what is not assigned, the blank of Braille. A backslash
 * that would read as one of our escapes is among them.
 */
const HIDDEN = /(?![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{C}\p{DI}\p{Zl}\p{Zp}\u2800]|\\(?=u\{)/gu

function escaped(character: string): string {
  if (character === '\\') return '\\\\'
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, most)}… (+${text.length - most})`
}

/** A text of one line. */
export function plain(text: string | null | undefined, most = MAX_SHOWN): string {
  return cut(text ?? '', most).replace(HIDDEN, escaped)
}

/** A text that may have lines and tabs of its own, to be shown where they can't be taken for the page's. */
export function plainLines(text: string | null | undefined, most = MAX_SHOWN * 8): string {
  const kept = cut(text ?? '', most).replace(/\r\n/g, '\n')
  return kept.replace(HIDDEN, (character) => (character === '\n' || character === '\t' ? character : escaped(character)))
}
