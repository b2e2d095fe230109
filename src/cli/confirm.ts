/** Asks before a command changes a balance by a large amount. */
import { createInterface } from 'node:readline/promises'
import { type Credits, printCredits } from '../../schemas/money.ts'
import { operatorConfig } from './config/config.ts'
import type { Wiring } from './wiring.ts'

const YES_PATTERN = /^\s*y(es)?\s*$/i

interface ConfirmedChange {
  /** Credits added, or taken away where negative. */
  readonly amount: Credits
  /** `--yes` was named. */
  readonly isAgreed: boolean
  /** Such as `add 20000 credits to acc_…`. */
  readonly what: string
}

/**
 * Resolves when the change needs no confirmation or has one.
 * @throws Error when the change is over `wallet.confirm_above` and is not confirmed
 */
export async function assertConfirmed(
  wiring: Pick<Wiring, 'loadConfig' | 'confirm'>,
  { amount, isAgreed, what }: ConfirmedChange,
): Promise<void> {
  if (isAgreed) return
  const limit = operatorConfig(wiring).wallet.confirm_above
  if ((amount < 0n ? -amount : amount) <= limit) return
  const isOver = `This would ${what}, which is more than wallet.confirm_above (${printCredits(limit)})`
  await assertAgreed(wiring, `${isOver}. Do it?`, `${isOver}. Check the amount and name --yes.`)
}

/** Resolves when the user answers yes. @throws Error else, with `unasked` where there is no terminal */
export async function assertAgreed({ confirm }: Pick<Wiring, 'confirm'>, question: string, unasked: string) {
  const answer = await confirm(`${question} [y/N] `)
  if (answer === null) throw new Error(`${unasked} Nothing was changed.`)
  if (!answer) throw new Error('Nothing was changed.')
}

/** Asks on the terminal of this process; returns null where stdin or stderr is none. Only `y` and `yes` confirm. */
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
