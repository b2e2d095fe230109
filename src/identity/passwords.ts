/** Hashes of passwords: argon2id, computed off the event loop, few at a time. */
import { type Algorithm, hash, verify } from '@node-rs/argon2'
import { Failure } from '../../schemas/failure.ts'
import { normalizePassword } from '../core/people/password-policy.ts'

/** OWASP's second recommendation: some 40 ms of one core. */
const PARAMETERS = {
  algorithm: 2 satisfies Algorithm.Argon2id,
  memoryCost: 19 * 1024,
  timeCost: 2,
  parallelism: 1,
}
/** 19 MiB each; the threads of the pool are for files too. */
const MAX_AT_ONCE = 2
const MAX_WAITING = 100
const BUSY_RETRY_SECONDS = '5'

export function openPasswords() {
  const waiting: (() => void)[] = []
  let running = 0
  /** Runs `work` when fewer than `MAX_AT_ONCE` run. @throws Failure `service_unavailable` when too many wait */
  const waitTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= MAX_AT_ONCE) {
      if (waiting.length >= MAX_WAITING)
        throw new Failure('service_unavailable', 'Too many sign-ins at the same time. Try again.', {
          headers: [['retry-after', BUSY_RETRY_SECONDS]],
        })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) running--
      else next()
    }
  }
  const hashPassword = (password: string): Promise<string> =>
    waitTurn(() => hash(normalizePassword(password), PARAMETERS))
  // Of a password that no user can have: it is too short.
  const dummy = hash('', PARAMETERS)
  return {
    /** Returns the hash in PHC form, with its parameters and its salt. */
    hash: hashPassword,
    /** Returns whether the password has this hash. Without a hash it is false, and takes as long. */
    async verify(stored: string | null, password: string): Promise<boolean> {
      const against = stored ?? (await dummy)
      const isSame = await waitTurn(() => verify(against, normalizePassword(password)))
      return isSame && stored !== null
    },
  }
}
