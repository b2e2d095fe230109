/**
 * Songs of an upstream that answers with them after minutes: their client does not wait, and what is made is stored and
 * charged once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { MediaCalls } from '../../../pipelines/tasks/ports.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { mediaAdapterOf } from '../../../src/channels/media/registry.ts'
import { holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import { KEY, SOUND, startProvider } from '../../support/media-providers/provider.ts'
import { startTasks, type TestAccount } from './support.ts'

const MODEL = 'song'
const PRICE = 5n * ONE_CREDIT
const tasks = await startTasks(t)
const { database, storage } = tasks
const provider = await startProvider(t, minimaxDialect)
const client = new UpstreamClient()
t.teardown(() => client.close())
const catalog = createCatalog(
  configFile.parse({
    models: [{ id: MODEL, pricing: { unit: 'generation', per_unit: '5' } }],
    channels: [
      {
        id: 'minimax',
        protocol: 'minimax-music',
        base_url: `${provider.url}/v1`,
        api_key: KEY,
        models: { [MODEL]: 'music-2.6' },
      },
    ],
  }),
)
const timeouts: number[] = []
const sent = mediaCalls(client, storage, authorizerOf)
const calls: MediaCalls = {
  ...sent,
  send(request, options) {
    timeouts.push(options.timeoutMs)
    return sent.send(request, options)
  },
}
const deps = { adapterOf: mediaAdapterOf, catalog: () => catalog, calls }
const workers = [tasks.worker(deps), tasks.worker(deps)]
t.teardown(() => {
  for (const worker of workers) worker.kill()
})

async function ordered(account: TestAccount, prompt: string) {
  const model = catalog.resolve(MODEL)!
  const job = mediaJob.parse({ work: 'music', prompt, instrumental: true })
  const price = mediaPriceOf(model.entry, null, Date.now())!
  const routes = catalog.routes(model, 'minimax-music')
  const more = {
    model,
    job,
    price,
    hold: holdOf(price, job),
    routes,
    kind: 'music',
    protocol: 'music',
  } as const
  const order = tasks.order(account, 'film', prompt, more)
  return tasks.submit(order, { adapterOf: mediaAdapterOf })
}
const jobsOf = (prompt: string) => provider.jobs.filter((job) => job.prompt === prompt)
const walletOf = async ({ account }: TestAccount) => (await database.readWallets([account.id]))[0]!

t.test('a song is stored, and charged once', async (t) => {
  const account = await tasks.newAccount()
  const { id } = await ordered(account, 'good song')
  const ended = await tasks.reached(id, 'succeeded', 'failed', 'refused')
  const key = `music/${id}.mp3`
  t.match(ended, {
    state: 'succeeded',
    cost: PRICE,
    result: { tracks: [{ seconds: 25.364, lyrics: null }], files: [{ role: 'audio', key, track: 0 }] },
  })
  t.ok((await storage.read(key, 10_000)).equals(SOUND))
  t.match(await walletOf(account), { held: 0n, used: PRICE })
  t.equal(jobsOf('good song').length, 1)
  t.ok(timeouts[0]! > TASK_RULES.music.submitTimeoutMs, 'it may take longer than a submit')
})

t.test('an answer that was lost is a failure: nothing is charged or sent again', async (t) => {
  const account = await tasks.newAccount()
  const { id } = await ordered(account, 'cut song')
  t.match(await tasks.reached(id, 'succeeded', 'failed', 'refused', 'unconfirmed'), { state: 'refused' })
  await pause(300)
  t.equal(jobsOf('cut song').length, 1)
  t.match(await walletOf(account), { held: 0n, used: 0n })
})

t.test('a refusal, and an answer without a song, cost nothing', async (t) => {
  for (const prompt of ['improper song', 'busy song', 'broken song']) {
    const account = await tasks.newAccount()
    const { id } = await ordered(account, prompt)
    t.match(await tasks.reached(id, 'succeeded', 'failed', 'refused'), { state: 'refused' }, prompt)
    t.match(await walletOf(account), { held: 0n, used: 0n }, prompt)
  }
})

t.test('a link that opens no more is handed on, and what was made is charged', async (t) => {
  const account = await tasks.newAccount()
  const { id } = await ordered(account, 'gone song')
  t.match(await tasks.reached(id, 'succeeded', 'failed', 'refused'), {
    state: 'succeeded',
    cost: PRICE,
    result: { files: [{ key: null, upstream_url: /^http/ }] },
  })
})
