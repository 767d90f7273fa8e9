// Requests for capabilities are told apart by what they open.

import { expect, test } from 'vitest'

import type { CapabilityRequest } from '../api/types'
import { inFewWords, isAmong, namedWords } from './capability'

const network = (udp: string[], reason: string) => ({ kind: 'network', purpose: 'osc', udp, http: [], required: false, reason }) as CapabilityRequest

test('what a request opens is said, and the reason does not make it another one', () => {
  expect(inFewWords(network(['127.0.0.1:9', 'desk:*'], 'Send.'))).toBe('network: osc, 127.0.0.1:9, desk:*')
  expect(inFewWords({ kind: 'timers', required: true, reason: 'Tick.' } as CapabilityRequest)).toBe('timers')
  expect(inFewWords({ kind: 'midi-out', bindings: ['synth'], sysex: true, required: false, reason: '' } as CapabilityRequest)).toBe('midi-out: synth, sysex')
  const before = [network(['127.0.0.1:9'], 'Send.')]
  expect(isAmong(network(['127.0.0.1:9'], 'Send it.'), before)).toBe(true)
  expect(isAmong(network(['127.0.0.1:*'], 'Send.'), before)).toBe(false)
})

test('what is named has a line for each thing, and a blank is a part of it', () => {
  expect(namedWords([undefined, ' files:notes=/home/ann/My Notes\n\nfiles:notes=/tmp ', ''])).toEqual(['files:notes=/home/ann/My Notes', 'files:notes=/tmp'])
})
