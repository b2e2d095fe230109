/**
 * Files of a form that is refused leave the disk, wherever the refusal comes from; an account has a quota of them, and
 * they tell one intent from another.
 */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EMPTY, lastValueFrom, NEVER, type Observable, of, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import { editImages, type ImageStore } from '../../../pipelines/media/images/images.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import type { MediaOrders } from '../../../pipelines/media/media-call.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { folderStore } from '../../src/storage/support.ts'
import { until } from '../../support/eventually.ts'
import { knownKey, walletView } from '../../support/known-key.ts'

const KEY = `sk-tollgate-${'a'.repeat(64)}`
const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
const GOOD: readonly Part[] = [
  ['model', 'sketch'],
  ['prompt', 'bluer'],
  ['async', 'true'],
]

const catalog = createCatalog(
  configFile.parse({
    models: [
      { id: 'sketch', endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '4' } },
    ],
    channels: [
      {
        id: 'open',
        protocol: 'openai-images',
        base_url: 'http://upstream.test/v1',
        api_key: 'k',
        models: { sketch: 'sketch' },
      },
    ],
  }),
)

type Part = readonly [name: string, value: string | Buffer]

function requestOf(parts: readonly Part[], requestId: string): GatewayRequest {
  const form: GatewayRequest['form'] = {
    async read(_, takeFile) {
      const fields: [string, string][] = []
      for (const [field, value] of parts) {
        if (typeof value === 'string') {
          fields.push([field, value])
          continue
        }
        const content = (async function* () {
          yield value
        })()
        await takeFile({ field, name: 'a.png', mediaType: 'image/png', content }, fields)
      }
      return fields
    },
  }
  return {
    requestId,
    method: 'POST',
    path: '/v1/images/edits',
    query: '',
    header: (name) => (name === 'x-api-key' ? KEY : ''),
    hasHeader: () => false,
    body: Buffer.alloc(0),
    form,
    submittedAt: Date.now(),
    startedAt: 0,
  }
}

async function openEndpoint(t: Test, submit: (order: TaskOrder) => Observable<Task>, maxBytes?: number) {
  const { store, folder } = await folderStore(t)
  const refused: Settlement[] = []
  let stores = 0
  const known = knownKey({ view: walletView('10') })
  const uploads = new Uploads({ files: store, ...(maxBytes !== undefined && { maxBytes }) })
  const orders = {
    access: {
      credentials: { peek: () => known },
      catalog: () => catalog,
      onRefused: (settlement: Settlement) => refused.push(settlement),
    },
    idempotency: {},
    uploads,
    createTask: (order: TaskOrder) => lastValueFrom(submit(order)),
    awaitTask: (_: TaskOrder, task: Task) => of(task),
  } as unknown as MediaOrders
  const images = {
    files: {
      put: (...put: Parameters<typeof store.put>) => {
        stores++
        return store.put(...put)
      },
    },
    objects: { recordObjects: async () => undefined },
  } as unknown as ImageStore
  let number = 0
  const send = (parts: readonly Part[]) => editImages(orders, images)(requestOf(parts, `req_${number++}`))
  return {
    refused,
    send,
    stores: () => stores,
    failureOf: (parts: readonly Part[]) =>
      lastValueFrom(send(parts), { defaultValue: null }).then(
        () => t.fail('it was answered'),
        (error: unknown) => error as Failure,
      ),
    left: () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name, parentPath }) => join(parentPath, name)),
  }
}

const taskOf = (order: TaskOrder, requestId = order.caller.request.requestId) =>
  of({ id: 'img_1', requestId, kind: 'image', state: 'queued', model: 'sketch', submittedAt: 0 } as Task)

t.test('a refusal behind the form removes its files', async (t) => {
  const refusals: ReadonlyArray<readonly [string, readonly Part[], RegExp]> = [
    ['a field behind the file', [['image', PNG], ...GOOD, ['n', '99']], /'n'/],
    [
      'no prompt',
      [
        ['image', PNG],
        ['model', 'sketch'],
      ],
      /'prompt'/,
    ],
    ['an unknown model behind the file', [['image', PNG], ...GOOD.slice(1), ['model', 'no-such']], /no-such/],
    ['more than the wallet has', [...GOOD, ['n', '9'], ['image', PNG]], /balance/i],
  ]
  const { left, failureOf, refused } = await openEndpoint(t, () => EMPTY)
  for (const [what, parts, message] of refusals) {
    t.match(await failureOf(parts), { message }, what)
    await until('the files are gone', () => left().length === 0)
  }
  t.equal(refused.length, refusals.length)
})

t.test('what is wrong before the file is said before it is stored', async (t) => {
  const { stores, failureOf } = await openEndpoint(t, () => EMPTY)
  t.match(await failureOf([...GOOD, ['n', '99'], ['image', PNG]]), { message: /'n'/ })
  t.match(
    await failureOf([
      ['model', 'no-such'],
      ['image', PNG],
    ]),
    { code: 'model_not_found' },
  )
  t.equal(stores(), 0)
})

t.test('a task that could not be made leaves none, one that was made keeps them', async (t) => {
  const full: readonly Part[] = [...GOOD, ['image', PNG]]
  const failing = await openEndpoint(t, () => throwError(() => new Failure('quota_exceeded', 'No balance.')))
  t.match(await failing.failureOf(full), { code: 'quota_exceeded' })
  await until('the files are gone', () => failing.left().length === 0)

  const making = await openEndpoint(t, (order) => taskOf(order))
  await lastValueFrom(making.send(full))
  t.equal(making.left().length, 1)

  const replayed = await openEndpoint(t, (order) => taskOf(order, 'req_of_the_first'))
  await lastValueFrom(replayed.send(full))
  await until('the files are gone', () => replayed.left().length === 0)
})

t.test('a client that leaves: files stay where a task may have them, else not', async (t) => {
  let isSubmitted = false
  const { send, left } = await openEndpoint(t, () => {
    isSubmitted = true
    return NEVER
  })
  const sent = send([...GOOD, ['image', PNG]]).subscribe()
  await until('the submit', () => isSubmitted)
  sent.unsubscribe()
  t.equal(left().length, 1)
  send([...GOOD, ['image', PNG]])
    .subscribe()
    .unsubscribe()
  await until('only the first file', () => left().length === 1)
})

t.test('an account has only so much on the way', async (t) => {
  const never = await openEndpoint(t, () => EMPTY, 2 * PNG.length)
  t.match(await never.failureOf([...GOOD, ['image[]', PNG], ['image[]', PNG], ['image[]', PNG]]), {
    code: 'rate_limit_exceeded',
    message: /files that this account is sending exceed/,
  })
  await until('the files are gone', () => never.left().length === 0)
  const uploads = new Uploads({ files: { delete: async () => undefined }, maxBytes: 100 })
  const [one, two] = [uploads.begin('acc_a'), uploads.begin('acc_a')]
  one.count(80)
  t.throws(() => two.count(30), { code: 'rate_limit_exceeded' })
  uploads.begin('acc_b').count(100)
  one.handOver()
  two.count(100)
  await two.end()
  await two.discard()
  uploads.begin('acc_a').count(100)
})
