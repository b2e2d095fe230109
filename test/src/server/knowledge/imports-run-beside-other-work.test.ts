import { createHash } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import t from 'tap'
import type { Job } from '../../../../src/postgres/operation/jobs.ts'
import { importJob } from '../../../../src/server/knowledge/import-job.ts'
import { storeOf } from '../../../../src/storage/open-store.ts'
import { newAccount, startDatabase } from '../../postgres/support.ts'

/** Takes seconds to read: each list is read within the one around it. */
const NESTED = Array.from({ length: 1_200 }, (_, level) => `${' '.repeat(level)}- a`).join('\n')
/** Words of which each is a term of the index. */
const WORDS = Array.from({ length: 20_000 }, (_, index) => createHash('md5').update(`${index}`).digest('hex'))

const { database, serviceUrl, masterKey } = await startDatabase(t)
const boot = {
  databaseUrl: serviceUrl,
  databasePoolUrl: null,
  masterKey: masterKey.toString('base64'),
  objectStore: null,
  dataDir: t.testdir(),
  publicUrl: 'http://127.0.0.1',
}
const store = await storeOf({ ...boot, fileLinkKey: database.fileLinkKey })
const run = importJob({ boot, store })
const { id: baseId } = await database.defaultBase(await newAccount(database))

async function jobOf(files: Record<string, string>): Promise<Job> {
  const uploads = Object.keys(files).map((path) => ({ key: `uploads/${path}`, path }))
  for (const { key, path } of uploads)
    await store.put(key, Readable.from([files[path]!]), { mediaType: 'text/plain', maxBytes: 10_000_000 })
  const input = { files: uploads, prune: false }
  await database.startJob({ kind: 'import', subjectId: baseId, input })
  return (await database.claimJob(['import']))!
}

t.test('an import delays nothing else of the process', async (t) => {
  const job = await jobOf({ 'nested.md': NESTED, 'words.md': WORDS.join(' ') })
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const begun = performance.now()
  delay.enable()
  const { result, error, onEnded } = await run(job, async () => undefined)
  delay.disable()
  t.match({ result, error }, { error: undefined, result: { report: { added: 2 } } })
  t.ok(performance.now() - begun > 1_000, 'it takes long')
  const longestMs = Math.round(delay.max / 1e6)
  t.ok(longestMs < 500, `the longest wait of others: ${longestMs} ms`)
  t.not(await store.get('uploads/words.md'), null)
  await onEnded!()
  t.equal(await store.get('uploads/words.md'), null)
  await database.endJob(job.id, {})
})

t.test('an import that is to stop ends, and changes nothing', async (t) => {
  const job = await jobOf({ 'first.md': '# First', 'nested.md': NESTED })
  const stop = () => Promise.reject(new Error('cancelled'))
  await t.rejects(run(job, stop), { message: 'cancelled' })
  t.same([...(await database.pageHashes(baseId)).keys()].sort(), ['nested.md', 'words.md'])
  await database.endJob(job.id, {})
})

t.test('an import that cannot be done says why', async (t) => {
  const job = await jobOf({ 'late.md': '# Late' })
  await store.delete(['uploads/late.md'])
  await t.rejects(
    run(job, async () => undefined),
    { message: /^The upload is gone: / },
  )
  await database.endJob(job.id, {})
})
