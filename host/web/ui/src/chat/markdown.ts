// The Markdown of answers, as a tree of a few kinds: paragraphs, headings, lists, quotes, code, and within a line code,
// strong and emphasised words and links. Nothing in it becomes markup of the page: HTML in it is text, and pictures are
// not fetched.

/** A part of a line. */
export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; parts: Inline[] }
  | { kind: 'emphasis'; parts: Inline[] }
  | { kind: 'link'; text: string; url: string }

/** A block. */
export type Block =
  | { kind: 'paragraph'; parts: Inline[] }
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; start: number; items: Block[][] }
  | { kind: 'rule' }

/** Quotes and lists within each other, at most; deeper ones are text. */
const MAX_DEPTH = 6
/** Characters that are read as Markdown; the rest of a longer text is one paragraph. */
const MAX_LENGTH = 200_000
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])(?: +|$)(.*)$/

/** Reads a text. */
export function parse(text: string, depth = 0): Block[] {
  const lines = text.slice(0, MAX_LENGTH).replace(/\r\n?/g, '\n').split('\n')
  const blocks: Block[] = []
  let paragraph: string[] = []
  const end = () => {
    if (paragraph.length > 0) blocks.push({ kind: 'paragraph', parts: inline(paragraph.join('\n')) })
    paragraph = []
  }
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)
    if (fence) {
      end()
      const mark = fence[1] ?? '```'
      const inside: string[] = []
      // A fence that is not closed, as while an answer comes, goes to the end.
      for (at += 1; at < lines.length && !closes(lines[at] ?? '', mark); at += 1) inside.push(lines[at] ?? '')
      blocks.push({ kind: 'code', text: inside.join('\n') })
      continue
    }
    const heading = /^ {0,3}(#{1,6}) +(.*?) *#*$/.exec(line)
    if (heading) {
      end()
      blocks.push({ kind: 'heading', level: heading[1]?.length ?? 1, parts: inline(heading[2] ?? '') })
      continue
    }
    if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) {
      end()
      blocks.push({ kind: 'rule' })
      continue
    }
    if (depth < MAX_DEPTH && /^ {0,3}>/.test(line)) {
      end()
      const inside: string[] = []
      for (; at < lines.length && /^ {0,3}>/.test(lines[at] ?? ''); at += 1) inside.push((lines[at] ?? '').replace(/^ {0,3}> ?/, ''))
      at -= 1
      blocks.push({ kind: 'quote', blocks: parse(inside.join('\n'), depth + 1) })
      continue
    }
    const item = ITEM.exec(line)
    if (depth < MAX_DEPTH && item && (paragraph.length === 0 || item[4])) {
      end()
      const ordered = item[3] !== undefined
      const list: Block = { kind: 'list', ordered, start: ordered ? Number(item[3]) : 1, items: [] }
      let inside: string[] | null = null
      for (; at < lines.length; at += 1) {
        const next = lines[at] ?? ''
        const begins = ITEM.exec(next)
        if (begins && (begins[3] !== undefined) === ordered) {
          if (inside) list.items.push(parse(inside.join('\n'), depth + 1))
          inside = [begins[4] ?? '']
        } else if (/^( {2,}|\t)/.test(next) && inside) {
          inside.push(next.replace(/^( {1,4}|\t)/, ''))
        } else if (!next.trim() && /^( {2,}|\t)/.test(lines[at + 1] ?? '') && inside) {
          inside.push('')
        } else {
          break
        }
      }
      if (inside) list.items.push(parse(inside.join('\n'), depth + 1))
      at -= 1
      blocks.push(list)
      continue
    }
    if (line.trim()) paragraph.push(line.trim())
    else end()
  }
  end()
  if (text.length > MAX_LENGTH) blocks.push({ kind: 'paragraph', parts: [{ kind: 'text', text: text.slice(MAX_LENGTH) }] })
  return blocks
}

function closes(line: string, mark: string): boolean {
  const found = /^ {0,3}(`{3,}|~{3,}) *$/.exec(line)
  return found?.[1] !== undefined && found[1][0] === mark[0] && found[1].length >= mark.length
}

/** Reads what is within lines. */
export function inline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = []
  let plain = ''
  const push = (part: Inline) => {
    if (plain) parts.push({ kind: 'text', text: plain })
    plain = ''
    parts.push(part)
  }
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at, at + 4000)
    const escape = /^\\([!-/:-@[-`{-~])/.exec(rest)
    if (escape) {
      plain += escape[1] ?? ''
      at += 2
      continue
    }
    const code = /^(`+)(?!`)([^]*?[^`])\1(?!`)/.exec(rest)
    if (code) {
      push({ kind: 'code', text: (code[2] ?? '').trim() })
      at += code[0].length
      continue
    }
    const strong = depth < MAX_DEPTH ? /^(\*\*|__)(?=\S)([^]*?\S)\1/.exec(rest) : null
    if (strong) {
      push({ kind: 'strong', parts: inline(strong[2] ?? '', depth + 1) })
      at += strong[0].length
      continue
    }
    const before = at === 0 ? ' ' : (text[at - 1] ?? ' ')
    const emphasis = depth < MAX_DEPTH && !/\w/.test(before) ? /^([*_])(?=[^\s*_])([^]*?[^\s*_])\1(?!\w)/.exec(rest) : null
    if (emphasis) {
      push({ kind: 'emphasis', parts: inline(emphasis[2] ?? '', depth + 1) })
      at += emphasis[0].length
      continue
    }
    const link = /^\[([^\][]{1,400})\]\(<?([^)\s>]{1,2000})>?(?: "[^"]*")?\)/.exec(rest)
    const url = link ? safe(link[2] ?? '') : null
    if (link && url) {
      push({ kind: 'link', text: link[1] ?? '', url })
      at += link[0].length
      continue
    }
    plain += text[at]
    at += 1
  }
  if (plain) parts.push({ kind: 'text', text: plain })
  return parts
}

/** A link that may be followed: to the web, and nowhere else. */
function safe(url: string): string | null {
  try {
    const parsed = new URL(url)
    return parsed.protocol === 'https:' || parsed.protocol === 'http:' ? parsed.href : null
  } catch {
    return null
  }
}
