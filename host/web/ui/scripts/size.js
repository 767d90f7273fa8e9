// Checks what the shell weighs: everything in `dist`, each file compressed by itself, as it is sent.

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

/** Bytes, of all files together, compressed by gzip. */
const MAX_BYTES = 250 * 1024

const dist = new URL('../dist/', import.meta.url).pathname
const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
const sizes = files.map((file) => {
  const bytes = readFileSync(file)
  return { file, gzip: gzipSync(bytes).length, brotli: brotliCompressSync(bytes).length }
})
const sum = (which) => sizes.reduce((all, size) => all + size[which], 0)
console.log(`${files.length} files, ${sum('gzip')} bytes by gzip, ${sum('brotli')} by brotli (at most ${MAX_BYTES})`)
for (const file of files.filter((file) => file.endsWith('.html'))) {
  const inline = /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/i.exec(readFileSync(file, 'utf8'))
  if (inline) {
    console.error(`${file} has ${JSON.stringify(inline[0])}: the content security policy refuses what is inline`)
    process.exitCode = 1
  }
}
if (sum('gzip') > MAX_BYTES) {
  console.error('the shell is too large')
  process.exitCode = 1
}
