/** Answers up to 8 MiB are kept and replayed byte for byte, within a bound of memory. */
import { randomBytes } from 'node:crypto'
import { Observable, of } from 'rxjs'
import t from 'tap'
import type { AuthenticatedCall } from '../../../pipelines/calls/authenticate.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { answer, type Call, calls } from '../../../pipelines/calls/pipeline.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import type { Reply } from '../../../src/http/handler.ts'
import { serve } from '../../src/http/support.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { workHere } from '../../support/work-here.ts'

const MIB = 1024 * 1024
const MAX_BYTES = 8 * MIB
const MOST_OF_ACCOUNT = 32 * MIB
const MOST = 64 * MIB

t.test('long answers in PostgreSQL', async (t) => {
  const { database } = await startDatabase(t)
  const memory = new AnswerMemory()
  let body = Buffer.alloc(0)
  const replies = (): Observable<Reply> =>
    new Observable((subscriber) => {
      subscriber.next({ type: 'head', status: 200, headers: [['content-type', 'x/y']], flow: null })
      for (let at = 0; at < body.length; at += 100_000)
        subscriber.next({ type: 'data', bytes: body.subarray(at, at + 100_000) })
      subscriber.complete()
    })
  const deps = {
    records: database.idempotency,
    answerMemory: memory,
    workOnLongBody: workHere,
    onRecordLost: (error: unknown) => t.fail(String(error)),
  }
  const known = { account: { id: 'acc_a' } } as AuthenticatedCall['known']
  const authenticated = (call: Call) => ({ ...call, known })
  const { port } = await serve(t, {
    'POST /stream': calls(authenticated)
      .then(idempotent<AuthenticatedCall>(deps))
      .then(answer(replies))
      .toHandler(),
    'POST /whole': calls(authenticated)
      .then(idempotent<AuthenticatedCall>(deps))
      .then(answer(() => of<Reply>({ type: 'full', status: 200, headers: [['content-type', 'x/y']], body })))
      .toHandler(),
  })
  const ask = async (path: string, key: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      body: '{}',
      headers: { 'idempotency-key': key },
    })
    return { response, bytes: Buffer.from(await response.arrayBuffer()) }
  }

  for (const path of ['/stream', '/whole'])
    await t.test(`${path}: up to 8 MiB, and not a byte more`, async (t) => {
      for (const length of [MIB, MIB + 1, MAX_BYTES]) {
        body = randomBytes(length)
        const key = `${path} ${length}`.replace(/\W/g, '-')
        t.ok((await ask(path, key)).bytes.equals(body))
        const { response, bytes } = await ask(path, key)
        t.equal(response.headers.get('idempotency-replayed'), 'true')
        t.equal(response.headers.get('content-type'), 'x/y')
        t.ok(bytes.equals(body), `${length} bytes`)
      }
      body = randomBytes(MAX_BYTES + 1)
      const key = `${path}-more`.slice(1)
      t.ok((await ask(path, key)).bytes.equals(body), 'the client has it all the same')
      t.equal((await ask(path, key)).response.status, 409)
    })
})

t.test('what is held is bounded, for each account and for all', async (t) => {
  const held = new AnswerMemory()
  t.ok(held.take('acc_a', MOST_OF_ACCOUNT))
  t.notOk(held.take('acc_a', 1))
  t.ok(held.take('acc_b', MOST - MOST_OF_ACCOUNT))
  t.notOk(held.take('acc_c', 1))
  held.release('acc_a', MOST_OF_ACCOUNT)
  t.ok(held.take('acc_a', MOST_OF_ACCOUNT))
})
