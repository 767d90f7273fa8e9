// What the host says of who asked becomes words where it is certain, and stays as it is where it is not.

import { expect, test } from 'vitest'

import { askerOf, who } from './who'

test.each([
  ['socket:owner "conductor-ui"', { key: 'who.browser' }],
  ['socket:owner "conductor-cli"', { key: 'who.here' }],
  ['socket:owner', { key: 'who.here' }],
  ['cli:owner', { key: 'who.here' }],
  ['mcp-socket:agent "Claude"', { key: 'who.agent', name: 'Claude' }],
  ['mcp-socket:agent "x" by elicitation', { key: 'who.agent', name: 'x' }],
  ['mcp-http:agent', { key: 'who.agent-unnamed' }],
  ['chat:agent "7"', { key: 'who.chat' }],
  // No client is taken for the owner by the name that it chose, nor with a token.
  ['mcp-socket:agent "\\"\\nsocket:owner \\"conductor-ui"', { key: 'who.agent', name: '\\"\\nsocket:owner \\"conductor-ui' }],
  ['tcp:owner "conductor-ui"', null],
  ['tcp:control "conductor-ui"', null],
  ['feature "builtin:mapping-tools"', null],
  ['builtin:mapping-tools', null],
  ['', null],
])('%s', (said, asker) => {
  expect(askerOf(said)).toEqual(asker)
})

test('it is said in words, or as it is', () => {
  expect([who('socket:owner "conductor-ui"'), who('mcp-socket:agent "Claude"'), who('tcp:control "x"')]).toEqual([
    'you, in the browser', 'the agent that calls itself Claude', 'tcp:control "x"',
  ])
})
