// The history is bounded, and a filter sees what was there before it.

import { expect, test } from 'vitest'

import { FilteredHistory, Ring } from './history'

test('a full ring drops its oldest', () => {
  const ring = new Ring<number>(3)
  for (let item = 1; item <= 5; item += 1) ring.push(item)
  expect([...ring]).toEqual([3, 4, 5])
  expect([ring.newest(0), ring.newest(2), ring.newest(3), ring.newest(-1)]).toEqual([5, 3, undefined, undefined])
  expect([ring.length, ring.total]).toEqual([3, 5])
  ring.clear()
  ring.push(6)
  expect([...ring]).toEqual([6])
})

test('a filter is of what was and of what comes, and is taken off again', () => {
  const history = new FilteredHistory<number>(4)
  for (const item of [1, 2, 3]) history.push(item)
  history.filter((item) => item % 2 === 0)
  history.push(4)
  history.push(5)
  expect([...history.shown]).toEqual([2, 4])
  history.filter(null)
  expect([...history.shown]).toEqual([2, 3, 4, 5])
})

test('what is frozen stays while more comes', () => {
  const history = new FilteredHistory<number>(4)
  history.push(1)
  const frozen = history.frozen()
  history.push(2)
  expect([...frozen]).toEqual([1])
})
