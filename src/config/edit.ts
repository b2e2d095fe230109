/** The configuration file as operators read and replace it while the service runs. */
import { accessSync, constants, lstatSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DEMONSTRATION_FILE } from './demonstration.ts'
import { type LoadResult, loadConfig, readConfigText } from './load.ts'
import { hideSecrets, MASK, restoreSecrets } from './secrets.ts'
import { type Environment, readSource } from './source.ts'

interface ShownConfiguration {
  readonly path: string
  /** Without its secrets. */
  readonly text: string
  /** Distinguishes one content from another. */
  readonly digest: string
  readonly isWritable: boolean
}

interface CheckedText {
  readonly result: LoadResult
  /** The values of the file in force and of the text, as they are written. */
  readonly before: unknown
  readonly after: unknown
}

export interface EditableConfiguration {
  read(): ShownConfiguration
  /** Checks a text; a masked secret in it stands for the one in the file. */
  check(text: string): CheckedText
  /** Returns the text with a mask in place of each secret. */
  mask(text: string): string
  /** Replaces the file in one step. @throws Error when it cannot be written */
  replace(text: string): void
}

/** A link, such as that of a ConfigMap, is changed where it is deployed from; the demonstration stays as shipped. */
function isWritable(path: string): boolean {
  if (path === DEMONSTRATION_FILE) return false
  try {
    if (lstatSync(path).isSymbolicLink()) return false
    accessSync(path, constants.W_OK)
    accessSync(dirname(path), constants.W_OK)
    return true
  } catch {
    return false
  }
}

export const openConfiguration = (path: string, env: Environment): EditableConfiguration => {
  const readValues = (text: string) => readSource(text, path, null).value
  return {
    read() {
      const { text, digest } = readConfigText(path)
      return { path, text: hideSecrets(text), digest, isWritable: isWritable(path) }
    },
    check(text) {
      const current = readConfigText(path)
      const whole = restoreSecrets(text, current.text)
      const refusal = whole.includes(MASK)
        ? `It has "${MASK}" where the file in force has no such secret: write the secret, or a variable.`
        : whole.trim() === ''
          ? 'The text is empty.'
          : null
      const result = loadConfig({ path, digest: '', text: whole, refusal }, env)
      return { result, before: readValues(current.text), after: readValues(whole) }
    },
    mask: hideSecrets,
    replace(text) {
      const whole = restoreSecrets(text, readConfigText(path).text)
      const aside = `${path}.${process.pid}.new`
      try {
        writeFileSync(aside, whole, { mode: statSync(path).mode & 0o777 })
        renameSync(aside, path)
      } finally {
        rmSync(aside, { force: true })
      }
    },
  }
}
