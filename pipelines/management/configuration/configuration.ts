/** Operations of the configuration file. */
import { Failure } from '../../../schemas/failure.ts'
import {
  applyConfiguration,
  checkConfiguration,
  showConfiguration,
} from '../../../schemas/management/configuration.ts'
import type { EditableConfiguration } from '../../../src/config/edit.ts'
import type { Problem } from '../../../src/config/problem.ts'
import { implementWith } from '../operation.ts'
import { compareConfigurations } from './difference.ts'

export interface ConfigurationServices {
  readonly file: EditableConfiguration
  /** Whether the file has problems, so that an earlier content is in force. */
  readonly isRefused: () => boolean
}

const SECRET_FIELDS = ['api_key', 'api_keys', 'auth', 'headers']
const isSecret = (field: string): boolean => SECRET_FIELDS.includes(field)

const problemShape = ({ line, column, field, message }: Problem) => ({ line, column, field, message })

/** Checks the text against the file. */
function checkText(file: EditableConfiguration, text: string) {
  const { result, before, after } = file.check(text)
  return {
    ok: result.ok,
    problems: result.ok ? [] : result.problems.map(problemShape),
    warnings: result.ok ? result.warnings.map(problemShape) : [],
    difference: compareConfigurations(before, after, isSecret),
  }
}

const implement = implementWith<ConfigurationServices>()

export const configurationOperations = [
  implement(showConfiguration, async (_, __, { file, isRefused }) => {
    const { path, text, digest, isWritable } = file.read()
    return { path, text, digest, is_writable: isWritable, is_refused: isRefused() }
  }),
  implement(checkConfiguration, async (_, { text }, { file }) => checkText(file, text)),
  implement(applyConfiguration, async ({ write }, { text, digest }, { file }) => {
    const before = file.read()
    if (!before.isWritable)
      throw new Failure(
        'conflict',
        `${before.path} cannot be written by the gateway. Change it where it is deployed from, or set TOLLGATE_CONFIG to a file that the service may write.`,
      )
    if (before.digest !== digest)
      throw new Failure('conflict', 'The configuration file has changed since it was read. Read it again.')
    const { ok, problems, difference } = checkText(file, text)
    const [first] = problems
    if (!ok)
      throw new Failure(
        'invalid_request',
        `text: line ${first?.line}, column ${first?.column}: ${first?.field ? `${first.field}: ` : ''}${first?.message}`,
      )
    // Within the transaction: the audit record has the operation exactly if the file was replaced.
    await write(async (database) => {
      await database.configurations.record(difference)
      file.replace(text)
    })
    return { digest: file.read().digest, difference }
  }),
]
