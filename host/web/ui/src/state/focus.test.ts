import { afterEach, beforeEach, expect, test } from 'vitest'

import { keepFocus } from './focus'

let stop: () => void
let [button, other]: HTMLButtonElement[] = []

beforeEach(() => {
  document.body.innerHTML = '<button>Check</button><button>Other</button>'
  ;[button, other] = document.querySelectorAll('button')
  stop = keepFocus(document)
})
afterEach(() => stop())

/** Disables the button that has the focus, as a browser does, until `answered` has come. */
async function work(answered: () => void = () => {}): Promise<void> {
  button?.focus()
  if (button) button.disabled = true
  button?.blur()
  await Promise.resolve()
  answered()
  if (button) button.disabled = false
  await Promise.resolve()
}

test('a button that worked has the focus again', async () => {
  await work()
  expect(document.activeElement).toBe(button)
})

test('where a person went meanwhile, the focus stays', async () => {
  await work(() => other?.focus())
  expect(document.activeElement).toBe(other)
})

test('what is not on the page any more gets no focus', async () => {
  await work(() => button?.remove())
  expect(document.activeElement).toBe(document.body)
})
