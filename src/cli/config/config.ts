/** `tollgate config check`, and the configuration as other commands read it. */
import { existsSync } from 'node:fs'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { DEMONSTRATION_FILE } from '../../config/demonstration.ts'
import type { ConfigParts } from '../../config/load.ts'
import { type Problem, printProblem } from '../../config/problem.ts'
import { findConfigPath, readSettings } from '../../config/settings.ts'
import type { Environment } from '../../config/source.ts'
import { readLastConfig, readRunning } from '../../embedded/data-dir.ts'
import type { Command, Context } from '../context.ts'
import type { Wiring } from '../wiring.ts'

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
    return requireFile(running.config_file, `The service that runs in ${dataDir} was started with`)
  if (named !== null) return named
  const last = readLastConfig(dataDir)
  if (last !== null) return requireFile(last, `The service that ran last in ${dataDir} used`)
  if (databaseUrl === null) return DEMONSTRATION_FILE
  throw new UnknownConfig(
    `DATABASE_URL is set, no service runs in ${dataDir}, and no configuration is given: the service that uses this database runs elsewhere.`,
  )
}

function requireFile(file: string, whose: string): string {
  if (existsSync(file)) return file
  throw new UnknownConfig(`${whose} the configuration ${file}, which no longer exists.`)
}

/** A file cannot be used; lists every problem with its place. */
export class FileProblems extends Error {
  override readonly name = 'FileProblems'

  constructor(what: string, problems: readonly Problem[]) {
    super([`${what} has problems:`, ...problems.map(printProblem)].join('\n'))
  }
}

/**
 * Returns the configuration of the service. Operations on accounts, keys and wallets do without its channels.
 * @throws FileProblems, UnknownConfig
 */
export function requireConfig(wiring: Wiring, parts: ConfigParts = 'all'): ConfigFile {
  const { config, problems } = wiring.loadConfig({ parts })
  if (config === null) throw new FileProblems('The configuration', problems)
  return config
}

/**
 * Returns what an agent's model is checked against: null, with the reason, where the configuration is not known, and
 * null where it has problems, for they are no reason to refuse an agent.
 */
export function findAgentConfig(wiring: Wiring): {
  readonly config: ConfigFile | null
  readonly reason: string | null
} {
  try {
    return { config: wiring.loadConfig({ parts: 'all but channels' }).config, reason: null }
  } catch (error) {
    if (error instanceof UnknownConfig) return { config: null, reason: error.message }
    throw error
  }
}

/** Returns advice about settings that are valid. */
const listNotes = ({ channels }: ConfigFile): readonly string[] =>
  channels.some((channel) => channel.upstream_errors === 'mapped')
    ? [
        'Coding agents know a full context window by the upstream\'s own error. Set "upstream_errors: native" if you serve them.',
      ]
    : []

export function addConfigCommands(program: Command, { wiring, isNegativeAnswer }: Context): void {
  program
    .group('config')
    .command('check')
    .description('Validate the configuration: every problem with file, line and field, and warnings')
    .argument('[file]', 'Configuration file (default: the one that the service uses, or would use)')
    .example('config check tollgate.yaml')
    .answers(async (file: string | undefined) => {
      const { config, problems, warnings, ...checked } = wiring.loadConfig({ file })
      if (config === null) isNegativeAnswer()
      const json = {
        ok: config !== null,
        ...checked,
        models: config?.models.length ?? null,
        channels: config?.channels.length ?? null,
        problems: problems.map((problem) => ({ ...problem })),
        warnings: warnings.map((warning) => ({ ...warning })),
        notes: config === null ? [] : listNotes(config),
      }
      const texts =
        config === null
          ? problems.map(printProblem)
          : [
              `ok: ${json.file}, ${json.models} models, ${json.channels} channels`,
              ...warnings.map((warning) => `warning: ${printProblem(warning)}`),
              ...json.notes.map((note) => `note: ${note}`),
            ]
      return { json, text: () => texts.map((text) => `${text}\n`).join('') }
    })
}
