/**
 * An image request that is repeated is one job, its answer is replayed to keys that may call its model, and a failure
 * costs nothing. See docs/failure-modes.md, "Money", rows 20, 28 and 29.
 */
import t, { type Test } from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, type LentService, until } from '../../support/service.ts'
import { GENERATIONS, postForm, withQueuedImages } from '../media/image-support.ts'
import {
  type Answer,
  checkEntries,
  checkWallet,
  clientOf,
  type MediaClient,
  newClient,
} from '../media/support.ts'
import { balanceOf, post, rowOf, say, type UpstreamCall, upstreamCalls } from '../support.ts'

const CONFIG = `images: { keep_alive_after_seconds: 0.2 }\n${withQueuedImages()}`
const MODELS = ['demo-image', 'queued-image'] as const
const PRICE_OF = { 'demo-image': '12.5', 'queued-image': '7' } as const
const UPSTREAM_OF = { 'demo-image': 'sim-image', 'queued-image': 'sim-paint' } as const
type ModelName = (typeof MODELS)[number]

const NEVER_BEGINS = 'Hello [simulate: ttft=60000]'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Sends a request whose client leaves once the upstream has it. */
async function cutOff(
  service: LentService,
  client: Awaited<ReturnType<typeof newClient>>,
  body: { readonly model: ModelName; readonly prompt: string },
  intent: Readonly<Record<string, string>>,
): Promise<void> {
  const before = await jobs(service, body.model)
  const cut = new AbortController()
  const lost = post(service, client.key, GENERATIONS, body, intent, cut.signal).catch(() => null)
  await until('the upstream has it', async () => (await jobs(service, body.model)) > before)
  cut.abort()
  await lost
}

t.test('images', async (t) => {
  const service = await borrowService(t, CONFIG)

  for (const model of MODELS)
    await t.test(`20: ${model}: a cut connection and its retries are one job and one charge`, async (t) => {
      const client = await newClient(service, '1000')
      const body = { model, prompt: 'A bridge [simulate: delay=900]' }
      const intent = { 'idempotency-key': 'bridge' }
      const before = await jobs(service, body.model)
      await cutOff(service, client, body, intent)
      const answer = await retried(client, body, intent)
      t.equal(answer.headers.get('idempotency-replayed'), null, 'nobody had the answer before')
      const again = await client.post(GENERATIONS, body, intent)
      t.equal(again.headers.get('idempotency-replayed'), 'true')
      t.strictSame(again.body, answer.body)
      t.equal(again.trace, answer.trace)
      t.match(await rowOf(service, client.key, answer.trace), { status: 'success' }, 'the row of the first')
      t.equal((await jobs(service, model)) - before, 1, 'one job')
      await checkOneCharge(t, client, model)
    })

  await t.test('20: a task whose id was lost is the same task to a repeated request', async (t) => {
    const client = await newClient(service, '1000')
    const body = { model: 'queued-image', prompt: 'A tower [simulate: delay=300]', async: true }
    const intent = { 'idempotency-key': 'tower' }
    const before = await jobs(service, 'queued-image')
    const answers = await Promise.all(Array.from({ length: 8 }, () => retried(client, body, intent)))
    t.equal(new Set(answers.map((answer) => answer.body.id)).size, 1)
    await client.ended(`${GENERATIONS}/${answers[0]!.body.id}`)
    t.equal((await jobs(service, 'queued-image')) - before, 1, 'one job')
    await checkOneCharge(t, client, 'queued-image')
  })

  /** One task and one row that costs anything. */
  async function checkOneCharge(t: Test, client: MediaClient, model: ModelName) {
    const charged = PRICE_OF[model]
    const { data } = (await client.get(GENERATIONS)).body as { data: { id: string }[] }
    t.equal(data.length, 1, 'one task')
    await checkEntries(t, service, client, data[0]!.id, { held: charged, charged })
    await checkWallet(t, service, client, '1000', [charged])
    const rows = await service.logs(client.key, (found) => found.some(({ status }) => status === 'success'))
    t.strictSame(
      rows.filter(({ cost }) => cost !== '0').map(({ task_id }) => task_id),
      [data[0]!.id],
    )
  }

  await t.test('20: what its own hold leaves does not refuse a repeated request', async (t) => {
    for (const credits of ['12.5', '20']) {
      const client = await newClient(service, credits)
      const body = { model: 'demo-image', prompt: 'A barn [simulate: delay=900]' } as const
      const intent = { 'idempotency-key': 'barn' }
      const before = await jobs(service, body.model)
      await cutOff(service, client, body, intent)
      t.match(await client.post(GENERATIONS, body, { 'idempotency-key': 'other' }), { status: 402 })
      t.match((await retried(client, body, intent)).body, { data: { length: 1 } })
      t.equal((await jobs(service, 'demo-image')) - before, 1, 'one job')
      await checkWallet(t, service, client, credits, [PRICE_OF['demo-image']])
      t.match(await client.post(GENERATIONS, body, { 'idempotency-key': 'other' }), { status: 402 })
    }
  })

  await t.test('what calls in flight may cost is not free for an image', async (t) => {
    const client = await newClient(service, '14')
    const body = { model: 'demo-image', prompt: 'A field' }
    const open = new AbortController()
    const request = { model: 'sonata-large', max_tokens: 32_768, stream: true, messages: say(NEVER_BEGINS) }
    const streamed = service.chat(client.key, request, { signal: open.signal }).catch(() => null)
    const isOpen = ({ model, state }: UpstreamCall) =>
      model === 'sim-sonata-large@talk' && state === 'running'
    await until('the stream is in flight', async () => (await upstreamCalls(service)).some(isOpen))
    const refused = await client.post(GENERATIONS, body)
    t.match(refused, { status: 402, body: { error: { code: 'quota_exceeded' } } })
    open.abort()
    await streamed
    await until(
      'the estimate is free again',
      async () => (await client.post(GENERATIONS, body)).status === 200,
    )
  })

  await t.test('28: images are shown again to keys that may call their model alone', async (t) => {
    const client = await newClient(service, '1000')
    const { accountId } = client
    const keyFor = async (allowedModels: readonly string[] | null) => {
      const { raw } = await service.database.keys.create({ name: 'narrow', accountId, allowedModels })
      return clientOf(service, { accountId, key: raw })
    }
    const [none, other, both] = [await keyFor([]), await keyFor(['queued-image']), await keyFor([...MODELS])]
    const intent = { 'idempotency-key': 'bridge' }
    const asJson = (of: MediaClient) => of.post(GENERATIONS, { model: 'demo-image', prompt: 'x' }, intent)
    const asForm = (of: MediaClient) =>
      postForm(
        service,
        of,
        [
          ['model', 'demo-image'],
          ['prompt', 'x'],
          ['image', PNG],
        ],
        { 'idempotency-key': 'form' },
      )
    for (const ask of [asJson, asForm]) {
      const first = await ask(client)
      t.equal(first.status, 200)
      for (const narrow of [none, other])
        t.match(await ask(narrow), { status: 403, body: { error: { code: 'model_not_allowed' } } })
      const replayed = await ask(both)
      t.equal(replayed.headers.get('idempotency-replayed'), 'true')
      t.strictSame(replayed.body, first.body)
    }
  })

  for (const model of MODELS)
    await t.test(`29: ${model}: a kept-alive image that fails is no success`, async (t) => {
      const client = await newClient(service, '1000')
      const failing = { model, prompt: 'No [simulate: delay=700,outcome=moderation]' }
      const intent = { 'idempotency-key': 'no' }
      const before = await jobs(service, model)
      for (const attempt of [1, 2]) {
        const { text, response } = await spoken(client, failing, intent)
        t.equal(response.status, 200, 'the status had gone out')
        t.equal(response.headers.get('idempotency-replayed'), null)
        t.match(text, /^ +\{/, 'kept alive')
        t.match(JSON.parse(text), { error: { type: 'invalid_request_error', code: 'invalid_request' } })
        t.equal((await jobs(service, model)) - before, attempt, 'carried out, not replayed')
        const row = await rowOf(service, client.key, response.headers.get('x-gateway-trace')!)
        t.match(row, { cost: '0', unit_count: null, result_urls: { length: 0 } })
        t.not(row.status, 'success')
      }
      t.match(await balanceOf(service, client.key), { remaining: '1000', used: '0', held: '0' })

      const working = { model, prompt: 'Yes [simulate: delay=700]' }
      const made = await spoken(client, working, { 'idempotency-key': 'yes' })
      t.match(made.text, /^ +\{/)
      const again = await spoken(client, working, { 'idempotency-key': 'yes' })
      t.equal(again.response.headers.get('idempotency-replayed'), 'true')
      t.equal(again.text, made.text.trimStart())
      await checkWallet(t, service, client, '1000', [PRICE_OF[model]])
    })

  /** As it came. */
  async function spoken({ key }: MediaClient, body: object, headers: Readonly<Record<string, string>>) {
    const response = await post(service, key, GENERATIONS, body, headers)
    return { response, text: await response.text() }
  }
})

/** Requests for work that the upstream has had for this model. */
async function jobs({ engines }: LentService, model: ModelName): Promise<number> {
  const response = await fetch(`${engines.simulatorUrl}/simulator/submits?model=${UPSTREAM_OF[model]}`)
  return ((await response.json()) as unknown[]).length
}

/** As an SDK tries again: for as long as the first call is still under way. */
const retried = (client: MediaClient, body: object, headers: Record<string, string>): Promise<Answer> =>
  eventually('the call is answered', async () => {
    const answer = await client.post(GENERATIONS, body, headers)
    if (answer.status === 200) return answer
    const { code } = answer.body.error as { code: string }
    if (code !== 'idempotency_in_flight') throw new Error(`${answer.status} ${code}`)
    return undefined
  })
