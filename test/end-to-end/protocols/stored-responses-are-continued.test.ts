/** Responses that an upstream keeps: a later call goes on with them, at the channel that has them. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { post, rowOf, traceOf, upstreamRequest } from '../support.ts'
import { configOf, simulated } from './support.ts'

const ONE = 'sim-one@tokens=8'
const TWO = 'sim-two@tokens=8'
/** Enough that a call by luck does not go to the right one each time. */
const TURNS = 8
const KEEPING = { keeps_responses_days: 30 }
const CONFIG = configOf(
  { kept: {}, 'kept-too': {}, forgotten: {}, elsewhere: {}, unserved: { fallbacks: ['kept'] } },
  [
    simulated('responses', { kept: ONE, 'kept-too': ONE }, { ...KEEPING, id: 'keeping-first' }),
    simulated('responses', { kept: TWO, elsewhere: TWO }, { ...KEEPING, id: 'keeping-second' }),
    simulated('responses', { forgotten: ONE }, { id: 'forgetting' }),
  ],
)
const PATH = '/v1/responses'
const LONG = 'a long story '.repeat(400)

interface Answered {
  readonly id: string
  readonly previous_response_id: string | null
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number }
}

const bodyOf = (model: string, more: object = {}) => ({
  model,
  input: [{ role: 'user', content: 'hi' }],
  ...more,
})

t.test('stored responses', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key } = await service.newKey('1000000')
  const other = await service.newKey('1000')
  const ask = (body: object, as = key) => post(service, as, PATH, body)
  const made = async (body: object): Promise<Answered> => {
    const response = await ask(body)
    t.equal(response.status, 200)
    return (await response.json()) as Answered
  }
  const read = (id: string, { as = key, method = 'GET', below = '' } = {}) =>
    fetch(`${service.baseUrl}${PATH}/${id}${below}`, { method, headers: { authorization: `Bearer ${as}` } })

  await t.test('a call goes on at the channel that keeps the response', async (t) => {
    const begun = await ask(bodyOf('kept', { input: [{ role: 'user', content: LONG }] }))
    const first = (await begun.json()) as Answered
    const modelOf = async (requestId: string) =>
      JSON.parse((await upstreamRequest(service, requestId)).body).model as string
    const model = await modelOf(traceOf(begun))
    for (let turn = 0; turn < TURNS; turn++) {
      const response = await ask(bodyOf('kept', { previous_response_id: first.id }))
      const next = (await response.json()) as Answered
      t.equal(next.previous_response_id, first.id)
      t.ok(next.usage.input_tokens > first.usage.input_tokens)
      t.equal(await modelOf(traceOf(response)), model)
      const row = await rowOf(service, key, traceOf(response))
      t.equal(row.input_tokens, next.usage.input_tokens)
    }
  })

  await t.test('a streamed response is kept too, and can be continued at once', async (t) => {
    const streamed = await ask(bodyOf('kept', { stream: true }))
    const text = await streamed.text()
    const [, id = ''] = /"response":\{"id":"(resp_[^"]+)"/.exec(text) ?? []
    const next = await made(bodyOf('kept', { previous_response_id: id }))
    t.equal(next.previous_response_id, id)
  })

  await t.test('items are named by their ids at the channel that keeps them', async (t) => {
    const naming = (id: string, model = 'kept') =>
      bodyOf(model, {
        input: [
          { role: 'user', content: 'hi' },
          { type: 'item_reference', id },
          { role: 'user', content: 'go on' },
        ],
      })
    for (const stream of [false, true]) {
      const begun = await ask(bodyOf('kept', { stream, metadata: { stream: String(stream) } }))
      const [id = ''] = /msg_\w+/.exec(await begun.text()) ?? []
      const modelOf = async (response: Response) =>
        JSON.parse((await upstreamRequest(service, traceOf(response))).body).model as string
      const model = await modelOf(begun)
      for (let turn = 0; turn < TURNS; turn++) {
        const next = await ask(naming(id))
        t.equal(next.status, 200, await next.text())
        t.equal(await modelOf(next), model)
      }
      t.equal((await ask(naming(id), other.key)).status, 404)
      t.equal((await read(id)).status, 404, 'it is no response')
    }
    const unknown = await ask(naming('msg_unknown'))
    t.equal(unknown.status, 404)
    t.match(await unknown.json(), { error: { message: /store: false/ } })
    const forgotten = await ask(naming('msg_unknown', 'forgotten'))
    t.equal(forgotten.status, 400)
    t.match(await forgotten.json(), { error: { code: 'invalid_request', message: /store: false/ } })
  })

  await t.test('the estimate counts what is read again', async (t) => {
    const poor = await service.newKey('2000')
    const limit = { max_output_tokens: 16 }
    const begun = await ask(bodyOf('kept', { input: [{ role: 'user', content: LONG }], ...limit }), poor.key)
    t.equal(begun.status, 200)
    const { id, usage } = (await begun.json()) as Answered
    t.ok(usage.input_tokens > 1_000 && usage.input_tokens < 1_500, `${usage.input_tokens}`)
    t.equal((await ask(bodyOf('kept', { previous_response_id: id, ...limit }), poor.key)).status, 402)
    t.equal((await ask(bodyOf('kept', limit), poor.key)).status, 200)
  })

  await t.test('it is read, its input is listed, and it is deleted', async (t) => {
    const { id } = await made(bodyOf('kept'))
    const shown = await read(id)
    t.equal(shown.status, 200)
    t.match(await shown.json(), { id, object: 'response', status: 'completed' })
    t.match(await (await read(id, { below: '/input_items' })).json(), {
      object: 'list',
      data: [{ type: 'message', role: 'user', content: 'hi' }],
    })
    t.match(await (await read(id, { method: 'DELETE' })).json(), { id, deleted: true })
    t.equal((await read(id)).status, 404)
    const gone = await ask(bodyOf('kept', { previous_response_id: id }))
    t.equal(gone.status, 404)
  })

  await t.test('to another account it is not there', async (t) => {
    const { id } = await made(bodyOf('kept'))
    for (const response of [
      await read(id, { as: other.key }),
      await read(id, { as: other.key, method: 'DELETE' }),
      await read(id, { as: other.key, below: '/input_items' }),
      await ask(bodyOf('kept', { previous_response_id: id }), other.key),
    ]) {
      t.equal(response.status, 404)
      t.match(await response.json(), { error: { code: 'not_found' } })
    }
    t.equal((await read(id)).status, 200)
    t.equal((await read('resp_unknown')).status, 404)
    t.equal((await read('%E0%A4%A')).status, 400)
    t.equal((await read('resp_%00')).status, 404)
    t.equal((await ask(bodyOf('kept', { previous_response_id: 'resp_\0' }))).status, 404)
    t.equal((await fetch(`${service.baseUrl}${PATH}/${id}`)).status, 401)
  })

  await t.test('what is not to be stored is not', async (t) => {
    // The simulated provider answers the same request with the same id.
    const { id } = await made({ model: 'kept', input: 'a secret', store: false })
    t.equal((await read(id)).status, 404)
    t.equal((await ask(bodyOf('kept', { previous_response_id: id }))).status, 404)
  })

  await t.test('where no channel can have it, the call is refused with the reason', async (t) => {
    const { id } = await made(bodyOf('forgotten'))
    const refused = await ask(bodyOf('forgotten', { previous_response_id: id }))
    t.equal(refused.status, 400)
    t.match(await refused.json(), {
      error: {
        code: 'invalid_request',
        message:
          "previous_response_id: no channel of the model 'forgotten' keeps responses; send the full history in input.",
      },
    })
    const kept = await made(bodyOf('kept-too'))
    const elsewhere = await ask(bodyOf('elsewhere', { previous_response_id: kept.id }))
    t.equal(elsewhere.status, 400)
    t.match(await elsewhere.json(), { error: { message: /does not serve the model 'elsewhere' now/ } })
    for (const wrong of [7, '', 'x'.repeat(201)])
      t.equal((await ask(bodyOf('kept', { previous_response_id: wrong }))).status, 400)
  })

  await t.test('no fallback goes on with it, nor answers in the background', async (t) => {
    t.equal((await ask(bodyOf('unserved'))).headers.get('x-served-model'), 'kept')
    const { id } = await made(bodyOf('kept'))
    for (const more of [{ previous_response_id: id }, { background: true }]) {
      const refused = await ask(bodyOf('unserved', more))
      t.equal(refused.status, 400)
      t.match(await refused.json(), {
        error: { code: 'invalid_request', message: /no channel of the model 'unserved' keeps responses/ },
      })
      const row = await rowOf(service, key, traceOf(refused))
      t.match(row, { status: 'rejected', model: 'unserved', cost: '0' })
    }
  })

  await t.test('a stored response is read whole', async (t) => {
    const { id } = await made(bodyOf('kept'))
    const streamed = await fetch(`${service.baseUrl}${PATH}/${id}?stream=true`, {
      headers: { authorization: `Bearer ${key}` },
    })
    t.equal(streamed.status, 400)
    const included = await fetch(`${service.baseUrl}${PATH}/${id}?include[]=x&other=1`, {
      headers: { authorization: `Bearer ${key}` },
    })
    t.equal(included.status, 200)
  })
})
