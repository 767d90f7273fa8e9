// Rows of a long table are found by where they are, with whatever heights they have.

import { expect, test } from 'vitest'

import { RowHeights } from './heights'

test('of many rows those that can be seen are found', () => {
  const rows = new RowHeights(100_000, 40)
  expect(rows.total).toBe(4_000_000)
  expect(rows.seen(0, 400, 4)).toEqual({ first: 0, end: 15 })
  expect(rows.seen(2_000_000, 400, 4)).toEqual({ first: 49_996, end: 50_015 })
  expect(rows.seen(4_000_000 - 400, 400, 4)).toEqual({ first: 99_986, end: 100_000 })
  expect(rows.seen(9_000_000, 400, 4)).toEqual({ first: 99_995, end: 100_000 })
  expect(rows.seen(-50, 400, 0)).toEqual({ first: 0, end: 9 })
  expect(new RowHeights(0, 40).seen(100, 400, 4)).toEqual({ first: 0, end: 0 })
})

test('a row that is higher moves those after it, and no other', () => {
  const rows = new RowHeights(1000, 40)
  expect(rows.set(300, 140)).toBe(true)
  expect([rows.top(300), rows.top(301), rows.top(600), rows.total]).toEqual([12_000, 12_140, 24_100, 40_100])
  expect([rows.at(11_999), rows.at(12_000), rows.at(12_139), rows.at(12_140)]).toEqual([299, 300, 300, 301])
  expect(rows.set(300, 140.2)).toBe(false)
  expect(rows.set(300, 40)).toBe(true)
  expect([rows.top(301), rows.total]).toEqual([12_040, 40_000])
  expect(rows.set(1000, 40)).toBe(false)
})

test('each place is that of the row that a look at every row finds', () => {
  const height = (row: number) => 20 + ((row * 7919) % 61)
  const rows = new RowHeights(1500, 1, height)
  let top = 0
  for (let row = 0; row < 1500; row += 1) {
    expect(rows.top(row)).toBe(top)
    expect(rows.at(top)).toBe(row)
    top += height(row)
    expect(rows.at(top - 1)).toBe(row)
  }
  expect([rows.top(1500), rows.top(9999), rows.total]).toEqual([top, top, top])
})
