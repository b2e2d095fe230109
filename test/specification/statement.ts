/**
 * The statements of the interface, one test each. A file is a section of the interface and calls `section` once; a
 * statement is its sentence and a check over the wire. See README.md beside this file.
 */
import type { Test } from 'tap'
import { openWorld, type World } from './world.ts'

/** Statements that run at a time. Each has accounts of its own, and most of them wait for the call log. */
const STATEMENTS_AT_A_TIME = 8

type Check = (t: Test, world: World) => Promise<void>
interface Statement {
  readonly sentence: string
  readonly check: Check
}

export const statement = (sentence: string, check: Check): Statement => ({ sentence, check })

/** The same statement about each of several things: `sentence` says what holds for one of them. */
export const statements = <T>(
  things: readonly T[],
  sentence: (thing: T) => string,
  check: (t: Test, world: World, thing: T) => Promise<void>,
): Statement[] => things.map((thing) => statement(sentence(thing), (t, world) => check(t, world, thing)))

/** Checks the statements of one section against the one service of the process, several at a time. */
export async function section(
  t: Test,
  title: string,
  all: readonly (Statement | readonly Statement[])[],
): Promise<void> {
  const world = await openWorld()
  const each = all.flat() as Statement[]
  const names = new Set(each.map(({ sentence }) => sentence))
  if (names.size < each.length) throw new Error(`${title}: two statements have one sentence`)
  await t.test(title, async (t) => {
    t.jobs = STATEMENTS_AT_A_TIME
    await Promise.all(
      each.map(({ sentence, check }) => t.test(sentence, { buffered: true }, (t) => check(t, world))),
    )
  })
}
