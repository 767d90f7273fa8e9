// Rates are of whole seconds, and the devices that are remembered are bounded.

import { expect, test } from 'vitest'

import { MAX_DEVICES, Rates } from './rates'

test('a rate is over the last seconds, and falls to nothing', () => {
  const rates = new Rates()
  for (let now = 10_000; now < 14_000; now += 100) rates.count('pads', now % 200 === 0 ? 'note-on' : 'cc', now)
  const [heard] = rates.at(14_000)
  expect(heard).toMatchObject({ device: 'pads', count: 40, rate: 10 })
  expect([...(heard?.kinds ?? [])]).toEqual([['note-on', 20], ['cc', 20]])
  expect(rates.at(30_000)[0]?.rate).toBe(0)
})

test('of too many devices the one that was silent longest is forgotten', () => {
  const rates = new Rates()
  for (let device = 0; device <= MAX_DEVICES; device += 1) rates.count(`device ${device}`, 'cc', device)
  const names = rates.at(0).map((heard) => heard.device)
  expect(names).toHaveLength(MAX_DEVICES)
  expect(names).not.toContain('device 0')
})
