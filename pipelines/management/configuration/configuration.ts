/** Operations of the configuration file. */
import type { z } from 'zod'
import type { ProcessReport } from '../../../schemas/config/channel-report.ts'
import { Failure } from '../../../schemas/failure.ts'
import {
  applyConfiguration,
  checkConfiguration,
  editConfiguration,
  showConfiguration,
} from '../../../schemas/management/configuration.ts'
import type { EditableConfiguration } from '../../../src/config/edit.ts'
import type { ConfigurationEditor, FieldChange } from '../../../src/config/entries.ts'
import type { Problem } from '../../../src/config/problem.ts'
import { implementWith } from '../operation.ts'
import { compareConfigurations, listChangedLines } from './difference.ts'

export interface ConfigurationServices {
  readonly file: EditableConfiguration
  /** Whether the file has problems, so that an earlier content is in force. */
  readonly isRefused: () => boolean
  readonly edit: ConfigurationEditor
  /** The machine whose file this is. */
  readonly host: string
  /** Returns each running process's report; null without an answer. */
  readonly processReports: () => Promise<readonly ProcessReport[] | null>
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
    lines: listChangedLines(file.read().text, file.mask(text)),
  }
}

/** @throws Failure `invalid_request` for an edit that only an editor of text can make */
function editText(
  { read, change, add, remove, find }: ConfigurationEditor,
  given: z.output<(typeof editConfiguration)['input']>,
) {
  try {
    const text = given.edits.reduce((text, edit) => {
      if (edit.kind === 'add') return add(text, edit.list, edit.entry)
      if (edit.kind === 'remove') return remove(text, edit.list, edit.id)
      return change(text, edit.list, edit.id, edit.changes as readonly FieldChange[])
    }, given.text)
    const found = given.find ? find(text, given.find.list, given.find.id, given.find.path) : null
    return { text, models: [...read(text, 'models')], channels: [...read(text, 'channels')], found }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new Failure('invalid_request', error.message)
  }
}

const implement = implementWith<ConfigurationServices>()

export const configurationOperations = [
  implement(showConfiguration, async (_, __, { file, isRefused, host, processReports }) => {
    const { path, text, digest, isWritable } = file.read()
    const hosts = new Set((await processReports())?.map((report) => report.host))
    return {
      path,
      text,
      digest,
      is_writable: isWritable,
      is_refused: isRefused(),
      host,
      other_hosts: [...hosts].filter((other) => other !== host).sort(),
    }
  }),
  implement(editConfiguration, async (_, input, { edit }) => editText(edit, input)),
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
