import t from 'tap'
import { EventCounter } from '../../bench/load/event-counter.ts'
import { checkBody } from '../../bench/load/probe.ts'
import { requestBody } from '../../bench/load/request.ts'
import { chunkAt, DONE, profileOf, SMALL_BODY, usageChunk } from '../../bench/upstream/replies.ts'

const CHUNKS = 6
const STREAM = Array.from({ length: CHUNKS }, (_, i) => chunkAt(i, CHUNKS)).join('') + DONE

const count = (text: string, size: number): EventCounter => {
  const counter = new EventCounter()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size))
  return counter
}

t.test('events are counted however the bytes are cut', async (t) => {
  for (let size = 1; size <= 300; size++) {
    const counter = count(STREAM, size)
    t.equal(counter.events, CHUNKS + 1, `cut at every ${size} bytes`)
    t.ok(counter.done)
  }
})

t.test('a stream that does not end in [DONE] is not done', async (t) => {
  t.notOk(count(STREAM.slice(0, -1), 7).done)
  t.notOk(count(`${STREAM}data: {}\n\n`, 7).done)
  t.notOk(new EventCounter().done)
})

t.test('three newlines are one event end, and reset forgets all', async (t) => {
  const counter = count('a\n\n\n', 1)
  t.equal(counter.events, 1)
  counter.reset()
  t.equal(counter.events, 0)
  counter.add(Buffer.from('\nb\n\n'))
  t.equal(counter.events, 1)
})

t.test('the probe takes the upstream as it is and nothing else', async (t) => {
  t.doesNotThrow(() => checkBody('burst', CHUNKS, STREAM))
  t.doesNotThrow(() => checkBody('small', 0, SMALL_BODY))
  t.throws(() => checkBody('burst', CHUNKS + 1, STREAM), /not the upstream's text/)
  t.throws(() => checkBody('burst', CHUNKS, STREAM.replace(DONE, '')), /without \[DONE\]/)
  t.throws(() => checkBody('small', 0, '{"choices":[]}'), /not the upstream's answer/)
})

t.test('the upstream knows what a request asks for, and counts tokens as it sends them', async (t) => {
  t.equal(profileOf(Buffer.from(requestBody('paced', ''))), 'paced')
  t.equal(profileOf(Buffer.from('{"model":"bench-other"}')), null)
  t.equal(profileOf(Buffer.from('{}')), null)
  t.match(usageChunk(CHUNKS), /"completion_tokens":4,/)
})
