/** `tollgate wallet import-log`: books the calls that only the call log has. */
import { callLogActs } from '../../../pipelines/management/calls/call-log.ts'
import { importLog } from '../../../schemas/management/call-log.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import type { Answer, Command } from '../context.ts'
import { runnerOn } from '../management.ts'
import { counted, printTable } from '../output.ts'
import type { Wiring } from '../wiring.ts'
import { assertAgreed } from './confirm.ts'

const FIELDS = ['account_id', 'calls', 'cost', 'is_known']

const HELP = `
The log is a copy of PostgreSQL: it has calls of its own only where PostgreSQL lost what it had committed, such as
after a restore from an older copy. Without --book nothing is changed. Each call is booked once, by its request id,
at the cost that it had. Calls of accounts that PostgreSQL does not know stay as they are. Then run logs rebuild: until
then the log has the booked calls twice.`

interface Flags {
  readonly book?: boolean
  readonly yes?: boolean
}

function answerOf(json: AnswerOf<typeof importLog>): Answer {
  const found = `${counted(json.calls, 'call')} of ${counted(json.accounts.length, 'account')}, ${json.cost} credits`
  const table = json.calls === 0 ? '' : `\n${printTable(json.accounts, FIELDS)}`
  const done = json.dry_run
    ? json.calls === 0
      ? ''
      : 'nothing was booked: name --book\n'
    : `booked: ${counted(json.booked_calls, 'call')}, ${json.booked_cost} credits. Now run logs rebuild\n`
  return { json, text: () => `only the call log has ${found}\n${table}${done}` }
}

export function addImportLog(
  wallet: Command,
  wiring: Pick<Wiring, 'actor' | 'confirm' | 'withLoggedCalls'>,
): void {
  const { run } = runnerOn(wiring, callLogActs, wiring.withLoggedCalls)
  wallet
    .command('import-log')
    .description('show the calls that only the call log has; with --book, book each of them once')
    .option('--book', 'book them; asks first')
    .option('--yes', 'do not ask')
    .addHelpText('after', HELP)
    .example('wallet import-log')
    .answers(async ({ book = false, yes = false }: Flags) => {
      const found = await run(importLog, { dry_run: true })
      if (!book || found.calls === 0) return answerOf(found)
      if (!yes) {
        const what = `${counted(found.calls, 'call')} would be charged, ${found.cost} credits in all`
        await assertAgreed(wiring, `${what}. Do it?`, `${what}. Name --yes.`)
      }
      return answerOf(await run(importLog, { dry_run: false }))
    })
}
