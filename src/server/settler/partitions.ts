/** Makes the partitions of coming months and applies the retention, at the start and every hour. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { loadConfigFile } from '../../config/load.ts'
import type { Partitions } from '../../postgres/partitions/repository.ts'
import type { Retention } from '../../postgres/partitions/retire.ts'
import type { LogOutput } from '../../telemetry/log.ts'
import { makeConfigEnvironment } from '../configuration.ts'
import type { Boot } from '../messages.ts'

const INTERVAL_MS = 60 * 60 * 1000

const readRetention = ({ retention }: Pick<ConfigFile, 'retention'>): Retention => ({
  months: {
    usage_rows: retention.calls_months,
    ledger_entries: retention.ledger_months,
    audit_entries: retention.audit_months,
    tasks: retention.tasks_months,
  },
  detaches: retention.mode === 'detach',
})

/** Starts the rounds. Retires nothing while the configuration file cannot be used. */
export function maintainPartitions(
  { configPath, simulatorUrl }: Pick<Boot, 'configPath' | 'simulatorUrl'>,
  database: { readonly partitions: Pick<Partitions, 'make' | 'retire'> },
  log: Pick<LogOutput, 'info' | 'warn'>,
) {
  async function runRound(): Promise<void> {
    const made = await database.partitions.make()
    if (made.length > 0) log.info({ partitions: made }, 'Made the partitions of coming months')
    const loaded = loadConfigFile(configPath, makeConfigEnvironment(simulatorUrl))
    if (!loaded.ok) return
    const { retired, waiting } = await database.partitions.retire(readRetention(loaded.config))
    for (const { name, rows } of retired)
      log.info({ partition: name, rows: Number(rows), mode: loaded.config.retention.mode }, 'Retired a month')
    for (const { name, reason } of waiting)
      log.warn({ partition: name, reason }, 'A month beyond the retention stays')
  }
  let running: Promise<void> = Promise.resolve()
  const start = () => {
    running = runRound().catch((error) =>
      log.warn({ err: error }, 'Failed to maintain partitions; the next round is in an hour'),
    )
  }
  start()
  const timer = setInterval(start, INTERVAL_MS)
  return {
    /** Resolves when a running round has ended. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await running
    },
  }
}
