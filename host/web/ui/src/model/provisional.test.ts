// Steps are taken back in order, once, and not after what they are for has come to be.

import { expect, test } from 'vitest'

import { Provisional } from './provisional'

function steps() {
  const log: string[] = []
  const opened = new Provisional()
  const step = (name: string, goesOn = true) =>
    opened.open(async () => name, {
      now: async (done) => {
        log.push(done)
        return goesOn
      },
      leaving: (done) => {
        log.push(`${done}, leaving`)
        return goesOn
      },
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
  const back = {
    now: async (done: string) => {
      log.push(done)
      return true
    },
    leaving: () => true,
  }
  const asked = opened.open(() => new Promise<string>((resolve) => (answer = resolve)), back)
  const failed = opened.open(() => Promise.reject<string>(new Error('refused')), back)
  await expect(failed).rejects.toThrow('refused')
  expect(await opened.giveUp()).toBe(false)
  answer('late')
  await asked
  expect(log).toEqual(['late'])
})

test('what a page that is left takes back is sent at once, and not once more', async () => {
  const { log, opened, step } = steps()
  await step('grant')
  await step('plan')
  opened.leave()
  expect(log).toEqual(['plan, leaving', 'grant, leaving'])
  expect(await opened.giveUp()).toBe(false)
  expect(log).toHaveLength(2)
})

test('a page that is left keeps what has come to be', async () => {
  const { log, opened, step } = steps()
  await step('grant')
  await step('plan', false)
  opened.leave()
  expect(log).toEqual(['plan, leaving'])
})
