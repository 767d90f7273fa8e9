// What a plan maps is said by the names that controls have on the devices that are there.

import { expect, test } from 'vitest'

import { changesMappings, devicesIn, mappingsIn } from './mappings'

const NAMES = new Map([['note 56 0', 'pad 1']])
const namesOf = (device: string) => (device === 'grid' ? NAMES : new Map<string, string>())
const mapping = (trigger: object) => ({ path: ['global_mappings', '0'], value: { trigger: { type: 'Note', note: 56, ...trigger }, action: { type: 'NextMode' } } })

test('a mapping of any device is named by one that is there', () => {
  const [any, own, ...unnamed] = mappingsIn([mapping({}), mapping({ device: 'grid' }), mapping({ device: 'box' })], ['box', 'grid'], namesOf)
  expect(any).toMatchObject({ isAny: true, device: 'grid' })
  expect(any?.what).toMatch(/^Pad 1 /)
  expect(own).toEqual({ isAny: false, device: 'grid', what: any?.what })
  // Where no device has a name for it, the title says as much.
  expect(unnamed).toEqual([])
  expect(mappingsIn([mapping({})], [], namesOf)).toEqual([])
})

test('few devices are asked what they call a control', () => {
  const many = Array.from({ length: 500 }, (_, number) => `port ${number}`)
  expect(devicesIn([mapping({}), mapping({ device: 'grid' })], many)).toEqual([...many.slice(0, 8), 'grid'])
  expect(devicesIn([mapping({ device: 'grid' })], many)).toEqual(['grid'])
  expect(devicesIn([{ path: ['models', 'a'], value: {} }], many)).toEqual([])
})

test('what is no mapping says nothing, and of many the first ones are said', () => {
  const others = [{ path: ['models', 'a'], value: { provider: 'x' } }, { path: ['modes', '0', 'mappings', '0', 'action'], value: { type: 'NextMode' } }, { path: ['modes', '0'] }]
  expect(mappingsIn(others, [], namesOf)).toEqual([])
  expect(mappingsIn(Array.from({ length: 9 }, () => mapping({})), ['grid'], namesOf)).toHaveLength(3)
  expect(changesMappings(others)).toBe(true)
  expect(changesMappings(others.slice(0, 1))).toBe(false)
})
