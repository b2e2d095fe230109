/**
 * Which secrets of a key work at which instant, after any order of rotations, calls and ends, in two processes that
 * know the key from before. Time passes by moving the rows back.
 */
import fc from 'fast-check'
import t from 'tap'
import { secretUses } from '../../../pipelines/accounts/secret-uses.ts'
import { assertUsable } from '../../../pipelines/calls/authenticate.ts'
import type { Failure } from '../../../schemas/failure.ts'
import { Credentials } from '../../../src/credentials/credentials.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import { newAccount, startDatabase } from '../../src/postgres/support.ts'

const RUNS = 25
const HOUR_MS = 3_600_000
const LAST_MS = 30 * 24 * HOUR_MS
/** Statements take time: no instant of the model is nearer to an end than this. */
const SLACK_MS = 60_000

/** One secret as the rules say it: `endsAt` is null for the newest. */
interface Modelled {
  readonly raw: string
  endsAt: number | null
  graceMs: number
  isUsed: boolean
}

const step = fc.oneof(
  fc.record({ act: fc.constant('rotate' as const), graceHours: fc.nat(168) }),
  fc.record({ act: fc.constant('use' as const), which: fc.nat(3) }),
  fc.record({ act: fc.constant('end' as const) }),
  fc.record({ act: fc.constant('wait' as const), hours: fc.oneof(fc.nat(30), fc.nat(800)) }),
)

t.test('validity', async (t) => {
  const { database, sql, openAnother } = await startDatabase(t)
  const accountId = await newAccount(database)
  const databases = [database, await openAnother()]

  const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
    const { key, raw } = await database.keys.create({ accountId, name: 'one' })
    const processes = databases.map((one) => {
      const noted: Promise<void>[] = []
      const noteSecretUse: typeof one.keys.noteSecretUse = (secret) => {
        const work = one.keys.noteSecretUse(secret)
        noted.push(work)
        return work
      }
      const credentials = new Credentials({
        database: one,
        graceMs: () => 0,
        recoveredCost: () => 0n,
        isAway,
        onFault() {},
      })
      // Each process notes by itself what it sees, as if it had seen nothing before.
      const use = secretUses({
        database: { keys: { noteSecretUse } },
        log: { warn() {} },
        now: () => Infinity,
      })
      return { credentials, use, noted }
    })
    const secrets: Modelled[] = [{ raw, endsAt: null, graceMs: 0, isUsed: true }]
    const newest = () => secrets.at(-1)!
    const working = () => secrets.find(({ endsAt }) => endsAt !== null && endsAt > Date.now())
    const changed = () => {
      for (const { credentials } of processes) credentials.forgetChanged('key', key.id)
    }
    /** Returns whether the secret opens the key, in the first process or in the second. */
    const opens = async (secret: string, index: number): Promise<boolean> => {
      const { credentials, use, noted } = processes[index]!
      const known = credentials.peek(secret) ?? (await credentials.load(secret))!
      try {
        assertUsable(known, Date.now())
      } catch (error) {
        if ((error as Failure).code === 'invalid_api_key') return false
        throw error
      }
      if (known.secret !== null) use(known.secret)
      await Promise.all(noted.splice(0))
      return true
    }
    const call = async (secret: Modelled, index: number) => {
      const isExpected = secret.endsAt === null || secret.endsAt > Date.now()
      if ((await opens(secret.raw, index)) !== isExpected)
        throw new Error(`secret ${secrets.indexOf(secret)} ${isExpected ? 'is refused' : 'still works'}`)
      if (secret !== newest() || secret.isUsed) return
      secret.isUsed = true
      const former = working()
      if (former !== undefined) former.endsAt = Math.min(former.endsAt!, Date.now() + former.graceMs)
      changed()
    }
    for (const [at, one] of steps.entries()) {
      if (one.act === 'rotate') {
        const former = working()
        const graceMs = one.graceHours * HOUR_MS
        const made = await database.keys
          .rotate(key.id, one.graceHours * 3600)
          .catch((error: Failure) => error)
        if (former !== undefined && newest().isUsed) {
          if (!(made instanceof Error)) throw new Error('rotated while two secrets are in use')
          continue
        }
        if (made instanceof Error) throw made
        if (former !== undefined) former.graceMs = graceMs
        Object.assign(newest(), { endsAt: Date.now() + (former === undefined ? LAST_MS : 0), graceMs })
        secrets.push({ raw: made.raw, endsAt: null, graceMs: 0, isUsed: false })
        changed()
      } else if (one.act === 'use') await call(secrets[one.which % secrets.length]!, at % 2)
      else if (one.act === 'end') {
        await database.keys.endFormerSecret(key.id)
        const former = working()
        if (former !== undefined) former.endsAt = Date.now()
        changed()
      } else {
        const ms = one.hours * HOUR_MS + SLACK_MS
        await sql`
          UPDATE former_secrets SET ends_at = ends_at - ${ms} * interval '1 millisecond' WHERE key_id = ${key.id}`
        for (const secret of secrets) if (secret.endsAt !== null) secret.endsAt -= ms
        changed()
      }
      // The secrets that are known to both processes are judged by the instant alone.
      for (const secret of secrets)
        if (secret !== newest() || secret.isUsed) for (const index of [0, 1]) await call(secret, index)
    }
  })
  await fc.assert(property, { numRuns: RUNS, seed: 7 })
  t.pass()
})
