/** `tollgate config` and `tollgate channels`, and the configuration as other commands read it. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { type Problem, printProblem } from '../../config/problem.ts'
import type { Command, Context } from '../context.ts'
import type { JsonObject } from '../output.ts'
import type { Wiring } from '../wiring.ts'
import { UnknownConfig } from './file.ts'

/** The configuration cannot be used: every problem with its place. */
export class ConfigProblems extends Error {
  constructor(problems: readonly Problem[]) {
    super(['The configuration has problems:', ...problems.map(printProblem)].join('\n'))
    this.name = 'ConfigProblems'
  }
}

/**
 * Returns the parts of the configuration for accounts, keys and wallets.
 * @throws ConfigProblems, UnknownConfig
 */
export function operatorConfig({ loadConfig }: Pick<Wiring, 'loadConfig'>): ConfigFile {
  const { config, problems } = loadConfig({ parts: 'all but channels' })
  if (config === null) throw new ConfigProblems(problems)
  return config
}

/**
 * Returns what models of agents are judged by; with the reason where no configuration is known. One with problems is no
 * reason to leave an agent undone, and nothing to judge it by.
 */
export function configToJudgeBy({ loadConfig }: Pick<Wiring, 'loadConfig'>): {
  readonly config: ConfigFile | null
  readonly reason: string | null
} {
  try {
    return { config: loadConfig({ parts: 'all but channels' }).config, reason: null }
  } catch (error) {
    if (error instanceof UnknownConfig) return { config: null, reason: error.message }
    throw error
  }
}

export function addConfigCommands(program: Command, { wiring, isNegativeAnswer }: Context): void {
  program
    .group('config')
    .command('check')
    .description('validate; every problem with file, line and field, and warnings')
    .argument('[file]', 'configuration file (default: the one that the service uses, or would take)')
    .example('config check tollgate.yaml')
    .answers(async (file: string | undefined) => {
      const checked = wiring.loadConfig({ file })
      const { problems, warnings } = checked
      if (problems.length > 0) isNegativeAnswer()
      const json: JsonObject = {
        ok: problems.length === 0,
        file: checked.file,
        models: checked.config?.models.length ?? null,
        channels: checked.config?.channels.length ?? null,
        problems: problems.map((problem): JsonObject => ({ ...problem })),
        warnings: warnings.map((warning): JsonObject => ({ ...warning })),
      }
      const warned = () => warnings.map((warning) => `warning: ${printProblem(warning)}\n`).join('')
      const sound = () => `ok: ${checked.file}, ${json.models} models, ${json.channels} channels\n${warned()}`
      const broken = () => problems.map((problem) => `${printProblem(problem)}\n`).join('')
      return { json, text: problems.length === 0 ? sound : broken }
    })
}
