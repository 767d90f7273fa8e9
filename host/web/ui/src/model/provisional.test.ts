// Steps are taken back in order, once, and not after what they are for has come to be.

import { expect, test } from 'vitest'

import { Provisional } from './provisional'

function steps() {
  const log: string[] = []
  const opened = new Provisional()
  const step = (name: string, goesOn = true) =>
    opened.open(async () => name, async (done) => {
      log.push(done)
      return goesOn
    })
  return { log, opened, step }
}

test('what was given up is taken back once, the last step first', async () => {
  const { log, opened, step } = steps()
  await step('grant')
  await step('plan')
  expect(await opened.giveUp()).toBe(true)
  expect(await opened.giveUp()).toBe(false)
  expect(log).toEqual(['plan', 'grant'])
})

test('what has come to be is kept', async () => {
  const { log, opened, step } = steps()
  await step('grant')
  opened.keep()
  expect(await opened.giveUp()).toBe(false)
  expect(log).toEqual([])
})

test('a step that finds that it came to be keeps those before it', async () => {
  const { log, opened, step } = steps()
  await step('grant')
  await step('plan', false)
  expect(await opened.giveUp()).toBe(false)
  expect(log).toEqual(['plan'])
})

test('a step that was under way is taken back when it is done, and one that failed is not', async () => {
  const { log, opened } = steps()
  let answer = (_: string) => {}
  const asked = opened.open(() => new Promise<string>((resolve) => (answer = resolve)), async (done) => {
    log.push(done)
    return true
  })
  const failed = opened.open(() => Promise.reject(new Error('refused')), async () => {
    log.push('never')
    return true
  })
  await expect(failed).rejects.toThrow('refused')
  expect(await opened.giveUp()).toBe(false)
  answer('late')
  await asked
  expect(log).toEqual(['late'])
})
