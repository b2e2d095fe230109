/**
 * Notes which secrets of rotated keys are in use, without delaying their calls. If a note is lost, because PostgreSQL is down
 * or the process is killed, the next call with the same secret makes it: a former secret then works longer by that time, but
 * never past its last day.
 */
import { Buffer } from 'node:buffer'
import type { RotatedSecret } from '../../schemas/accounts/key.ts'

/** How long after its last noted use a secret is noted again. */
const NOTED_MS = 60_000
const RETRY_MS = 1_000
const MAX_SECRETS = 10_000

interface SecretUsesDeps {
  readonly database: { readonly keys: { noteSecretUse(secret: RotatedSecret): Promise<void> } }
  readonly log: { warn(details: object, message: string): void }
  readonly now?: () => number
}

/** Returns a function to call with the secret of each call. It returns at once, and never throws. */
export function noteSecretUses({ database, log, now = Date.now }: SecretUsesDeps) {
  /** When each secret may be noted again. */
  const waiting = new Map<string, number>()
  return (secret: RotatedSecret): void => {
    const name = Buffer.from(secret.hash).toString('latin1')
    const time = now()
    if (time < (waiting.get(name) ?? 0)) return
    if (waiting.size >= MAX_SECRETS) waiting.clear()
    waiting.set(name, time + NOTED_MS)
    database.keys.noteSecretUse(secret).catch((error: unknown) => {
      waiting.set(name, now() + RETRY_MS)
      log.warn({ err: error }, 'Failed to note the use of a rotated key; the next call with it notes it')
    })
  }
}
