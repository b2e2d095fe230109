/** Asks before a command does what cannot be undone, or changes a balance by a large amount. */
import { createInterface } from 'node:readline/promises'
import type { Wiring } from './wiring.ts'

const YES_PATTERN = /^\s*y(es)?\s*$/i

/** Resolves when the user agrees. @throws Error else, with the remedy where there is no terminal to ask on */
export async function assertAgreed(
  wiring: Wiring,
  what: string,
  remedy = 'Add --yes to confirm.',
): Promise<void> {
  const answer = await wiring.confirm(`${what}. Do it? [y/N] `)
  if (answer === null) throw new Error(`${what}. ${remedy} Nothing was changed.`)
  if (!answer) throw new Error('Nothing was changed.')
}

/** Asks on the terminal of this process; returns null if stdin or stderr is not one. Only `y` and `yes` confirm. */
export async function askOnTerminal(question: string): Promise<boolean | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // Ctrl-C and Ctrl-D close it without an answer.
    const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
    return YES_PATTERN.test(await Promise.race([terminal.question(question).catch(() => ''), closed]))
  } finally {
    terminal.close()
  }
}
