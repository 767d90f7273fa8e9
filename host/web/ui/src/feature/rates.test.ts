// Rates lie between two reports; what is too soon or new is not guessed.

import { expect, test } from 'vitest'

import { FeatureRates } from './rates'

const used = (performed: number, cpu_ms: number, busy_ms = cpu_ms) => [{ name: 'one', performed, calls: 1, busy_ms, cpu_ms }]

test('a rate is what lies between two reports, by the time between them', () => {
  const rates = new FeatureRates()
  expect(rates.take(used(0, 100), 0).get('one')).toBe(undefined)
  expect(rates.take(used(6, 160, 190), 3000).get('one')).toEqual({ calls: 2, busy: 3, cpu: 2 })
  // Two reports at once say nothing new, and are not the beginning of the next rate.
  expect(rates.take(used(7, 160, 190), 3100).get('one')).toEqual({ calls: 2, busy: 3, cpu: 2 })
  expect(rates.take(used(8, 160, 190), 5000).get('one')).toEqual({ calls: 1, busy: 0, cpu: 0 })
})

test('a host that began anew has no rate below 0, and a feature that went has none', () => {
  const rates = new FeatureRates()
  rates.take(used(50, 900), 0)
  expect(rates.take(used(0, 0), 1000).get('one')).toEqual({ calls: 0, busy: 0, cpu: 0 })
  expect(rates.take([], 2000).size).toBe(0)
  expect(rates.take(used(5, 5), 3000).get('one')).toBe(undefined)
})
