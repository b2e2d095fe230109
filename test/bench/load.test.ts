import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { type CallsPlan, runCalls } from '../../bench/load/calls.ts'
import { Streams } from '../../bench/load/streams.ts'
import { chunkAt, DONE, SMALL_BODY } from '../../bench/upstream/replies.ts'
import { serveHttp } from '../support/http-server.ts'

const CHUNKS = 4
const STREAM = Array.from({ length: CHUNKS }, (_, i) => chunkAt(i, CHUNKS)).join('') + DONE

/** Starts a server that answers what it has read, and returns its port. */
const listen = async (t: Test, answer: RequestListener): Promise<number> => {
  const url = await serveHttp(t, (req, res) => {
    req.resume().once('end', () => answer(req, res))
  })
  return Number(new URL(url).port)
}

const endpoint = (port: number) => ({ port, path: '/', headers: {}, model: 'bench' })

const smallCalls = (port: number): CallsPlan => ({
  endpoint: endpoint(port),
  profile: 'small',
  expected: { chunks: null, bodyBytes: SMALL_BODY.length },
  connections: 3,
  count: 50,
  perSecond: null,
  limitMs: 10_000,
})

const streamCalls = (port: number): CallsPlan => ({
  ...smallCalls(port),
  profile: 'burst',
  expected: { chunks: CHUNKS, bodyBytes: null },
})

const streamsTo = (port: number, opensPerSecond: number): Streams =>
  new Streams({ ...streamCalls(port), count: 20, opensPerSecond })

t.test('exactly so many calls are made, whichever way they are paced', async (t) => {
  let calls = 0
  const port = await listen(t, (_req, res) => {
    calls++
    res.end(SMALL_BODY)
  })
  const result = await runCalls(smallCalls(port))
  t.equal(calls, 50)
  t.ok(result.latencyUs.p50 <= result.latencyUs.p99)
  await runCalls({ ...smallCalls(port), perSecond: 1_000 })
  t.equal(calls, 100)
})

t.test('a call that finds all connections busy waits and is made all the same', async (t) => {
  const port = await listen(t, (_req, res) => setTimeout(() => res.end(SMALL_BODY), 5))
  await t.resolves(runCalls({ ...smallCalls(port), connections: 1, count: 20, perSecond: 10_000 }))
})

for (const [what, answer, reason] of [
  ['another status', (_req, res) => res.writeHead(503).end('busy'), /status 503: busy/],
  ['a body of another length', (_req, res) => res.end('{}'), /2 bytes instead of/],
  ['a connection that is cut', (_req, res) => res.destroy(), /closed|hang up|ECONNRESET/],
  ['no answer', () => {}, /0 of 50 calls in time/],
] as [string, RequestListener, RegExp][])
  t.test(`a small call that gets ${what} fails the run`, async (t) => {
    const port = await listen(t, answer)
    await t.rejects(runCalls({ ...smallCalls(port), limitMs: 500 }), { message: reason })
  })

t.test('one wrong call among many fails the run', async (t) => {
  let calls = 0
  const port = await listen(t, (_req, res) => res.writeHead(++calls === 40 ? 500 : 200).end(SMALL_BODY))
  await t.rejects(runCalls(smallCalls(port)), { message: /status 500/ })
})

t.test('a stream must have all its chunks and [DONE]', async (t) => {
  let text = STREAM
  const port = await listen(t, (_req, res) => res.end(text))
  await t.resolves(runCalls(streamCalls(port)))
  text = STREAM.replace(chunkAt(1, CHUNKS), '')
  await t.rejects(runCalls(streamCalls(port)), { message: /3 chunks instead of 4|2 chunks instead of 4/ })
  text = STREAM.slice(0, -DONE.length)
  await t.rejects(runCalls(streamCalls(port)), { message: /did not end in \[DONE\]/ })
})

t.test('of a gateway that writes answers anew the text counts', async (t) => {
  let body = JSON.stringify({ ...JSON.parse(SMALL_BODY), id: 'another', extra: 1 })
  const port = await listen(t, (_req, res) => res.end(body))
  const plan = (wanted: CallsPlan): CallsPlan => ({
    ...wanted,
    endpoint: { ...endpoint(port), rewrites: true },
    expected: { ...wanted.expected, bodyBytes: null },
  })
  await t.resolves(runCalls(plan(smallCalls(port))))
  body = '{"choices":[]}'
  await t.rejects(runCalls(plan(smallCalls(port))), { message: /not the upstream's answer/ })
  const [first = '', ...others] = STREAM.split('\n\n')
  body = [first, ': a comment', ...others].join('\n\n')
  await t.resolves(runCalls(plan(streamCalls(port))))
  body = STREAM.replace(chunkAt(1, CHUNKS), '')
  await t.rejects(runCalls(plan(streamCalls(port))), { message: /3 chunks instead of 4/ })
})

t.test('open streams are counted while they run, and must all end well', async (t) => {
  const released = Promise.withResolvers<void>()
  const port = await listen(t, async (_req, res) => {
    res.write(chunkAt(0, CHUNKS))
    await released.promise
    res.end(STREAM.slice(chunkAt(0, CHUNKS).length))
  })
  const streams = streamsTo(port, 1_000)
  await streams.open
  t.same(streams.progress, { chunks: 20, ended: 0 })
  released.resolve()
  await streams.end
  t.same(streams.progress, { chunks: 20 * (CHUNKS + 1), ended: 20 })
})

t.test('a stream that breaks off fails both the opening and the end', async (t) => {
  const port = await listen(t, (_req, res) => {
    res.write(chunkAt(0, CHUNKS), () => res.destroy())
  })
  const streams = streamsTo(port, 100)
  await t.rejects(streams.open)
  await t.rejects(streams.end)
})
