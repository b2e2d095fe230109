/** Drops old calls from the call log after the configured retention, also when the configuration changes. */
import { logRetention } from '../../../pipelines/call-log/retention.ts'
import type { CallLog } from '../../clickhouse/call-log.ts'
import { type LoadResult, loadConfigFile } from '../../config/load.ts'
import { printProblem } from '../../config/problem.ts'
import { watchConfig } from '../../config/watch.ts'
import type { Log } from '../../telemetry/log.ts'
import { makeConfigEnvironment } from '../configuration.ts'
import type { Boot } from '../messages.ts'

const readDays = (loaded: LoadResult): number | null => (loaded.ok ? loaded.config.logs.retention_days : null)

/** Starts the daily maintenance of the call log. Drops nothing while the configuration file cannot be used. */
export function startLogMaintenance({ configPath, simulatorUrl }: Boot, callLog: CallLog, log: Log) {
  const env = makeConfigEnvironment(simulatorUrl)
  const loaded = loadConfigFile(configPath, env)
  let retentionDays = readDays(loaded)
  const retention = logRetention({
    callLog,
    retentionDays: () => retentionDays,
    onDropped: (months) =>
      log.info({ months, retention_days: retentionDays }, 'Dropped old months of the call log'),
    onFailed: (error) => log.warn({ err: error }, 'Failed to drop old calls from the call log'),
  })
  const watch = watchConfig(configPath, {
    env,
    loaded,
    onChange({ logs }) {
      if (logs.retention_days === retentionDays) return
      retentionDays = logs.retention_days
      log.info({ retention_days: retentionDays }, 'Changed the retention of the call log')
      retention.wake()
    },
    onRefused: (problems) =>
      log.warn(
        { path: configPath, problems: problems.map(printProblem) },
        'Configuration refused; the retention of the call log stays',
      ),
  })
  retention.start()
  return {
    async stop(): Promise<void> {
      watch.close()
      await retention.stop()
    },
  }
}
