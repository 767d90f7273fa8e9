// A binding is offered the ports that it could have, those first whose names are like its own; what it has is kept.

import { expect, test } from 'vitest'

import type { BindingStatus, DiscoveredPort } from '../api/types'
import { awayFor, bindingToBe, inputToo, lacksOutput, likeness, outputFor, outputsFor } from './ports'

const port = (label: string, given: Partial<DiscoveredPort> = {}) =>
  ({ label, name: label, key: label, direction: 'output', protocol: 'midi', binding: null, bindings: [], state: 'idle', told_apart_by: null, ...given }) as unknown as DiscoveredPort
const side = (state: 'bound' | 'unbound' | 'ambiguous', ...ports: string[]) => ({ state, ports, matched_by: null, problem: null })
const binding = (given: Partial<BindingStatus> = {}) =>
  ({ alias: 'pads', protocol: 'midi', health: 'green', input: side('bound', 'Launchpad Mini MK3 MIDI Out'), output: side('unbound'), muted: false, help: null, ...given }) as unknown as BindingStatus

test('a device that is there lacks an output where none is bound; one that is away may still have it', () => {
  expect(lacksOutput(binding())).toBe(true)
  expect(lacksOutput(binding({ output: null }))).toBe(true)
  expect(lacksOutput(binding({ output: side('ambiguous', 'a', 'b') }))).toBe(true)
  expect(lacksOutput(binding({ output: side('bound', 'a') }))).toBe(false)
  expect(lacksOutput(binding({ input: side('unbound') }))).toBe(false)
  expect(lacksOutput(binding({ health: 'off', input: null, output: null }))).toBe(false)
  expect(lacksOutput(binding({ protocol: 'osc', output: null }))).toBe(false)
})

test('outputs that no binding has are offered, the one that is like the input first', () => {
  const ports = [
    port('Sampler'), port('Launchpad Pro MIDI In'), port('Launchpad Mini MK3 MIDI In'), port('Launchpad Mini MK3 MIDI Out', { direction: 'input' }),
    port('Launchpad Mini MK3 DAW In', { binding: 'daw' }), port('pad', { protocol: 'hid' }), port('Launchpad Mini MK3', { state: 'ignored' }),
  ]
  expect(outputsFor(binding(), ports).map(({ label }) => label)).toEqual(['Launchpad Mini MK3 MIDI In', 'Launchpad Pro MIDI In', 'Sampler'])
})

test('the output that was chosen is taken, else the one that is most like the input, of a binding that is yet to be, too', () => {
  const ports = [port('Sampler'), port('Launchpad Mini MK3 MIDI In')]
  expect(outputFor(binding(), ports, null)?.label).toBe('Launchpad Mini MK3 MIDI In')
  expect(outputFor(binding(), ports, 'Sampler')?.label).toBe('Sampler')
  expect(outputFor(binding(), [], 'Sampler')).toBe(null)
  const toBe = bindingToBe('new', port('Sampler Out', { direction: 'input' }))
  expect([lacksOutput(toBe), outputFor(toBe, ports, null)?.label]).toEqual([true, 'Sampler'])
})

test('an input without a binding can become that of a binding whose device is away, and no other', () => {
  const away = (alias: string, given: Partial<BindingStatus> = {}) => binding({ alias, input: side('unbound'), ...given })
  const bindings = [away('keys'), away('mini-pads'), binding({ alias: 'there' }), away('tablet', { protocol: 'osc' }), away('synth', { input: null }), away('off', { health: 'off' })]
  const input = port('Mini Pads 2', { direction: 'input' })
  expect(awayFor(input, bindings).map(({ alias }) => alias)).toEqual(['mini-pads', 'keys'])
  expect(awayFor({ ...input, binding: 'there' }, bindings)).toEqual([])
  expect(awayFor(port('Mini Pads 2'), bindings)).toEqual([])
})

test('what told the input before is kept, and the output stays as it is', () => {
  const input = port('New', { direction: 'input', told_apart_by: { type: 'usb_path', value: '1-2' } })
  const path = { type: 'usb_path', value: '1-2' }
  const old = { type: 'exact_name', value: 'Old' }
  expect(inputToo(input, { matchers: [old], input: null, output: null })).toEqual({ matchers: [path, old] })
  expect(inputToo(input, { matchers: [old], output: { matchers: [old] } })).toEqual({ matchers: [path, old], output: { matchers: [old] } })
  expect(inputToo(input, { input: { matchers: [old] }, output: { matchers: [old] } })).toEqual({ input: { matchers: [path, old] } })
  expect(inputToo(port('New'), undefined)).toEqual({ matchers: [{ type: 'exact_name', value: 'New' }] })
})

test('names are alike by what they share, whatever the direction is called', () => {
  expect(likeness('Pads MIDI In', 'pads midi out')).toBe(1)
  expect(likeness('system:capture_3', 'system:playback_3')).toBe(1)
  expect(likeness('', 'x')).toBe(0)
  expect(likeness('Launchpad Mini', 'Launchpad X')).toBeGreaterThan(likeness('Launchpad Mini', 'Sampler'))
})
