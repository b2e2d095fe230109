/**
 * Clients close their connection once they have read the last event of their protocol. However late the upstream closes
 * its own, the call is a success, is charged once, and is replayed under its Idempotency-Key.
 * See docs/failure-modes.md, "Streams", row 80.
 */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { installPython, runPython } from '../../support/python-sdks.ts'
import { CHAT_PROTOCOLS, type ChatProtocol, configOf, PLAIN, simulated, WAYS } from '../protocols/support.ts'
import { balanceOf, rowOf } from '../support.ts'

const LATE_MS = [0, 5, 40, 400]
const CREDIT = 1_000_000
const TEXT = 'The quick brown fox jumps over the lazy dog'
const USAGE = { input: 20, output: 9 } as const
/** Of one call: 1 a prompt token, 2 an output token. */
const COST = USAGE.input + 2 * USAGE.output

/** What only a complete stream of the protocol holds. */
const LAST_EVENT: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'data: [DONE]\n\n',
  messages: '"message_stop"}\n\n',
  responses: '"response.completed"',
  'generate-content': '"finishReason"',
}

const nameModel = (protocol: ChatProtocol, ms: number) => `${protocol}.late.${ms}`
const modelsOf = (protocol: ChatProtocol) => LATE_MS.map((ms) => nameModel(protocol, ms))
const lateChannel = (protocol: ChatProtocol) =>
  simulated(
    protocol,
    Object.fromEntries(
      LATE_MS.map((ms) => [
        nameModel(protocol, ms),
        `sim@text=${encodeURIComponent(TEXT)},prompt_tokens=${USAGE.input},linger=${ms}`,
      ]),
    ),
  )

interface Read {
  readonly text: string
  readonly trace: string | null
  readonly replayed: string | null
  readonly error: string | null
}

/** Sends the request over a socket of its own, and closes that as soon as `last` has come. */
const readUntilLast = (baseUrl: string, head: readonly string[], body: string, last: string): Promise<Read> =>
  new Promise((resolve) => {
    let text = ''
    const { hostname, port } = new URL(baseUrl)
    const socket = connect({ host: hostname, port: Number(port) })
    const nameOf = (name: string) => new RegExp(`^${name}: (.*)\r$`, 'im').exec(text)?.[1] ?? null
    const end = (error: string | null) => {
      socket.destroy()
      const replayed = nameOf('idempotency-replayed')
      resolve({ text, trace: nameOf('x-gateway-trace'), replayed, error })
    }
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (text.includes(last)) end(null)
    })
    socket.on('error', (error) => end(error.message))
    socket.on('close', () => end('closed before the last event'))
    socket.write(`${[...head, `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n${body}`)
  })

t.test('a stream whose client and upstream close after its last event', async (t) => {
  const models = CHAT_PROTOCOLS.flatMap(modelsOf)
  const channels = CHAT_PROTOCOLS.map(lateChannel)
  const service = await borrowService(t, configOf(Object.fromEntries(models.map((id) => [id, {}])), channels))

  /** Every call has been made twice under one key. */
  const checkBooks = async (t: Test, key: string, calls: readonly (readonly [string, Read, Read])[]) => {
    for (const [name, first, second] of calls) {
      t.equal(first.error, null, name)
      t.equal(second.error, null, name)
      t.equal(first.replayed, null, name)
      t.equal(second.replayed, 'true', name)
      t.equal(second.trace, first.trace, name)
      t.match(await rowOf(service, key, first.trace ?? 'none'), {
        status: 'success',
        error_code: null,
        input_tokens: USAGE.input,
        output_tokens: USAGE.output,
      })
    }
    t.equal((await balanceOf(service, key)).remaining, String(CREDIT - calls.length * COST))
  }

  await t.test('over a socket', async (t) => {
    const { key } = await service.newKey(String(CREDIT))
    const calls: (readonly [string, Read, Read])[] = []
    for (const [client, upstream] of WAYS)
      for (const model of modelsOf(upstream)) {
        const { path, body } = PLAIN[client](model, true)
        const head = [
          `POST ${path} HTTP/1.1`,
          'host: gateway',
          `authorization: Bearer ${key}`,
          'content-type: application/json',
          `idempotency-key: ${client}-${model}`,
        ]
        const read = () => readUntilLast(service.baseUrl, head, JSON.stringify(body), LAST_EVENT[client])
        const first = await read()
        // No chunk of generate-content says that it is the last: the answer is kept when its client leaves.
        const second = await eventually('the answer is kept', async () => {
          const again = await read()
          const mayWait = client === 'generate-content' && again.text.includes(' 409 ')
          return mayWait ? undefined : again
        })
        calls.push([`${client} to ${model}`, first, second])
      }
    await checkBooks(t, key, calls)
  })

  await t.test('by the Python SDKs', async (t) => {
    const sdks = await installPython()
    if ('reason' in sdks) {
      t.comment(`skipped: ${sdks.reason}`)
      return
    }
    const { key } = await service.newKey(String(CREDIT))
    const cases = WAYS.flatMap(([client, upstream]) =>
      modelsOf(upstream).map((model) => ({ client, model, intent: `${client}-${model}` })),
    ).flatMap((one) => [one, one])
    const script = new URL('../sdk/read-streams.py', import.meta.url)
    const reads = (await runPython(sdks.folder, script, { baseUrl: service.baseUrl, key, cases })) as Read[]
    for (const { text, error } of reads) t.equal(text, TEXT, error ?? 'whole')
    const calls = cases.flatMap(({ client, model }, at) =>
      at % 2 === 0 ? [[`${client} to ${model}`, reads[at]!, reads[at + 1]!] as const] : [],
    )
    await checkBooks(t, key, calls)
  })
})
