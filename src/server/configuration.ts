/** The configuration in force in this process, and its replacement when the file changes. */

import type { ConfigFile } from '../../schemas/config/file.ts'
import { SIMULATOR_URL_VARIABLE } from '../config/demonstration.ts'
import { loadConfigFile } from '../config/load.ts'
import { type Problem, printProblem } from '../config/problem.ts'
import { watchConfig } from '../config/watch.ts'
import { type Catalog, createCatalog } from '../core/routing/catalog.ts'
import { listChannelSecrets } from '../core/routing/channel-access.ts'
import type { LogOutput } from '../telemetry/log.ts'

export class ConfigurationError extends Error {
  constructor(problems: readonly Problem[]) {
    super(['The configuration cannot be used:', ...problems.map((p) => `  ${printProblem(p)}`)].join('\n'))
    this.name = 'ConfigurationError'
  }
}

/** Returns the variables that replace `${NAME}` in the file. */
export const makeConfigEnvironment = (simulatorUrl: string | null): NodeJS.ProcessEnv => ({
  ...process.env,
  ...(simulatorUrl === null ? {} : { [SIMULATOR_URL_VARIABLE]: simulatorUrl }),
})

/** Returns the secrets that must never be in a log line. */
const listSecrets = ({ channels, metrics }: ConfigFile): string[] => [
  ...channels.flatMap(listChannelSecrets),
  ...(metrics.token === null ? [] : [metrics.token]),
]

export interface Configuration {
  /** Returns the catalog in force; call it for each request. */
  current(): Catalog
  /** Returns true while the changed file has problems: the earlier configuration stays in force. */
  isRefused(): boolean
  /** Keeps new calls from these channels, and from no others. */
  hold(channels: ReadonlySet<string>): void
  close(): void
}

/** @throws ConfigurationError with every problem, when the file is broken at start */
export function openConfiguration(path: string, simulatorUrl: string | null, log: LogOutput): Configuration {
  const env = makeConfigEnvironment(simulatorUrl)
  const loaded = loadConfigFile(path, env)
  if (!loaded.ok) throw new ConfigurationError(loaded.problems)
  let held: ReadonlySet<string> = new Set()
  let catalog = createCatalog(loaded.config, held)
  let isRefused = false
  log.hide(listSecrets(loaded.config))
  const watch = watchConfig(path, {
    env,
    loaded,
    onChange: (config) => {
      log.hide(listSecrets(config))
      catalog = createCatalog(config, held)
      isRefused = false
      log.info(
        { path, models: config.models.length, channels: config.channels.length },
        'Configuration applied',
      )
    },
    onRefused: (problems) => {
      isRefused = true
      log.error(
        { path, problems: problems.map(printProblem) },
        'Configuration refused; the former one stays in force',
      )
    },
  })
  return {
    current: () => catalog,
    isRefused: () => isRefused,
    hold(channels) {
      held = channels
      catalog = createCatalog(catalog.config, held)
    },
    close: () => watch.close(),
  }
}
