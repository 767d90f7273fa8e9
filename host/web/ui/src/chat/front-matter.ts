// A Markdown file that may begin with YAML between two lines of `---`, taken apart.

/** What stands between the lines, and what comes after them; `front` is empty where the file does not begin so. */
export function split(text: string): { front: string; body: string } {
  const found = /^\uFEFF?---[ \t]*\r?\n([^]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text)
  return found ? { front: found[1] ?? '', body: text.slice(found[0].length) } : { front: '', body: text }
}
