// A tool is called by what it does.

import { expect, test } from 'vitest'

import { toolCalled } from './called'

test.each([
  ['conductor_send_midi', 'Send a message'],
  ['conductor_preview_action', 'Do an action once'],
  ['dim_all_lights', 'Dim all lights'],
  ['conductor_', 'conductor_'],
])('%s', (name, called) => {
  expect(toolCalled(name)).toBe(called)
})
