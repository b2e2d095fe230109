import type { Command } from 'commander'
import { type Problem, printProblem } from '../config/problem.ts'
import { answers, type Context } from './context.ts'
import type { JsonObject } from './output.ts'

/** The configuration cannot be used: every problem with its place. */
export class ConfigProblems extends Error {
  constructor(problems: readonly Problem[]) {
    super(['The configuration has problems:', ...problems.map(printProblem)].join('\n'))
    this.name = 'ConfigProblems'
  }
}

export function addConfigCommands(program: Command, context: Context): void {
  const { wiring, answerIsNo } = context
  const config = program.command('config').description('the configuration file')

  answers(
    context,
    config
      .command('check')
      .description('validate; every problem with file, line and field')
      .argument('[file]', 'configuration file (default: the one that serve would take)'),
    'config check tollgate.yaml',
    async (file: string | undefined) => {
      const checked = wiring.loadConfig(file)
      const { problems } = checked
      if (problems.length > 0) answerIsNo()
      const json: JsonObject = {
        ok: problems.length === 0,
        file: checked.file,
        models: checked.config?.models.length ?? null,
        channels: checked.config?.channels.length ?? null,
        problems: problems.map((problem): JsonObject => ({ ...problem })),
      }
      const sound = () => `ok: ${checked.file}, ${json.models} models, ${json.channels} channels\n`
      const broken = () => problems.map((problem) => `${printProblem(problem)}\n`).join('')
      return { json, text: problems.length === 0 ? sound : broken }
    },
  )
}
