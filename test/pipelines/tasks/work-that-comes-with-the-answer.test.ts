/**
 * Images, speech and songs of an upstream that answers with them: stored, charged once, and never asked for twice. The
 * client of a song, which takes minutes, does not wait.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import type { MediaCalls } from '../../../pipelines/tasks/ports.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { MEDIA_PROTOCOLS, mediaAdapterOf } from '../../../src/channels/media/registry.ts'
import { holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import { KEY, SOUND, startProvider } from '../../support/media-providers/provider.ts'
import { startTasks, type TestAccount } from './support.ts'

const MODEL = 'made-at-once'
const REFUSED = { state: 'refused' } as const
/** Of two images at 4 credits each, of words at 2 credits a thousand characters, and of a song at 5 credits. */
const WORKS = {
  'minimax-images': {
    order: { kind: 'image', protocol: 'images' },
    pricing: { unit: 'image', per_unit: '4' },
    job: (prompt: string) => ({ work: 'image', prompt, n: 2, size: '1024x1024' }),
    costOf: (_: string) => 8n * ONE_CREDIT,
    result: { files: [{ role: 'image', key: /^images\// }] },
    lost: { status: /^50\d$/ },
    refused: { improper: { status: 400 }, busy: { status: 429 } },
    hasLinks: true,
  },
  'minimax-speech': {
    order: { kind: 'speech', protocol: 'speech' },
    pricing: { unit: '1000_characters', per_unit: '2' },
    job: (input: string) => ({ work: 'speech', input, voice: null, speed: 1 }),
    costOf: (words: string) => (BigInt(words.length) * 2n * ONE_CREDIT) / 1000n,
    result: { files: [{ role: 'audio', key: /^speech\// }] },
    lost: { status: /^50\d$/ },
    refused: { improper: { status: 400 }, busy: { status: 429 } },
    hasLinks: false,
  },
  'minimax-music': {
    order: { kind: 'music', protocol: 'music' },
    pricing: { unit: 'generation', per_unit: '5' },
    job: (prompt: string) => ({ work: 'music', prompt, instrumental: true }),
    costOf: (_: string) => 5n * ONE_CREDIT,
    result: {
      tracks: [{ seconds: 25.364, lyrics: null }],
      files: [{ role: 'audio', key: /^music\/mus_\w+\.mp3$/, track: 0 }],
    },
    lost: REFUSED,
    // The last is an answer without a song.
    refused: { improper: REFUSED, busy: REFUSED, broken: REFUSED },
    hasLinks: true,
  },
} as const

const tasks = await startTasks(t)
const { storage } = tasks
const provider = await startProvider(t, minimaxDialect)
const client = new UpstreamClient()
t.teardown(() => client.close())
const sent = mediaCalls(client, storage, authorizerOf)
const timeouts: number[] = []
const calls: MediaCalls = {
  ...sent,
  send(request, options) {
    timeouts.push(options.timeoutMs)
    return sent.send(request, options)
  },
}
const jobsOf = (prompt: string) => provider.jobs.filter((job) => job.prompt === prompt)

t.test(
  'each protocol of media that is not polled is here, or has a dialect of the simulated provider',
  async (t) => {
    const covered = new Set([...Object.keys(WORKS), ...MEDIA_DIALECTS.map(({ name }) => name)])
    const others = MEDIA_PROTOCOLS.filter((protocol) => mediaAdapterOf(protocol)!.follow === null)
    t.same(
      others.filter((protocol) => !covered.has(protocol)),
      [],
    )
  },
)

for (const [protocol, work] of Object.entries(WORKS))
  t.test(protocol, async (t) => {
    const catalog = createCatalog(
      configFile.parse({
        models: [{ id: MODEL, pricing: work.pricing }],
        channels: [
          {
            id: 'minimax',
            protocol,
            base_url: `${provider.url}/v1`,
            api_key: KEY,
            models: { [MODEL]: 'upstream-model' },
          },
        ],
      }),
    )
    const deps = { adapterOf: mediaAdapterOf, catalog: () => catalog, calls }
    for (let count = 0; count < 2; count++) tasks.worker(t, deps)
    /** Returns the task once it has ended, or the error that its client gets. */
    const ordered = async (account: TestAccount, prompt: string) => {
      const model = catalog.resolve(MODEL)!
      const job = mediaJob.parse(work.job(prompt))
      const price = mediaPriceOf(model.entry, null, Date.now())!
      const routes = catalog.routes(model, protocol)
      const more: Partial<TaskOrder> = { model, job, price, hold: holdOf(price, job), routes, ...work.order }
      // The client of a film does not wait either.
      const isAwaited = protocol !== 'minimax-music'
      const order = tasks.order(account, isAwaited ? 'picture' : 'film', prompt, more)
      try {
        const task = await tasks.submit(order, { adapterOf: mediaAdapterOf })
        if (isAwaited) return task
        return await tasks.reached(task.id, 'succeeded', 'failed', 'refused')
      } catch (error) {
        return error
      }
    }

    await t.test('what was made is stored, and charged once', async (t) => {
      const account = await tasks.newAccount()
      const prompt = `good ${protocol}`
      const cost = work.costOf(prompt)
      const ended = (await ordered(account, prompt)) as Awaited<ReturnType<typeof tasks.reached>>
      t.match(ended, { state: 'succeeded', cost, result: work.result })
      if (work.order.kind !== 'image')
        t.ok((await storage.read(ended.result!.files[0]!.key!, 10_000)).equals(SOUND))
      t.match(await tasks.walletOf(account), { held: 0n, used: cost })
      t.equal(jobsOf(prompt).length, 1)
      if (work.order.kind === 'music')
        t.ok(timeouts.at(-1)! > TASK_RULES.music.submitTimeoutMs, 'it may take longer than a submit')
    })

    await t.test('a lost answer is an error: nothing is charged or sent again', async (t) => {
      const account = await tasks.newAccount()
      const prompt = `cut ${protocol}`
      t.match(await ordered(account, prompt), work.lost)
      await pause(300)
      t.equal(jobsOf(prompt).length, 1)
      t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
    })

    await t.test('a refusal costs nothing', async (t) => {
      for (const [fate, refused] of Object.entries(work.refused)) {
        const account = await tasks.newAccount()
        t.match(await ordered(account, `${fate} ${protocol}`), refused, fate)
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n }, fate)
      }
    })

    if (work.hasLinks)
      await t.test('a link that opens no more is handed on, and what was made is charged', async (t) => {
        const account = await tasks.newAccount()
        const prompt = `gone ${protocol}`
        t.match(await ordered(account, prompt), {
          state: 'succeeded',
          cost: work.costOf(prompt),
          result: { files: [{ key: null, upstream_url: /^http/ }] },
        })
      })
  })
