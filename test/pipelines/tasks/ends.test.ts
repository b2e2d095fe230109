/** Tasks from their order to their settled row. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import type { MediaCalls } from '../../../pipelines/tasks/ports.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { findMediaAdapter, MEDIA_PROTOCOLS } from '../../../src/channels/media/registry.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { settlement } from '../../src/postgres/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import { KEY, SOUND, startProvider } from '../../support/media-providers/provider.ts'
import { CopyBench } from '../call-log/usage-copy-support.ts'
import { startTasks, type TestAccount, UNTOUCHED } from './support.ts'
import { FILM, PICTURE } from './upstream.ts'

t.test('task runs from order to settled row', async (t) => {
  // From an endpoint's order to the settled row, over real engines and HTTP.
  const tasks = await startTasks(t)
  const { database, upstream, storage } = tasks
  const health = new ChannelHealth()
  let beyond = 0
  const metrics = { countSubmit() {}, countPoll() {}, countExcess: () => void beyond++, countDiscard() {} }
  tasks.worker(t, { health, metrics })

  const callOf = async (taskId: string) => (await database.calls.find(taskId)).call!

  t.test('a film: held, accepted, made, stored, charged by its length', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('kite', { states: ['queued', 'running', 'succeeded'] })
    const accepted = await tasks.submit(tasks.order(account, 'film', 'kite'))
    t.match(accepted, {
      state: 'queued',
      channelId: 'first',
      upstreamModel: 'film-v1',
      hold: (ONE_CREDIT * 25n) / 2n,
    })
    t.match(await tasks.walletOf(account), { held: accepted.hold, used: 0n })
    const ended = await tasks.reached(accepted.id, 'succeeded')
    const key = `videos/${accepted.id}.mp4`
    t.match(ended, {
      cost: ONE_CREDIT * 10n,
      result: { files: [{ key, upstream_url: null, media_type: 'video/mp4' }] },
    })
    t.ok((await storage.read(key, 10_000)).equals(FILM))
    t.match(await tasks.walletOf(account), { held: 0n, used: ONE_CREDIT * 10n })
    const row = await callOf(accepted.id)
    t.match(row, {
      status: 'success',
      model: 'film',
      protocol: 'videos',
      unit_type: 'video',
      unit_count: '4',
      cost: '10',
      estimate: '12.5',
      attempts_count: null,
      request_id: accepted.requestId,
      task_id: accepted.id,
      error_code: null,
    })
    t.equal(row.result_urls.length, 1)
    t.match(row.result_urls[0], new RegExp(`^http://files.test/files/${key}\\?expires=`))
    t.ok(Date.parse(row.result_expires_at!) > Date.now())
    t.equal(upstream.submits.get(accepted.id), 1)
  })

  t.test('a picture in the answer itself is stored before anything says so', async (t) => {
    const account = await tasks.newAccount()
    const task = await tasks.submit(tasks.order(account, 'picture', 'a cat'))
    t.match(task, { state: 'succeeded', cost: ONE_CREDIT * 4n })
    const key = `images/${task.id}-1.png`
    t.equal(task.result?.files[0]?.key, key)
    t.ok((await storage.read(key, 10_000)).equals(PICTURE))
    t.match(await callOf(task.id), {
      status: 'success',
      unit_count: '1',
      unit_type: 'image',
      attempts_count: 1,
    })
    t.same(await database.tasks.findExpiredObjects(Date.now() + 25 * 3_600_000, 10), [key])
  })

  t.test('pictures that nobody asked for are neither delivered nor charged', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('a crowd', { pictures: 500 })
    const task = await tasks.submit(tasks.order(account, 'picture', 'a crowd'))
    t.match(task, { state: 'succeeded', cost: task.hold })
    t.equal(task.result?.files.length, 1)
    t.match(await callOf(task.id), { status: 'success', unit_count: '1' })
    await t.rejects(storage.read(`images/${task.id}-2.png`, 10_000), /no object/)
  })

  t.test(
    'a film that is longer than was asked for is charged as reported, and held against its channel',
    async (t) => {
      const account = await tasks.newAccount()
      upstream.plans.set('endless', { seconds: 60 })
      const before = beyond
      const { id, hold } = await tasks.submit(tasks.order(account, 'film', 'endless'))
      const { cost, result } = await tasks.reached(id, 'succeeded')
      t.match(
        { hold, cost },
        { hold: (ONE_CREDIT * 25n) / 2n, cost: ONE_CREDIT * 150n },
        '60 seconds where 5 were asked for',
      )
      const note = '60 seconds, where 5 were asked for'
      t.match(result, { seconds: 60, files: [{ seconds: 60 }], beyond: [note] })
      t.equal(beyond, before + 1, 'counted')
      t.match(
        health.listReports().find(({ channel }) => channel === 'first'),
        { last_error: { code: 'beyond_order' } },
      )
      t.match((await database.calls.find(id)).detail ?? '', new RegExp(`beyond_order.*${note}`))
    },
  )

  t.test('what an upstream refuses is the client’s to hear, and costs nothing', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('bad', { submit: 422 })
    const order = tasks.order(account, 'film', 'bad')
    const error = await tasks.submit(order).catch((reason: unknown) => reason)
    t.ok(error instanceof UpstreamRefusal)
    t.match(error, { status: 422, message: 'no, says the upstream' })
    t.match(await tasks.walletOf(account), UNTOUCHED)
    const { call, entries } = await database.calls.find(order.caller.request.requestId)
    t.match(call, {
      status: 'rejected',
      error_message: 'no, says the upstream',
      cost: '0',
      attempts_count: 1,
    })
    t.same(
      entries.map(({ kind }) => kind),
      ['hold', 'release'],
    )
    const listed = { accountId: account.account.id, kind: 'video', states: null, limit: 10 } as const
    t.same((await database.tasks.list(listed)).tasks, [])
  })

  t.test('what an upstream says of the key of a channel reaches its client', async (t) => {
    const account = await tasks.newAccount()
    for (const [submit, attempts_count, code] of [
      [401, 1, 'invalid_api_key'],
      // Another channel may have credit left.
      [402, 2, 'upstream_error'],
      [403, 1, 'permission_denied'],
    ] as const) {
      upstream.plans.set('no access', { submit })
      const order = tasks.order(account, 'film', 'no access')
      const error = await tasks.submit(order).catch((reason: unknown) => reason)
      t.match(error, { status: submit, code, message: 'no, says the upstream' })
      const { call } = await database.calls.find(order.caller.request.requestId)
      t.match(call, { status: 'error', error_code: code, cost: '0', attempts_count })
    }
  })

  t.test('a channel that is not there, or says that it cannot, is followed by the next', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('busy', { submit: 503 })
    const error = await tasks.submit(tasks.order(account, 'film', 'busy')).catch((reason: unknown) => reason)
    t.match(error, { status: 503 })
    const [, last] = upstream.paths.slice(-2)
    t.match(last, /^\/second\//, 'both were asked')
    t.ok((await database.audits.verifyWallets()).ok)
  })

  t.test("an upstream's refusal says when to try again, wherever the client waits for it", async (t) => {
    const account = await tasks.newAccount()
    const http = 'Wed, 21 Oct 2026 07:28:00 GMT'
    for (const [model, submit, retryAfter] of [
      ['film', 429, '17'],
      ['film', 503, http],
      ['reel', 429, '30'],
      ['picture', 429, '5'],
      ['picture', 503, '60'],
    ] as const) {
      upstream.plans.set('limited', { submit, retryAfter })
      const error = await tasks
        .submit(tasks.order(account, model, 'limited'))
        .catch((reason: unknown) => reason)
      t.match(error, { status: submit, headers: [['retry-after', retryAfter]] }, `${model} ${submit}`)
    }
    const order = tasks.order(account, 'film', 'limited')
    await tasks.submit(order).catch(() => undefined)
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(call, { attempts: { length: 2 } })
    t.notMatch(JSON.stringify(call), 'retry_after', 'the row says nothing of it')
    upstream.plans.set('limited', { submit: 429, retryAfter: '9'.repeat(100) })
    const error = await tasks
      .submit(tasks.order(account, 'reel', 'limited'))
      .catch((reason: unknown) => reason)
    t.match(error, { status: 429, headers: { length: 0 } }, 'what is no time is left out')
  })

  t.test('an upstream that fails, lets lapse, or does not know its own state', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('fails', { states: ['running', 'failed'] })
    upstream.plans.set('lapses', { states: ['expired'] })
    const failing = await tasks.submit(tasks.order(account, 'film', 'fails'))
    const lapsing = await tasks.submit(tasks.order(account, 'film', 'lapses'))
    t.match(await tasks.reached(failing.id, 'failed'), { errorCode: 'content_policy_violation', cost: 0n })
    await tasks.reached(lapsing.id, 'expired')
    upstream.plans.set('no key', { states: ['running', 'unauthorized'] })
    const unknown = await tasks.submit(tasks.order(account, 'film', 'no key'))
    const ofKey = { errorCode: 'unauthorized', errorMessage: 'not fit to be shown' }
    t.match(await tasks.reached(unknown.id, 'failed'), ofKey)
    t.match(await callOf(failing.id), {
      status: 'error',
      error_code: 'content_policy_violation',
      unit_count: null,
    })
    t.match(await callOf(lapsing.id), { status: 'error', error_code: 'task_expired', cost: '0' })
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })

  t.test('a file that cannot be copied keeps the link of the upstream', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('gone', { states: ['succeeded'], lostFiles: true })
    const task = await tasks.submit(tasks.order(account, 'film', 'gone'))
    const ended = await tasks.reached(task.id, 'succeeded')
    t.match(ended.result?.files[0], { key: null, upstream_url: /\/file\/up-/ })
    t.match((await callOf(task.id)).result_urls, [/\/file\/up-/])
  })

  t.test('without enough money nothing is sent', async (t) => {
    const account = await tasks.newAccount(1n)
    const submits = upstream.submits.size
    await t.rejects(tasks.submit(tasks.order(account, 'film', 'poor')), { code: 'quota_exceeded' })
    t.equal(upstream.submits.size, submits)
    t.match(await tasks.walletOf(account), { balance: ONE_CREDIT, held: 0n })
  })

  t.test('the books agree at the end', async (t) => {
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })
})

t.test('links to results reach the call log', async (t) => {
  const bench = await CopyBench.open(t)

  t.test('a task’s id and links are in the call log as settled, whatever characters they have', async (t) => {
    const { database, callLog, account } = bench
    const expires = 1_760_600_000_123
    const urls = ['https://files.test/a.png?x=1&y=%20', "https://files.test/it's\\here\t[1],2"]
    const one = settlement(account, {
      task_id: 'vid_1',
      result_urls: urls,
      result_expires_at: expires,
      unit_count: '4',
      unit_type: 'video',
    })
    const other = settlement(account, { task_id: 'vid_2', result_urls: ['https://files.test/for-ever'] })
    const call = settlement(account)
    await database.bookings.book([one, other, call])
    const copier = await bench.newCopier(t)
    await bench.untilCopied()
    await copier.stop()
    const found = async (requestId: string) => {
      const { call: row } = await database.calls.find(requestId)
      return {
        row: row!,
        logged: (await callLog.findCall({ accountId: account, keyId: null, id: row!.id }))!,
      }
    }
    const first = await found(one.request_id)
    t.same(first.row.result_urls, urls)
    t.match(first.row, { task_id: 'vid_1', result_expires_at: new Date(expires).toISOString() })
    t.match(first.logged, {
      task_id: 'vid_1',
      result_urls: [urls[0], 'https://files.test/it%27s%5Chere\t[1],2'],
      result_expires_at: new Date(expires).toISOString(),
    })
    t.match((await found(other.request_id)).logged, {
      task_id: 'vid_2',
      result_urls: ['https://files.test/for-ever'],
      result_expires_at: null,
    })
    t.match((await found(call.request_id)).logged, {
      task_id: null,
      result_urls: { length: 0 },
      result_expires_at: null,
    })
  })
})

t.test('work that comes with the answer', async (t) => {
  // Images, speech and songs of an upstream that answers with them: stored, charged once, and never asked for twice. The
  // client of a song, which takes minutes, does not wait.
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
  const sent = openMediaCalls(client, storage, authorizerOf)
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
      const others = MEDIA_PROTOCOLS.filter((protocol) => findMediaAdapter(protocol)!.follow === null)
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
      const deps = { findAdapter: findMediaAdapter, catalog: () => catalog, calls }
      for (let count = 0; count < 2; count++) tasks.worker(t, deps)
      /** Returns the task once it has ended, or the error that its client gets. */
      const ordered = async (account: TestAccount, prompt: string) => {
        const model = catalog.resolve(MODEL)!
        const job = mediaJob.parse(work.job(prompt))
        const price = findMediaPrice(model.entry, null, Date.now())!
        const routes = catalog.routes(model, protocol)
        const more: Partial<TaskOrder> = {
          model,
          job,
          price,
          hold: computeHold(price, job),
          routes,
          ...work.order,
        }
        // The client of a film does not wait either.
        const isAwaited = protocol !== 'minimax-music'
        const order = tasks.order(account, isAwaited ? 'picture' : 'film', prompt, more)
        try {
          const task = await tasks.submit(order, { findAdapter: findMediaAdapter })
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
})
