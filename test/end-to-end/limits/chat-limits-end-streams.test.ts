/** A stream that a limit of time ends closes as one that its upstream breaks off: no byte of ours, one row, one charge. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { CHAT_PROTOCOLS, configOf, PLAIN, postUntilBroken, simulated, WAYS } from '../protocols/support.ts'
import { rowOf, traceOf, upstreamCalls } from '../support.ts'

/** Even a slow machine brings the beginning of a stream within them. */
const CHAT_SECONDS = 8
const IDLE_SECONDS = 4
/** Far more than the words of `CHAT_SECONDS`. */
const TOKENS = 4_000
/** Begins, and then says nothing more; or goes on too long; or says nothing at all. */
const SAYS = {
  stalls: `tokens=${TOKENS},fault=hang:4000`,
  lasts: `tokens=${TOKENS},tps=20`,
  silent: 'fault=hang',
}
const LIMITS = { chat_seconds: CHAT_SECONDS, chat_idle_seconds: IDLE_SECONDS }

t.test('a chat call whose time is over', async (t) => {
  const channels = CHAT_PROTOCOLS.map((protocol) =>
    simulated(
      protocol,
      Object.fromEntries(Object.entries(SAYS).map(([how, says]) => [`${protocol}.${how}`, `sim@${says}`])),
      { timeout_seconds: 3600 },
    ),
  )
  const models = channels.flatMap((channel) => Object.keys(channel.models))
  const plans = Object.fromEntries(models.map((id) => [id, {}]))
  const service = await borrowService(t, configOf(plans, channels, { limits: LIMITS }))
  const { key } = await service.newKey('10000000')

  // All at once: each is waited for.
  const ask = async (client: (typeof WAYS)[number][0], model: string) => {
    const { path, body } = PLAIN[client](model, true)
    return postUntilBroken(service, key, path, body)
  }
  const begun = WAYS.flatMap(([client, upstream]) =>
    Object.keys(SAYS).map((how) => ({
      how,
      name: `${client} to ${upstream}, ${how}`,
      response: ask(client, `${upstream}.${how}`),
    })),
  )
  for (const { how, name, response: pending } of begun) {
    const response = await pending
    const row = await rowOf(service, key, traceOf(response))
    if (how === 'silent') {
      t.equal(response.status, 504, name)
      t.match(row, { status: 'interrupted', error_code: 'upstream_timeout', cost: '0' }, name)
      continue
    }
    t.equal(response.status, 200, name)
    t.match(row, { status: 'interrupted', error_code: 'upstream_timeout', attempts_count: 1 }, name)
    t.ok(row.output_tokens > 0 && row.output_tokens < TOKENS, `${name}: ${row.output_tokens} tokens`)
    t.equal(row.cost, String(row.input_tokens + 2 * row.output_tokens), name)
    const [call] = await upstreamCalls(service, traceOf(response))
    t.equal(call?.state, 'client_closed', `${name}: the upstream was let go`)
  }
  t.equal((await service.logs(key, (rows) => rows.length >= begun.length)).length, begun.length)
})
