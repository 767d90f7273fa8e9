// A message can be sent to what listens on this computer by datagrams, and to nothing else.

import { expect, test } from 'vitest'

import type { DiscoveredPort } from '../api/types'
import { loopbackTarget } from './osc'

const port = (key: string, rest: Partial<DiscoveredPort> = {}) => ({ protocol: 'osc', direction: 'input', state: 'open', key, ...rest }) as DiscoveredPort

test('an input is reached on this computer, whichever of its addresses it listens at', () => {
  expect(['127.0.0.1:9000', '0.0.0.0:9000', 'localhost:9000', '[::1]:9000'].map((key) => loopbackTarget(port(key)))).toEqual(['127.0.0.1:9000', '127.0.0.1:9000', '127.0.0.1:9000', '[::1]:9000'])
})

test('what listens elsewhere, by a stream, or not at all is left alone', () => {
  expect(['192.168.1.2:9000', 'tcp 127.0.0.1:9000', 'tcp://127.0.0.1:9000', ''].map((key) => loopbackTarget(port(key)))).toEqual([null, null, null, null])
  expect(loopbackTarget(port('127.0.0.1:9000', { state: 'idle' }))).toBe(null)
  expect(loopbackTarget(port('127.0.0.1:9000', { protocol: 'midi' }))).toBe(null)
  expect(loopbackTarget(port('127.0.0.1:9000', { direction: 'output' }))).toBe(null)
})
