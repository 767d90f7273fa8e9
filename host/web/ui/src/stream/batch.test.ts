// Items are handed over once a frame, in order, and a page without frames keeps a bounded number of them.

import { expect, test } from 'vitest'

import { FrameBatch } from './batch'

function stage(most?: number) {
  const frames: (() => void)[] = []
  const taken: { items: number[]; left: number }[] = []
  const batch = new FrameBatch<number>((items, left) => taken.push({ items, left }), (call) => frames.push(call), most)
  return { frames, taken, batch }
}

test('what comes between two frames is one batch', () => {
  const { frames, taken, batch } = stage()
  for (const item of [1, 2, 3]) batch.push(item)
  expect(frames).toHaveLength(1)
  frames.pop()?.()
  batch.push(4)
  frames.pop()?.()
  expect(taken).toEqual([{ items: [1, 2, 3], left: 0 }, { items: [4], left: 0 }])
})

test('without frames the newest are kept, and it is known how many were not', () => {
  const { frames, taken, batch } = stage(10)
  for (let item = 0; item < 1000; item += 1) batch.push(item)
  frames.pop()?.()
  const [{ items, left }] = taken as [{ items: number[]; left: number }]
  expect(items.length).toBeLessThanOrEqual(20)
  expect(items.at(-1)).toBe(999)
  expect(items.length + left).toBe(1000)
})
