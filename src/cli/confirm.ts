/** Asks before a command does what cannot be undone, or changes a balance by a large amount. */
import { createInterface } from 'node:readline/promises'
import { isSameTyped } from '../core/confirmation.ts'
import type { Wiring } from './wiring.ts'

const YES_PATTERN = /^\s*y(es)?\s*$/i

interface Agreement {
  /** What the user has to type. Default: `y`. */
  readonly typed?: string | null
  /** What to do where there is no terminal to ask on. */
  readonly remedy?: string
}

/** Resolves when the user agrees. @throws Error else, with the remedy where there is no terminal to ask on */
export async function assertAgreed(
  wiring: Wiring,
  what: string,
  { typed = null, remedy = 'Add --yes to confirm.' }: Agreement = {},
): Promise<void> {
  const answer = await wiring.ask(
    `${what}. ${typed === null ? 'Do it? [y/N]' : `Type ${typed} to confirm:`} `,
  )
  if (answer === null) throw new Error(`${what}. ${remedy} Nothing was changed.`)
  const isAgreed = typed === null ? YES_PATTERN.test(answer) : isSameTyped(answer, typed)
  if (!isAgreed) throw new Error('Nothing was changed.')
}

/** Asks on the terminal of this process. Returns the answer, which is empty if there is none; null if stdin or stderr is no terminal. */
export async function askOnTerminal(question: string): Promise<string | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // Ctrl-C and Ctrl-D close it without an answer.
    const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
    return await Promise.race([terminal.question(question).catch(() => ''), closed])
  } finally {
    terminal.close()
  }
}
