// What a model looked at is shown as it is now, once.

import { expect, test } from 'vitest'

import { artifacts } from './artifact'
import type { Call } from './conversation'

const call = (number: number, tool: string, result: string | null = '{}', failed = false): Call => ({
  kind: 'call', number, id: `call-${number}`, tool, args: '{}', result, failed, proposed: false, approval: null,
})

test('of each kind the last picture is shown, behind the call that it is of', () => {
  const items = [
    call(1, 'conductor_list_device_bindings'), call(2, 'conductor_scan_ports'), call(3, 'conductor_get_binding_health'),
    call(4, 'conductor_scan_ports', null), call(5, 'conductor_scan_ports', 'no', true), call(6, 'constructor'),
  ]
  expect([...artifacts(items)].sort()).toEqual([[2, 'discovery'], [3, 'topology']])
})
