/** The media jobs of each provider, through the task engine. */
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { cancelFoundTask } from '../../../pipelines/media/cancel-task.ts'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT, printCredits } from '../../../schemas/money.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { authorizers } from '../../../src/auth/authorizer.ts'
import { findMediaAdapter, MEDIA_PROTOCOLS } from '../../../src/channels/media/registry.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { dashscopeDialect } from '../../support/media-providers/dashscope.ts'
import { falDialect } from '../../support/media-providers/fal.ts'
import { klingDialect } from '../../support/media-providers/kling.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import {
  type Dialect,
  FILM as FILM_FILE,
  KEY,
  type Provider,
  startProvider,
} from '../../support/media-providers/provider.ts'
import { replicateDialect } from '../../support/media-providers/replicate.ts'
import { runwayDialect } from '../../support/media-providers/runway.ts'
import { veoDialect } from '../../support/media-providers/veo.ts'
import { BUCKET, PROJECT, vertexDialect } from '../../support/media-providers/vertex.ts'
import { silent, startTasks, type TestAccount, UNTOUCHED } from './support.ts'

t.test('each provider of media', async (t) => {
  // Every adapter of a provider's media jobs, through the task engine, before a provider that keeps its jobs: what is made is
  // stored and charged as the provider reports it, and nothing is ever submitted twice.
  interface Expected {
    /** Default: its name in this list. */
    readonly protocol?: string
    /** Further fields of its channel, in place of its key. */
    readonly channel?: object
    readonly dialect: Dialect
    /** Behind the provider's address. */
    readonly base: string
    readonly model: string
    /** Seconds that a film is charged for: 4, or the 5 that were asked for where the provider reports none. */
    readonly seconds: 4 | 5
    /** How many of two images that were asked for are made. */
    readonly images: 0 | 1 | 2
    /** False: it says no more than that a job is not done. */
    readonly hasStates: boolean
    /** How a job ends that came too late; null where the provider has no such end. */
    readonly late: Task['state'] | null
    readonly canCancel: boolean
    readonly canFind: boolean
    /** False: files come in the answer. */
    readonly hasLinks?: false
    /** Code of a job that failed. */
    readonly broken: string
  }

  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const GOOGLE = {
    type: 'google',
    credentials: JSON.stringify({
      type: 'service_account',
      client_email: 'a@p.iam.gserviceaccount.com',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    }),
  }

  const VEO: Expected = {
    dialect: veoDialect,
    base: '',
    model: 'veo-3.1-generate-preview',
    seconds: 5,
    images: 0,
    hasStates: false,
    late: null,
    canCancel: false,
    canFind: false,
    broken: 'generation_failed',
  }
  const VEO_AT_VERTEX: Expected = {
    ...VEO,
    protocol: 'veo',
    channel: { provider: 'vertex', auth: GOOGLE },
    dialect: vertexDialect,
    base: PROJECT,
    model: 'veo-3.1-generate-001',
  }

  const PROVIDERS: Readonly<Record<string, Expected>> = {
    fal: {
      dialect: falDialect,
      base: '',
      model: 'fal-ai/kling-video/v2/text-to-video',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: 'failed',
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    replicate: {
      dialect: replicateDialect,
      base: '/v1',
      model: 'owner/model',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: 'expired',
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    kling: {
      dialect: klingDialect,
      base: '/v1',
      model: 'kling-v2-6',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: null,
      canCancel: false,
      canFind: true,
      broken: 'generation_failed',
    },
    veo: VEO,
    'veo at Vertex': { ...VEO_AT_VERTEX, hasLinks: false },
    'veo at Vertex, with a bucket': {
      ...VEO_AT_VERTEX,
      channel: { provider: 'vertex', auth: GOOGLE, storage_uri: `${BUCKET}/films` },
    },
    'minimax-video': {
      dialect: minimaxDialect,
      base: '/v1',
      model: 'MiniMax-Hailuo-02',
      seconds: 5,
      images: 0,
      hasStates: true,
      late: null,
      canCancel: false,
      canFind: false,
      broken: 'content_policy',
    },
    dashscope: {
      dialect: dashscopeDialect,
      base: '/api/v1',
      model: 'wan2.5-t2v-preview',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: null,
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    runway: {
      dialect: runwayDialect,
      base: '/v1',
      model: 'gen4_turbo',
      seconds: 5,
      images: 1,
      hasStates: true,
      late: null,
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
  }

  /** Longer than several looks take. */
  const A_WHILE_MS = 300

  const tasks = await startTasks(t)
  const { database, storage } = tasks
  const client = new UpstreamClient()
  t.teardown(() => client.close())

  const messages = { announce() {}, announceWallets() {} }

  /** Answers for Google's token endpoint, whose address is in the code of its library. */
  const authorizerOf = authorizers({
    fetch: async () => Response.json({ access_token: KEY, expires_in: 3600, token_type: 'Bearer' }),
    now: Date.now,
    elapsed: () => performance.now(),
    env: {},
    onToken() {},
    onFailure: (_, problem) => t.fail(problem),
  })
  const calls = openMediaCalls(client, storage, authorizerOf)

  /** Objects of Cloud Storage are at the provider, below `/files`. */
  const storageAt = (url: string): typeof storage => ({
    ...storage,
    copy(link, key, limits, allowedHost, signal) {
      const isObject = allowedHost === 'storage.googleapis.com'
      const at = isObject ? link.replace(/^.*\/films\//, `${url}/files/`) : link
      return storage.copy(at, key, limits, isObject ? new URL(url).host : allowedHost, signal)
    },
  })

  t.test(
    'each protocol of media that is polled is here, or has a dialect of the simulated provider',
    async (t) => {
      const covered = new Set([
        ...Object.entries(PROVIDERS).map(([name, { protocol = name }]) => protocol),
        ...MEDIA_DIALECTS.map(({ name }) => name),
      ])
      const polled = MEDIA_PROTOCOLS.filter((protocol) => findMediaAdapter(protocol)!.follow !== null)
      t.same(
        polled.filter((protocol) => !covered.has(protocol)),
        [],
      )
    },
  )

  for (const [name, expected] of Object.entries(PROVIDERS)) {
    const protocol = expected.protocol ?? name
    t.test(name, async (t) => {
      const provider: Provider = await startProvider(t, expected.dialect)
      const catalog = createCatalog(
        configFile.parse({
          models: [
            { id: 'film', pricing: { unit: 'second', per_unit: '2.5' } },
            { id: 'picture', pricing: { unit: 'image', per_unit: '4' } },
          ],
          channels: [
            {
              id: protocol,
              protocol,
              base_url: provider.url + expected.base,
              ...(expected.channel ?? { api_key: KEY }),
              models: { film: expected.model, picture: expected.model },
            },
          ],
        }),
      )
      const deps = {
        findAdapter: findMediaAdapter,
        catalog: () => catalog,
        calls,
        storage: storageAt(provider.url),
      }
      // Two processes: whichever gets a message works on it, and both may get it.
      const workers = [tasks.worker(t, { ...deps, hurry: 100 }), tasks.worker(t, { ...deps, hurry: 100 })]

      const order = (account: TestAccount, name: 'film' | 'picture', prompt: string) => {
        const model = catalog.resolve(name)!
        const job = mediaJob.parse(
          name === 'film'
            ? { work: 'video', content: [{ type: 'text', text: prompt }], duration: 5 }
            : { work: 'image', prompt, n: 2, size: '1024x1024' },
        )
        const price = findMediaPrice(model.entry, null, Date.now())!
        const routes = catalog.routes(model, protocol)
        return tasks.order(account, name, prompt, {
          model,
          job,
          price,
          hold: computeHold(price, job),
          routes,
        })
      }
      const submitted = (account: TestAccount, name: 'film' | 'picture', prompt: string) =>
        tasks.submit(order(account, name, prompt), { findAdapter: findMediaAdapter })
      const refusal = (account: TestAccount, prompt: string) =>
        submitted(account, 'film', prompt).catch((error: unknown) => error)
      const jobsOf = (prompt: string) => provider.jobs.filter((job) => job.prompt === prompt)
      const now = async ({ id }: Task) => (await database.tasks.read([id]))[0]!

      await t.test('a film is followed, stored, and charged by its reported length', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'good film')
        const ended = await tasks.reached(id, 'succeeded', 'failed')
        const key = `videos/${id}.mp4`
        t.match(ended, {
          state: 'succeeded',
          result: { files: [{ role: 'video', key, upstream_url: null }] },
        })
        t.ok((await storage.read(key, 10_000)).equals(FILM_FILE))
        t.equal(printCredits(ended.cost!), String(2.5 * expected.seconds))
        t.match(await tasks.walletOf(account), { held: 0n, used: ended.cost! })
        t.equal(jobsOf('good film').length, 1)
      })

      if (expected.images > 0)
        await t.test('images are charged by their number', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'picture', 'good pictures')
          const ended = await tasks.reached(id, 'succeeded', 'failed')
          t.match(ended, { state: 'succeeded', cost: ONE_CREDIT * 4n * BigInt(expected.images) })
          t.equal(ended.result?.files.filter(({ key }) => key?.startsWith('images/')).length, expected.images)
          t.equal(jobsOf('good pictures').length, 1)
        })

      await t.test('a lost answer makes no task, and is looked up where it can be', async (t) => {
        const account = await tasks.newAccount()
        t.match(await refusal(account, 'cut off'), { status: 502, code: 'upstream_unreachable' })
        t.match(await tasks.walletOf(account), UNTOUCHED)
        await pause(A_WHILE_MS)
        t.equal(jobsOf('cut off').length, 1, 'it is not sent again')
        const lost = async () =>
          (await database.lostSubmits.list({ isOpen: false, before: null, limit: 200 })).find(
            ({ accountId }) => accountId === account.account.id,
          )
        t.match(await lost(), { state: 'open', channelId: protocol })
        for (const minutes of [0, 1, 2, 5])
          await followLostSubmits({
            ...{ ...deps, database, log: silent },
            now: () => Date.now() + minutes * 60_000,
          })
        t.match(await lost(), expected.canFind ? { state: 'made', upstreamId: String } : { upstreamId: null })
        t.equal(jobsOf('cut off').length, 1)
        t.match(await tasks.walletOf(account), UNTOUCHED)
      })

      await t.test('too many requests: refused, and nothing is held', async (t) => {
        const account = await tasks.newAccount()
        t.match(await refusal(account, 'busy'), { status: 429 })
        t.equal(jobsOf('busy').length, 0)
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      await t.test('refused content is the customer’s to change', async (t) => {
        const account = await tasks.newAccount()
        if (expected.dialect.improper === null) {
          const { id } = await submitted(account, 'film', 'improper')
          t.match(await tasks.reached(id, 'failed', 'succeeded'), {
            state: 'failed',
            errorCode: 'content_policy',
          })
        } else t.match(await refusal(account, 'improper'), { status: 400 })
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      await t.test('a job that failed says why, and costs nothing', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'broken')
        const failed = await tasks.reached(id, 'failed', 'succeeded')
        t.match(failed, { state: 'failed', errorCode: expected.broken, errorMessage: /\w/ })
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      if (expected.hasStates)
        await t.test('a state that nobody knows changes nothing', async (t) => {
          const account = await tasks.newAccount()
          const task = await submitted(account, 'film', 'strange')
          const isTold = () =>
            workers.some(({ unmapped }) => unmapped.some((line) => line.startsWith(task.id)))
          while (!isTold()) await pause(10)
          t.match((await now(task)).state, /queued|running/)
          t.equal(jobsOf('strange').length, 1)
        })

      if (expected.late !== null)
        await t.test('a job that came too late at its provider ends', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'film', 'late')
          t.match(await tasks.reached(id, 'failed', 'expired', 'succeeded'), { state: expected.late })
          t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
        })

      if (expected.hasLinks !== false)
        await t.test('a link that opens no more is handed on, and what was made is charged', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'film', 'gone')
          const ended = await tasks.reached(id, 'succeeded', 'failed')
          t.match(ended, { state: 'succeeded', result: { files: [{ key: null, upstream_url: /^http/ }] } })
          t.equal(jobsOf('gone').length, 1)
        })

      await t.test('a queued job is cancelled where the provider can', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'slow')
        const task = await tasks.reached(id, 'queued', 'running')
        const cancelled = cancelFoundTask({ ...deps, database, messages, log: silent }, task)
        const outcome = await cancelled.catch((error: unknown) => error)
        t.match(outcome, expected.canCancel ? { state: 'cancelled' } : { code: 'task_not_cancellable' })
        t.equal(jobsOf('slow')[0]?.isCancelled, expected.canCancel)
        if (expected.canCancel) t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })
    })
  }
})
