import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'

/** Only the owner may read and write: every file here holds a password or a pid we trust. */
export const PRIVATE_MODE = 0o600

/**
 * Replaces the file at once: a reader sees the old content or the new, never half of one, and so does
 * the next start after a power loss.
 */
export function writePrivateFile(path: string, content: string): void {
  const next = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    const file = openSync(next, 'wx', PRIVATE_MODE)
    try {
      fchmodSync(file, PRIVATE_MODE)
      writeSync(file, content)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(next, path)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Returns the JSON in the file, checked; null when there is no such file or it has another form. */
export function readPrivateJson<T>(path: string, schema: z.ZodType<T>): T | null {
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return null
  }
}

const PASSWORD_BYTES = 24
const Passwords = z.record(z.string(), z.string())

/** Returns the generated password of one engine, created at its first start and kept with its data. */
export function readPassword(engine: string, dataDir: string): string {
  const path = join(dataDir, 'passwords.json')
  const passwords = readPrivateJson(path, Passwords) ?? {}
  const known = passwords[engine]
  if (known !== undefined) return known
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  writePrivateFile(path, `${JSON.stringify({ ...passwords, [engine]: password }, null, 2)}\n`)
  return password
}
