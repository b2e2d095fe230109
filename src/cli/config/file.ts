/** Finds the configuration file that a command reads: the one that the service uses. */
import { existsSync } from 'node:fs'
import { DEMONSTRATION_FILE } from '../../config/demonstration.ts'
import { findConfigPath, readSettings } from '../../config/settings.ts'
import type { Environment } from '../../config/source.ts'
import { readLastConfig, readRunning } from '../../embedded/data-dir.ts'

const WHAT_TO_SET = 'Set TOLLGATE_CONFIG to the configuration file that the service uses.'

/** The service's configuration is not known here; another one would give wrong prices and a wrong trial credit. */
export class UnknownConfig extends Error {
  override readonly name = 'UnknownConfig'

  constructor(reason: string) {
    super(`${reason} ${WHAT_TO_SET}`)
  }
}

/**
 * Returns the file of TOLLGATE_CONFIG; else that of the service that runs in the data directory; else the default of
 * `serve`; else that of the service that ran there last. The demonstration is only for a data directory that no
 * service has used.
 * @throws UnknownConfig
 */
export function findConfigFile(env: Environment): string {
  const named = findConfigPath(env)
  if (env.TOLLGATE_CONFIG && named !== null) return named
  const { dataDir, databaseUrl } = readSettings(env)
  const running = readRunning(dataDir)
  if (running !== null)
    return there(running.config_file, `The service that runs in ${dataDir} was started with`)
  if (named !== null) return named
  const last = readLastConfig(dataDir)
  if (last !== null) return there(last, `The service that ran last in ${dataDir} used`)
  if (databaseUrl === null) return DEMONSTRATION_FILE
  throw new UnknownConfig(
    `DATABASE_URL is set, no service runs in ${dataDir}, and no configuration is given: the service that uses this database runs elsewhere.`,
  )
}

function there(file: string, whose: string): string {
  if (existsSync(file)) return file
  throw new UnknownConfig(`${whose} the configuration ${file}, which no longer exists.`)
}
