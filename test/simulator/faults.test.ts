/** Faults, directives and the record of calls. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { CallStats, RequestView } from '../../simulator/calls.ts'
import { FAULT_NAMES } from '../../simulator/directives/faults.ts'
import {
  DIRECTIVE_NAMES,
  DirectiveError,
  mergeDirectives,
  readDirectives,
  splitModelName,
} from '../../simulator/directives/grammar.ts'
import { startSimulator } from '../../simulator/server.ts'
import {
  call,
  callsOf,
  chatBody,
  chatRequest,
  chunksOf,
  dataOf,
  lastCallThat,
  open,
  type RawAnswer,
  simulatorFor,
} from './support.ts'

t.test('faults', async (t) => {
  const { url } = await simulatorFor(t)

  const STREAM = { stream: true }

  /** What a stream without a fault says: the faults below are compared with it. */
  async function wholeStream(url: string): Promise<Buffer> {
    return (await call(url, chatBody('sim', STREAM))).body
  }

  t.test('reset:N gives N bytes of the body and then a TCP reset, wherever that is', async (t) => {
    const whole = await wholeStream(url)
    const positions = Array.from({ length: 100 }, (_, index) => index * 7)
    const resetAt = (bytes: number) => call(url, chatBody(`sim@fault=reset:${bytes}`, STREAM))
    for (const [index, answer] of (await Promise.all(positions.map(resetAt))).entries()) {
      t.equal(answer.status, 200)
      t.same(answer.body, whole.subarray(0, index * 7), `${index * 7} bytes`)
      t.equal(answer.complete, false)
      t.equal(answer.ending, 'reset')
    }
    t.equal((await callsOf(url)).filter((record) => record.state === 'faulted').length, 100)
  })

  t.test('reset:head resets before any byte', async (t) => {
    const answer = await call(url, chatBody('sim@fault=reset:head'))
    t.same(answer.wire, Buffer.alloc(0))
    t.equal(answer.ending, 'reset')
  })

  t.test('truncate:N ends as HTTP wants it, without an end mark', async (t) => {
    const whole = await wholeStream(url)
    for (const bytes of [0, 1, 307, 1000]) {
      const answer = await call(url, chatBody(`sim@fault=truncate:${bytes}`, STREAM))
      t.same(answer.body, whole.subarray(0, bytes))
      t.equal(answer.complete, true)
      t.equal(answer.ending, 'end')
    }
    const inOnePiece = await call(url, chatBody('sim@fault=truncate:50'))
    t.equal(inOnePiece.body.length, 50)
    t.equal(inOnePiece.complete, true)
    t.match(await lastCallThat(url, (record) => record.state !== 'running'), { state: 'faulted' })
  })

  t.test('cut:N closes inside a chunk that was announced', async (t) => {
    const whole = await wholeStream(url)
    const firstEvent = whole.indexOf('\n\n') + 2
    for (const bytes of [0, 1, firstEvent - 1, firstEvent, firstEvent + 1, 1000]) {
      const answer = await call(url, chatBody(`sim@fault=cut:${bytes}`, STREAM))
      t.same(answer.body, whole.subarray(0, bytes), `${bytes} bytes`)
      t.equal(answer.complete, false)
      t.equal(answer.ending, 'end')
    }
    const atTheEnd = await call(url, chatBody(`sim@fault=cut:${whole.length}`, STREAM))
    t.same(atTheEnd.body, whole)
    t.equal(atTheEnd.complete, false)
    const inOnePiece = await call(url, chatBody('sim@fault=cut:50'))
    t.equal(inOnePiece.body.length, 50)
    t.equal(inOnePiece.complete, false)
  })

  t.test('a byte fault beyond the end leaves the answer whole', async (t) => {
    const whole = await wholeStream(url)
    for (const kind of ['reset', 'truncate', 'cut', 'hang']) {
      const answer = await call(url, chatBody(`sim@fault=${kind}:1000000`, STREAM))
      t.same(answer.body, whole, kind)
      t.equal(answer.complete, true, kind)
      t.match((await callsOf(url)).at(-1), { state: 'completed' })
    }
  })

  t.test('status:N answers that status with an error body; 429 says when to come back', async (t) => {
    const answerTo = async (status: number) => {
      const answer = await call(url, chatBody(`sim@fault=status:${status}`, STREAM))
      t.equal(answer.status, status)
      return { ...answer, error: JSON.parse(answer.body.toString()).error as Record<string, unknown> }
    }
    const limited = await answerTo(429)
    t.match(limited.head, /retry-after: 1/)
    t.match(limited.error, { type: 'requests', param: null, code: 'rate_limit_exceeded' })
    for (const status of [500, 502, 503, 599])
      t.match((await answerTo(status)).error, { type: 'server_error' })
    for (const status of [400, 403, 422])
      t.match((await answerTo(status)).error, { type: 'invalid_request_error' })
    t.match((await answerTo(200)).error, { message: String })
    t.notMatch((await answerTo(500)).head, /retry-after/)
  })

  t.test('stream_error sends an error event, first or after N tokens, and no end mark', async (t) => {
    const events = async (fault: string) => {
      const answer = await call(url, chatBody(`sim@tokens=5,fault=${fault}`, STREAM))
      t.equal(answer.status, 200)
      t.equal(answer.complete, true)
      return dataOf(answer.body).map((data) => (data === '[DONE]' ? data : Object.keys(JSON.parse(data))[0]))
    }
    t.same(await events('stream_error'), ['error'])
    t.same(await events('stream_error:2'), ['id', 'id', 'id', 'error'])
    t.same(await events('stream_error:99'), ['id', 'id', 'id', 'id', 'id', 'id', 'id', '[DONE]'])
    const inOnePiece = await call(url, chatBody('sim@fault=stream_error'))
    t.equal(inOnePiece.status, 200)
    t.match(JSON.parse(inOnePiece.body.toString()), { error: { type: 'server_error' } })
  })

  t.test('no_stream_options refuses that field and nothing else', async (t) => {
    const model = 'sim@fault=no_stream_options'
    const refused = await call(url, chatBody(model, { ...STREAM, stream_options: { include_usage: true } }))
    t.equal(refused.status, 400)
    t.match(JSON.parse(refused.body.toString()), {
      error: { type: 'invalid_request_error', param: 'stream_options', message: /stream_options/ },
    })
    t.match((await callsOf(url)).at(-1), { state: 'faulted' })
    const served = await call(url, chatBody(model, STREAM))
    t.equal(dataOf(served.body).at(-1), '[DONE]')
    t.match((await callsOf(url)).at(-1), { state: 'completed' })
  })

  t.test('no_done leaves out the end mark alone', async (t) => {
    const answer = await call(url, chatBody('sim@fault=no_done', STREAM))
    t.equal(answer.complete, true)
    t.equal(dataOf(answer.body).includes('[DONE]'), false)
    t.equal(chunksOf(answer.body).at(-1)?.choices[0]?.finish_reason, 'stop')
  })

  t.test('refuse closes the connection, by the header before the body is read', async (t) => {
    const { url } = await simulatorFor(t)
    const empty = (answer: RawAnswer) => t.same(answer.wire, Buffer.alloc(0))
    empty(await call(url, chatBody('sim@fault=refuse')))
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-simulate: fault=refuse\r\n`
    const socket = open(url, `${head}content-length: 1000000\r\n\r\n`)
    socket.on('error', () => {})
    await once(socket, 'close')
    t.match(await callsOf(url), [
      { state: 'faulted', model: 'sim@fault=refuse' },
      { state: 'faulted', model: null, body_bytes: 0 },
    ])
  })

  t.test('hang never answers, hang:N stops there, and both notice the caller leaving', async (t) => {
    const silent = open(url, chatRequest(chatBody('sim@fault=hang', STREAM)))
    await lastCallThat(url, (record) => record.state === 'running' && record.model !== null)
    silent.destroy()
    await lastCallThat(url, (record) => record.state === 'client_closed')

    const stuck = open(url, chatRequest(chatBody('sim@fault=hang:40', STREAM)))
    let received = ''
    while (!/\r\n\r\n[0-9a-f]+\r\ndata: .{34}/.test(received))
      received += String((await once(stuck, 'data'))[0])
    t.match(await lastCallThat(url, () => true), { state: 'running' })
    stuck.destroy()
    t.match(await lastCallThat(url, (record) => record.state === 'client_closed'), { closed_at: String })
  })

  t.test('times=K strikes the first K requests with exactly these directives', async (t) => {
    const statusOf = async (model: string, headers: Record<string, string> = {}) =>
      (await call(url, chatBody(model), headers)).status
    const twice = 'sim@fault=status:503,times=2'
    t.same([await statusOf(twice), await statusOf(twice), await statusOf(twice)], [503, 503, 200])
    t.equal(await statusOf(`${twice},tag=another`), 503)
    const header = { 'x-simulate': 'fault=refuse,times=1' }
    t.same([await statusOf('sim', header), await statusOf('sim', header)], [0, 200])
    await fetch(`${url}/simulator/calls`, { method: 'DELETE' })
    t.equal(await statusOf(twice), 503, 'clearing the calls begins the count again')
  })
})

t.test('directives', async (t) => {
  t.test('a model name ends where its directives begin', async (t) => {
    t.same(splitModelName('sim-large'), { model: 'sim-large', directives: null })
    t.same(splitModelName('sim-large@ttft=5,tag=a@b'), { model: 'sim-large', directives: 'ttft=5,tag=a@b' })
  })

  t.test('commas and semicolons separate, blanks do not matter, a flag stands alone', async (t) => {
    t.same(readDirectives(' ttft=50 ;tps=100,, reasoning_text; sse=crlf+nospace '), {
      ...{ ttft: 50, tps: 100, reasoning_text: true, sse: ['crlf', 'nospace'] },
    })
    t.same(readDirectives(null), {})
    t.same(readDirectives(undefined), {})
    t.same(readDirectives(''), {})
  })

  t.test('an object says the same', async (t) => {
    t.same(readDirectives({ ttft: 50, tps: '100', reasoning_text: true }), {
      ttft: 50,
      tps: 100,
      reasoning_text: true,
    })
  })

  t.test('a value in a string is percent-encoded, in an object literal', async (t) => {
    t.same(readDirectives('text=a%2C%20b%3B%20%E4%BD%A0'), { text: 'a, b; 你' })
    t.same(readDirectives({ text: 'a%2C, b; 你' }), { text: 'a%2C, b; 你' })
  })

  t.test('every fault is read', async (t) => {
    const faults: [string, unknown][] = [
      ['reset:0', { kind: 'reset', afterBytes: 0 }],
      ['reset:head', { kind: 'reset_head' }],
      ['truncate:12', { kind: 'truncate', afterBytes: 12 }],
      ['cut:12', { kind: 'cut', afterBytes: 12 }],
      ['hang', { kind: 'hang' }],
      ['hang:12', { kind: 'hang_after', afterBytes: 12 }],
      ['status:503', { kind: 'status', status: 503 }],
      ['stream_error', { kind: 'stream_error', afterTokens: 0 }],
      ['stream_error:4', { kind: 'stream_error', afterTokens: 4 }],
      ['no_stream_options', { kind: 'no_stream_options' }],
      ['refuse', { kind: 'refuse' }],
      ['accept_then_cut', { kind: 'accept_then_cut' }],
      ['no_done', { kind: 'no_done' }],
      ['garbage', { kind: 'garbage' }],
    ]
    for (const [text, fault] of faults) t.same(readDirectives(`fault=${text}`), { fault }, text)
    t.same(new Set(faults.map(([text]) => text.split(':')[0])), new Set(FAULT_NAMES), 'none is missing here')
  })

  t.test('directives of media are read', async (t) => {
    t.same(readDirectives('seconds=7.5,size=64x48,poll_fault=reset:head,accept_then_cut'), {
      seconds: 7.5,
      size: { widthPixels: 64, heightPixels: 48 },
      poll_fault: 'reset:head',
      fault: { kind: 'accept_then_cut' },
    })
  })

  t.test('the later of two sources wins, directive by directive', async (t) => {
    const merged = mergeDirectives(readDirectives('ttft=1,tps=2'), {}, readDirectives({ tps: 3 }))
    t.same(merged, { ttft: 1, tps: 3 })
  })

  t.test('what is unknown or out of range is named', async (t) => {
    const wrong: [unknown, RegExp][] = [
      ['speed=3', /no directive "speed"/],
      ['__proto__=3', /no directive "__proto__"/],
      [{ constructor: 1 }, /no directive "constructor"/],
      ['ttft=fast', /"ttft" takes a whole number/],
      ['ttft=-1', /"ttft" takes a whole number/],
      ['ttft=600001', /"ttft" takes a whole number from 0 to 600000/],
      ['times=0', /"times"/],
      ['split=0', /"split"/],
      ['tokens', /"tokens"/],
      ['reasoning_text=maybe', /"reasoning_text" takes true or false/],
      ['usage=often', /"usage" is one of asked/],
      ['sse=crlf+tabs', /"sse" is one of/],
      ['fault=explode', /"fault" is one of reset/],
      ['fault=reset', /"fault" reset takes a whole number/],
      ['fault=reset:1.5', /"fault" reset/],
      ['fault=status:99', /"fault" status 99/],
      ['fault=status:204', /"fault" status 204/],
      ['fault=refuse:3', /"fault" refuse takes no argument/],
      ['poll_fault=reset', /"poll_fault" reset takes a whole number/],
      ['accept_then_cut=no', /no directive "accept_then_cut"/],
      ['outcome=luck', /"outcome" is one of success/],
      ['seconds=0', /"seconds" takes seconds above 0/],
      ['size=5000x10', /"size" takes a size/],
      ['id=a b', /"id" takes up to 64 letters/],
      ['text=%ff', /"text" is not percent-encoded/],
      [{ ttft: null }, /"ttft" takes a string, a number or a boolean/],
      [7, /a string or an object/],
      [['ttft=1'], /a string or an object/],
    ]
    for (const [source, message] of wrong) {
      t.throws(() => readDirectives(source), { constructor: DirectiveError, message }, JSON.stringify(source))
    }
  })

  t.test('the reference has every directive and every fault', async (t) => {
    const { readFile } = await import('node:fs/promises')
    const reference = await readFile(new URL('../../simulator/README.md', import.meta.url), 'utf8')
    for (const name of [...DIRECTIVE_NAMES, ...FAULT_NAMES]) t.match(reference, `| \`${name}`, name)
  })
})

t.test('calls record', async (t) => {
  const statsOf = async (url: string) => (await (await fetch(`${url}/simulator/stats`)).json()) as CallStats

  t.test('a call is recorded with what it was and how it ended', async (t) => {
    const { url } = await simulatorFor(t)
    const body = chatBody('sim-large@tokens=6', { stream: true })
    const answer = await call(url, body, { 'x-request-id': 'req_1' })
    t.match(answer.head, /x-simulator-call: 1/)
    await call(url, chatBody('sim'), { 'x-request-id': 'req_2' })
    const [record, ...others] = await callsOf(url, 'req_1')
    t.same(others, [])
    t.match(record, {
      ...{
        id: 1,
        path: '/v1/chat/completions',
        model: 'sim-large@tokens=6',
        request_id: 'req_1',
        stream: true,
      },
      ...{ body_bytes: Buffer.byteLength(body), state: 'completed', output_tokens: 6 },
    })
    t.ok(Date.parse(record?.at ?? '') <= Date.parse(record?.closed_at ?? ''))
    t.equal((await callsOf(url)).length, 2)
    t.same(await callsOf(url, 'req_3'), [])
  })

  t.test('the numbers add up, and clearing keeps what still runs', async (t) => {
    const { url } = await simulatorFor(t)
    await call(url, chatBody('sim'))
    await call(url, chatBody('sim@fault=reset:9'))
    const left = open(url, chatRequest(chatBody('sim@ttft=600000')))
    await lastCallThat(url, (record) => record.model === 'sim@ttft=600000')
    left.destroy()
    await lastCallThat(url, (record) => record.state === 'client_closed')
    const staying = open(url, chatRequest(chatBody('sim@fault=hang')))
    await lastCallThat(url, (record) => record.model === 'sim@fault=hang')
    t.same(await statsOf(url), { calls: 4, running: 1, completed: 1, client_closed: 1, faulted: 1 })
    t.equal((await fetch(`${url}/simulator/calls`, { method: 'DELETE' })).status, 204)
    t.same(await statsOf(url), { calls: 1, running: 1, completed: 0, client_closed: 0, faulted: 0 })
    t.match(await callsOf(url), [{ model: 'sim@fault=hang', state: 'running' }])
    staying.destroy()
    await lastCallThat(url, (record) => record.state === 'client_closed')
    t.same(await statsOf(url), { calls: 1, running: 0, completed: 0, client_closed: 1, faulted: 0 })
  })

  t.test('a request is kept as it was on the wire, its credentials as digests', async (t) => {
    const { url } = await simulatorFor(t)
    const body = `${chatBody('sim', { unknown_field: '你好' })}\n `
    await call(url, body, { authorization: 'Bearer secret-1', 'X-Custom': 'Kept', 'x-api-key': 'secret-2' })
    const response = await fetch(`${url}/simulator/calls/1/request`)
    const text = await response.text()
    const kept = JSON.parse(text) as RequestView
    t.equal(Buffer.from(kept.body_base64, 'base64').toString('utf8'), body)
    t.match(kept, { id: 1, method: 'POST', path: '/v1/chat/completions' })
    const headers = new Map(kept.headers)
    const digest = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
    t.equal(headers.get('authorization'), `Bearer ${digest('secret-1')}`)
    t.equal(headers.get('x-api-key'), digest('secret-2'))
    t.equal(headers.get('X-Custom'), 'Kept')
    t.notMatch(text, 'secret')
    t.equal((await fetch(`${url}/simulator/calls/2/request`)).status, 404)
    t.equal((await fetch(`${url}/simulator/elsewhere`)).status, 404)
  })

  t.test('the last hundred requests are kept', async (t) => {
    const { url } = await simulatorFor(t)
    const post = () => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: chatBody('sim@tokens=1') })
    for (let count = 0; count < 101; count += 1) await (await post()).arrayBuffer()
    t.equal((await fetch(`${url}/simulator/calls/1/request`)).status, 404)
    t.equal((await fetch(`${url}/simulator/calls/2/request`)).status, 200)
    t.equal((await callsOf(url)).length, 101)
  })
})

t.test('process', async (t) => {
  const MAIN = fileURLToPath(new URL('../../simulator/main.ts', import.meta.url))

  async function readyUrl(child: ChildProcess): Promise<string> {
    let line = ''
    while (!line.includes('\n'))
      line += String((await once(child.stdout as NodeJS.ReadableStream, 'data'))[0])
    const ready = JSON.parse(line) as { ready: boolean; url: string }
    if (!ready.ready) throw new Error(line)
    return ready.url
  }

  function spawned(t: { teardown(task: () => unknown): void }, ...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }

  t.test('it says where it listens, serves, and ends when its input closes, streams or not', async (t) => {
    const child = spawned(t, '--port', '0')
    const exited = once(child, 'exit')
    const url = await readyUrl(child)
    t.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    t.equal((await call(url, chatBody('sim', { stream: true }))).complete, true)
    const stream = call(url, chatBody('sim@ttft=600000'))
    child.stdin?.end()
    t.same(await exited, [0, null])
    t.equal((await stream).status, 0)
  })

  t.test('it ends on SIGTERM and on SIGINT', async (t) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const child = spawned(t)
      const exited = once(child, 'exit')
      await readyUrl(child)
      child.kill(signal)
      t.same(await exited, [0, null])
    }
  })

  t.test('a fork ends with its channel, whatever its input is', async (t) => {
    const child = fork(MAIN, ['--port', '0'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    t.teardown(() => child.kill('SIGKILL'))
    const exited = once(child, 'exit')
    const url = await readyUrl(child)
    t.equal((await call(url, chatBody('sim'))).status, 200)
    child.disconnect()
    t.same(await exited, [0, null])
  })

  t.test('a wrong argument and a taken port are reported, with their exit codes', async (t) => {
    const { url, close } = await startSimulator({ host: '127.0.0.1', port: 0 })
    t.teardown(close)
    const endOf = async (...args: string[]) => {
      const child = spawned(t, ...args)
      const exited = once(child, 'exit')
      const told = once(child.stderr as NodeJS.ReadableStream, 'data')
      return { code: (await exited)[0] as number, told: String((await told)[0]) }
    }
    t.match(await endOf('--port', 'many'), { code: 2, told: /many/ })
    t.match(await endOf('--speed', '1'), { code: 2, told: /--speed/ })
    t.match(await endOf('--port', new URL(url).port), { code: 1, told: /EADDRINUSE/ })
  })
})
