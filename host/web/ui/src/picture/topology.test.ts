// Bindings stand between their ports and the mappings that name them, and what has no binding is there, too.

import { expect, test } from 'vitest'

import type { BindingStatus, DiscoveredPort } from '../api/types'
import { sentTo, topology, unreachable } from './topology'

const binding = (alias: string, input: string[], output: string[]) =>
  ({ alias, protocol: 'midi', health: 'green', muted: false, help: null, input: { state: 'bound', ports: input }, output: { state: 'bound', ports: output } }) as unknown as BindingStatus
const port = (device: string, direction: string, of: string | null) => ({ device, label: device, direction, binding: of }) as unknown as DiscoveredPort

test('a binding has its ports and the mappings that name it, wherever they do', () => {
  const mappings = [
    { place: 'modes/0/mappings/0', mapping: { name: 'kick', trigger: { type: 'Note', device: 'pads' }, action: { type: 'SendMidi', target: 'synth' } } },
    { place: 'modes/0/mappings/1', mapping: { trigger: { type: 'Note', note: 1 }, action: { type: 'Sequence', actions: [{ type: 'MidiForward', target: 'synth' }] } } },
    { place: 'global_mappings/0', mapping: { name: 'text', trigger: { type: 'Note', device: 'pads' }, action: { type: 'Text', text: 'synth' } } },
  ]
  const ports = [port('pads', 'input', 'pads'), port('Keys', 'input', null), port('Keys', 'output', null)]
  const { rows, everywhere } = topology([binding('pads', ['Pads'], []), binding('synth', [], ['Synth'])], ports, mappings)
  expect(rows.map(({ device, ports, mappings }) => [device, ports.map(({ name }) => name), mappings])).toEqual([
    ['pads', ['Pads'], ['kick', 'text']],
    ['synth', ['Synth'], ['kick', 'modes/0/mappings/1']],
    ['Keys', ['Keys'], []],
  ])
  expect(rows[2]?.binding).toBe(null)
  expect(everywhere).toEqual(['modes/0/mappings/1'])
})

test('each mapping flows from where it waits: one device, any, or one that is not there', () => {
  const mapping = (place: string, device?: string) => ({ place, mapping: { trigger: { type: 'Note', device }, action: { type: 'SendMidi', target: 'pads' } } })
  const mappings = [mapping('a', 'pads'), mapping('b'), mapping('c', 'gone'), mapping('d', 'Keys'), mapping('e', 'pads')]
  const { rows, any, missing } = topology([binding('pads', ['Pads'], [])], [port('Keys', 'input', null)], mappings)
  const places = (of: readonly { place: string }[]) => of.map(({ place }) => place)
  expect(rows.map(({ device, from }) => [device, places(from)])).toEqual([['pads', ['a', 'e']], ['Keys', ['d']]])
  expect([places(any), missing.map(({ device, from }) => [device, places(from)])]).toEqual([['b'], [['gone', ['c']]]])
})

test('what has no output that is there is found where something is sent to it, and not where it is heard', () => {
  const away = { ...binding('synth', [], []), output: { state: 'unbound', ports: [] } } as unknown as BindingStatus
  const heard = { ...binding('keys', ['Keys'], []), output: null } as unknown as BindingStatus
  const devices = unreachable([binding('pads', ['Pads'], ['Pads']), away, heard])
  expect([...devices]).toEqual(['synth'])
  const trigger = { type: 'Note', device: 'synth' }
  const actions = [{ type: 'MidiForward', target: 'synth' }, { type: 'SendMidi', target: 'pads' }]
  expect(sentTo({ trigger, action: { type: 'Sequence', actions } }, devices)).toEqual(['synth'])
  expect(sentTo({ trigger, action: actions[1], feedback: { target: 'synth' } }, devices)).toEqual(['synth'])
  expect(sentTo({ trigger, action: actions[1] }, devices)).toEqual([])
})
