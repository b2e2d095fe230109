/** `tollgate logs rebuild`: rebuilds the call log from the usage rows, which are the truth. */
import type { RebuildProgress } from '../../../pipelines/call-log/rebuild.ts'
import type { UnbookedSum } from '../../../schemas/call-log/unbooked.ts'
import { assertAgreed } from '../confirm.ts'
import type { Command, Context } from '../context.ts'
import type { Wiring } from '../wiring.ts'

const PROGRESS_INTERVAL_MS = 1_000
const MS_PER_SECOND = 1_000

const HELP = `
Builds a new log from PostgreSQL beside the live one; calls are taken, copied and read all the while, and at
the end the two change places. It needs room for a second log. Broken off, it leaves the log as it was; the next one
begins from the start. Calls that only the log has are not deleted unless --delete-unbooked is named and
confirmed; wallet import-log books them. It works as well where ClickHouse lost its tables, or is a new one. Months that
logs.retention_days has dropped stay away.`

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`
}

/** Returns `1,200,000 of 8,000,000 rows (15 %), 110,000 rows/s, 1 min 2 s left`. */
export function progressLine({ rows, total }: RebuildProgress, elapsedMs: number): string {
  const perSecond = (rows * MS_PER_SECOND) / Math.max(1, elapsedMs)
  const percent = total === 0 ? 100 : Math.floor((rows * 100) / total)
  const left = rows === 0 ? '' : `, ${duration((total - rows) / perSecond)} left`
  return `${counted(rows)} of ${counted(total)} rows (${percent} %), ${counted(perSecond)} rows/s${left}`
}

interface RebuildFlags {
  readonly deleteUnbooked?: boolean
  readonly yes?: boolean
}

const confirmDeletion =
  (wiring: Pick<Wiring, 'confirm'>, isAgreed: boolean) =>
  async ({ calls, cost, accounts }: UnbookedSum): Promise<void> => {
    if (isAgreed) return
    const what = `${counted(calls)} calls of ${counted(accounts.length)} accounts, which cost ${cost} credits`
    const question = `Only the call log has ${what}. They will be deleted for good. Do it?`
    await assertAgreed(wiring, question, `Only the call log has ${what}. Name --yes to delete them.`)
  }

export function addRebuild(logs: Command, { wiring, output }: Context): void {
  logs
    .command('rebuild')
    .description('rebuild the call log from PostgreSQL, while the service runs')
    .addHelpText('after', HELP)
    .option('--delete-unbooked', 'delete the calls that only the log has, and PostgreSQL has not')
    .option('--yes', 'do not ask before that')
    .example('logs rebuild')
    .answers(async ({ deleteUnbooked = false, yes = false }: RebuildFlags) => {
      const startedAt = performance.now()
      const confirm = deleteUnbooked ? confirmDeletion(wiring, yes) : undefined
      const { rows, dropped } = await wiring.rebuildLog(progressTo(output.error), confirm)
      const seconds = Math.round((performance.now() - startedAt) / MS_PER_SECOND)
      const left = dropped === 0 ? '' : `; ${counted(dropped)} older ones were dropped by age`
      return {
        json: { rows, dropped_by_age: dropped, seconds },
        text: () => `rebuilt: ${counted(rows)} rows in ${duration(seconds)}${left}\n`,
      }
    })
}
