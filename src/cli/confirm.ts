/** Asks before a command loses something, or changes a balance by a large amount. */
import { createInterface } from 'node:readline/promises'
import { type Credits, printCredits } from '../../schemas/money.ts'
import { requireConfig } from './config/config.ts'
import type { Wiring } from './wiring.ts'

const YES_PATTERN = /^\s*y(es)?\s*$/i

/**
 * Resolves when the change of a balance is within `wallet.confirm_above`, or the user agrees to it.
 * @param what such as `add 20000 credits to acc_…`
 * @throws Error else
 */
export async function assertConfirmed(wiring: Wiring, amount: Credits, what: string): Promise<void> {
  const limit = requireConfig(wiring, 'all but channels').wallet.confirm_above
  if ((amount < 0n ? -amount : amount) <= limit) return
  const isOver = `This would ${what}, which is more than wallet.confirm_above (${printCredits(limit)})`
  await assertAgreed(wiring, isOver, 'Check the amount and add --yes.')
}

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
