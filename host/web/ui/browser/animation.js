// An animated PNG of screenshots: https://www.w3.org/TR/png-3/#apng-frame-based-animation. What each of them was compressed to is
// taken over as it is.

import { crc32 } from 'node:zlib'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/** The chunks of a PNG, each with its type and its data. */
function chunks(png) {
  const bytes = Buffer.from(png)
  if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error('this is no PNG')
  const found = []
  for (let at = SIGNATURE.length; at < bytes.length; ) {
    const end = at + 8 + bytes.readUInt32BE(at)
    found.push({ type: bytes.toString('latin1', at + 4, at + 8), data: bytes.subarray(at + 8, end) })
    // A checksum follows.
    at = end + 4
  }
  return found
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  return Buffer.concat([numbers(data.length), body, numbers(crc32(body))])
}

/** Numbers of 32 bits. */
function numbers(...all) {
  const bytes = Buffer.alloc(4 * all.length)
  all.forEach((one, index) => bytes.writeUInt32BE(one, 4 * index))
  return bytes
}

/**
 * Each frame stays for `milliseconds`, and then it begins anew. `frames` are `{ png, x, y }`: the first has the size of the whole,
 * the others are drawn over what is there, so far from its left and its top.
 */
export function animation(frames, milliseconds) {
  // What is drawn of each is numbered, in the order of the file.
  let number = 0
  const drawn = frames.map(({ png, x, y }) => ({ x, y, all: chunks(png) }))
  const [{ all: first }] = drawn
  const header = first[0].data
  const out = [SIGNATURE, chunk('IHDR', header), chunk('acTL', numbers(frames.length, 0))]
  // What is said of the colours comes before the pixels.
  for (const { type, data } of first.slice(1, first.findIndex(({ type }) => type === 'IDAT'))) out.push(chunk(type, data))
  drawn.forEach(({ x, y, all }, index) => {
    const [{ data: own }] = all
    // Behind the width and the height is how a pixel is written.
    if (!own.subarray(8).equals(header.subarray(8))) throw new Error('the screenshots have pixels of different kinds')
    const delay = Buffer.alloc(6)
    delay.writeUInt16BE(milliseconds, 0)
    delay.writeUInt16BE(1000, 2)
    out.push(chunk('fcTL', Buffer.concat([numbers(number++), own.subarray(0, 8), numbers(x, y), delay])))
    for (const { type, data } of all) {
      if (type !== 'IDAT') continue
      out.push(index === 0 ? chunk(type, data) : chunk('fdAT', Buffer.concat([numbers(number++), data])))
    }
  })
  return Buffer.concat([...out, chunk('IEND', Buffer.alloc(0))])
}
