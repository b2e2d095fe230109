/** An image answer that takes its time. */
import { Observable, Subject } from 'rxjs'
import t, { type Test } from 'tap'
import { withKeepAlive } from '../../../pipelines/media/kept-alive.ts'
import type { Reply } from '../../../src/http/handler.ts'
import { until } from '../../src/http/support.ts'

const AT_ONCE = { afterMs: 0, everyMs: 1 }
const NEVER = { afterMs: 60_000, everyMs: 60_000 }
const FULL: Reply = { type: 'full', status: 201, headers: [['x-own', '1']], body: '{"data":[]}' }

/** Everything that comes of it. */
function watched(replies: Observable<Reply>) {
  const seen: Reply[] = []
  const ends: unknown[] = []
  const subscription = replies.subscribe({
    next: (reply) => seen.push(reply),
    error: (error) => ends.push(error),
    complete: () => ends.push('complete'),
  })
  return { seen, ends, subscription }
}

const bodyOf = (replies: readonly Reply[]): string =>
  replies.map((reply) => (reply.type === 'data' ? String(reply.bytes) : '')).join('')

async function begun(t: Test, source: Subject<Reply>) {
  const { seen, ends } = watched(source.pipe(withKeepAlive((error) => `{"error":"${error}"}`, AT_ONCE)))
  await until(() => seen.length >= 4)
  const [head, ...spaces] = seen
  t.match(head, { type: 'head', status: 200, headers: [['content-type', /^application\/json/]] })
  t.match(bodyOf(spaces), /^ {3,}$/)
  return { seen, ends }
}

t.test('one that comes in time is as it was', async (t) => {
  const source = new Subject<Reply>()
  const { seen, ends } = watched(source.pipe(withKeepAlive(() => '', NEVER)))
  source.next(FULL)
  source.complete()
  t.strictSame(seen, [FULL])
  t.strictSame(ends, ['complete'])
  const failed = watched(
    new Observable<Reply>((subscriber) => subscriber.error('why')).pipe(withKeepAlive(() => '', NEVER)),
  )
  t.strictSame([failed.seen, failed.ends], [[], ['why']], 'and so is an error')
})

t.test('one that comes late follows spaces, under a 200', async (t) => {
  const source = new Subject<Reply>()
  const { seen, ends } = await begun(t, source)
  source.next(FULL)
  source.complete()
  t.match(bodyOf(seen), /^ {3,}\{"data":\[\]\}$/)
  t.strictSame(JSON.parse(bodyOf(seen)), { data: [] })
  t.strictSame(ends, ['complete'])
  const { length } = seen
  await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(seen.length, length, 'and nothing follows it')
})

t.test('a failure that comes late is reported in the body', async (t) => {
  const source = new Subject<Reply>()
  const { seen, ends } = await begun(t, source)
  source.error('why')
  t.strictSame(JSON.parse(bodyOf(seen)), { error: 'why' })
  t.strictSame(ends, ['complete'], 'the answer is whole')
})

t.test('a client that leaves ends the work, and the spaces', async (t) => {
  const source = new Subject<Reply>()
  const { seen, subscription } = watched(source.pipe(withKeepAlive(() => '', AT_ONCE)))
  await until(() => seen.length >= 2)
  subscription.unsubscribe()
  t.equal(source.observed, false)
  const { length } = seen
  await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(seen.length, length)
})
