/** `tollgate logs rebuild`: rebuilds the call log from the usage rows, which are the truth. */
import type { RebuildProgress } from '../../../pipelines/call-log/rebuild.ts'
import type { UnbookedSum } from '../../../schemas/call-log/unbooked.ts'
import { assertAgreed } from '../confirm.ts'
import { answerRecord, type Command, type Context } from '../context.ts'
import { printCount, startProgress } from '../output.ts'

const MS_PER_SECOND = 1_000

const HELP = `
Builds a new log from PostgreSQL beside the live one, while calls are taken, copied and read; at the end the two change
places. It needs room for a second log. An interrupted rebuild leaves the log as it was; the next one begins from the
start. Calls that only the log has are not deleted unless --delete-unbooked is given and confirmed; wallet import-log
books them. A rebuild also works where ClickHouse lost its tables, or is new. Months that logs.retention_days has
dropped stay dropped.`

const printRounded = (count: number): string => Math.round(count).toLocaleString('en-US')

function printDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`
}

/** Returns `1,200,000 of 8,000,000 rows (15 %), 110,000 rows/s, 1 min 2 s left`. */
export function printProgress({ rows, total }: RebuildProgress, elapsedMs: number): string {
  const perSecond = (rows * MS_PER_SECOND) / Math.max(1, elapsedMs)
  const percent = total === 0 ? 100 : Math.floor((rows * 100) / total)
  const left = rows === 0 ? '' : `, ${printDuration((total - rows) / perSecond)} left`
  return `${printRounded(rows)} of ${printRounded(total)} rows (${percent} %), ${printRounded(perSecond)} rows/s${left}`
}

interface RebuildFlags {
  readonly deleteUnbooked?: boolean
  readonly yes?: boolean
}

export function addRebuild(program: Command, { wiring, output }: Context): void {
  async function confirmDeletion({ calls, cost, accounts }: UnbookedSum): Promise<void> {
    const what = `${printCount(calls, 'call')} of ${printCount(accounts.length, 'account')}, which cost ${cost} credits`
    const loss = `Only the call log has ${what}. They would be deleted for good`
    await assertAgreed(wiring, loss, { remedy: 'Add --yes to delete them.' })
  }
  program
    .group('logs')
    .command('rebuild')
    .description('Rebuild the call log from PostgreSQL, while the service runs')
    .addHelpText('after', HELP)
    .option('--delete-unbooked', 'Delete the calls that the log has and PostgreSQL does not')
    .option('--yes', 'Do not ask before that')
    .example('logs rebuild')
    .answers(async ({ deleteUnbooked = false, yes = false }: RebuildFlags) => {
      const startedAt = performance.now()
      const elapsedMs = () => performance.now() - startedAt
      const progress = startProgress(output.error)
      const report = (done: RebuildProgress) => progress.report(printProgress(done, elapsedMs()))
      const confirm = yes ? async () => {} : confirmDeletion
      try {
        const { rows, dropped } = await wiring.rebuildLog(report, deleteUnbooked ? confirm : undefined)
        return answerRecord({
          rows,
          dropped_by_age: dropped,
          seconds: Math.round(elapsedMs() / MS_PER_SECOND),
        })
      } finally {
        progress.end()
      }
    })
}
