// Screenshots become one animated picture.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32, deflateSync } from 'node:zlib'

import { animation } from './animation.js'

const number = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const chunk = (type, data) => {
  const body = Buffer.concat([Buffer.from(type), data])
  return Buffer.concat([number(data.length), body, number(crc32(body))])
}
/** A picture of grey pixels, `width` by `height`. */
const picture = (width, height, grey, kind = 0) => {
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => Buffer.from([0, ...Array(width).fill(grey)]))))
  const header = Buffer.concat([number(width), number(height), Buffer.from([8, kind, 0, 0, 0])])
  const all = [chunk('IHDR', header), chunk('IDAT', pixels.subarray(0, 4)), chunk('IDAT', pixels.subarray(4)), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...all])
}

test('what is drawn later is numbered, placed, and else as it was', () => {
  const [whole, part] = [picture(4, 3, 10), picture(2, 1, 200)]
  const made = animation([{ png: whole, x: 0, y: 0 }, { png: part, x: 1, y: 2 }], 500)
  const found = []
  for (let at = 8; at < made.length; ) {
    const length = made.readUInt32BE(at)
    const body = made.subarray(at + 4, at + 8 + length)
    assert.equal(made.readUInt32BE(at + 8 + length), crc32(body))
    found.push([body.toString('latin1', 0, 4), body.subarray(4)])
    at += 12 + length
  }
  assert.deepEqual(found.map(([type]) => type), ['IHDR', 'acTL', 'fcTL', 'IDAT', 'IDAT', 'fcTL', 'fdAT', 'fdAT', 'IEND'])
  const words = (data) => Array.from({ length: Math.floor(data.length / 4) }, (_, index) => data.readUInt32BE(4 * index))
  const [, [, control], , , , [, second], [, begin], [, end]] = found
  assert.deepEqual(words(control), [2, 0])
  assert.deepEqual(words(second).slice(0, 5), [1, 2, 1, 1, 2], 'its number, its width and height, and its place')
  assert.deepEqual([second.readUInt16BE(20), second.readUInt16BE(22)], [500, 1000])
  assert.deepEqual([begin, end].map((data) => data.readUInt32BE(0)), [2, 3])
  assert.equal(part.includes(begin.subarray(4)) && part.includes(end.subarray(4)), true, 'its pixels')
})

test('screenshots of other pixels are refused', () => {
  assert.throws(() => animation([{ png: picture(4, 3, 10), x: 0, y: 0 }, { png: picture(4, 3, 10, 3), x: 0, y: 0 }], 500), /of different kinds/)
  assert.throws(() => animation([{ png: Buffer.from('GIF89a..'), x: 0, y: 0 }], 500), /no PNG/)
})
