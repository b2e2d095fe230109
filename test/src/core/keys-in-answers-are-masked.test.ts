/** A key of the channel inside an answer is masked, wherever the reads split it; every other byte passes as it came. */
import t from 'tap'
import { channelEntry } from '../../../schemas/config/catalog.ts'
import { KeyMask, keyMask, maskedKeys, withoutKeys } from '../../../src/core/call-log/key-mask.ts'
import { noteToken } from '../../../src/core/routing/channel-access.ts'

const KEY = 'sk-proj-aaXaaXaab9'
const OTHER = 'sk-proj-aaXaaXaab9-longer'

const channel = (more: object) =>
  channelEntry.parse({ id: 'c', protocol: 'messages', base_url: 'http://a.test', models: {}, ...more })

function inPieces(keys: readonly string[], text: string, cuts: readonly number[]): string {
  const mask = new KeyMask(maskedKeys(keys))
  const bytes = Buffer.from(text)
  const ends = [...cuts, bytes.length]
  const out: Buffer[] = []
  let from = 0
  for (const end of ends) {
    out.push(Buffer.from(mask.push(bytes.subarray(from, end)) ?? []))
    from = end
  }
  return Buffer.concat([...out, mask.end() ?? Buffer.alloc(0)]).toString()
}

t.test('split at every byte, and at every two', async (t) => {
  const texts = [
    `data: {"text":"${KEY}"}\n\ndata: [DONE]\n\n`,
    `${KEY}${KEY}`,
    `sk-proj-aaXaaX${KEY}`,
    `ü${KEY}ü and ${OTHER}.`,
    `sk-proj-aaXaaXaab`,
    'sk-sk-sk-proj-aa',
    '',
  ]
  for (const text of texts) {
    const keys = [KEY, OTHER]
    const masked = text.replaceAll(OTHER, '[secret]').replaceAll(KEY, '[secret]')
    const length = Buffer.byteLength(text)
    for (let first = 0; first <= length; first++)
      for (let second = first; second <= length; second++)
        if (inPieces(keys, text, [first, second]) !== masked)
          t.equal(inPieces(keys, text, [first, second]), masked, `cut at ${first} and ${second}`)
    t.equal(
      inPieces(
        keys,
        text,
        Array.from({ length }, (_, at) => at),
      ),
      masked,
      'byte by byte',
    )
  }
})

t.test('what holds no key passes as the same bytes, at once', async (t) => {
  const mask = new KeyMask(maskedKeys([KEY]))
  const event = Buffer.from('data: {"text":"sk-proj-"}\n\n')
  t.equal(mask.push(event), event)
  t.equal(mask.end(), null)
  t.equal(mask.push(Buffer.from('sk-pro')), null, 'the beginning of a key waits')
  t.equal(mask.push(Buffer.from('file\n'))?.toString(), 'sk-profile\n')
})

t.test('masked are the keys that a call carries; words are not', async (t) => {
  const body = (text: string) => Buffer.from(`{"text":"${text}"}`)
  const shown = (more: object, text: string) => withoutKeys(channel(more), body(text)).toString()
  t.equal(shown({ api_key: KEY }, `a ${KEY} b`), '{"text":"a [secret] b"}')
  t.equal(shown({ headers: { Authorization: `Bearer ${KEY}` } }, KEY), '{"text":"[secret]"}')
  t.equal(shown({ headers: { 'x-title': 'Interesting' } }, 'Interesting'), '{"text":"Interesting"}')
  for (const key of ['', 'none', 'ollama', 'anything', 'placeholder'])
    t.equal(keyMask(channel({ api_key: key })), null, `${key} is no secret`)
  const signed = channel({ auth: { type: 'google' } })
  t.equal(keyMask(signed), null)
  for (const token of ['ya29.first-token', 'ya29.second-token']) {
    noteToken(signed, token)
    t.equal(withoutKeys(signed, body(token)).toString(), '{"text":"[secret]"}', 'also when it has changed')
  }
})

t.test('an answer of nothing but keys is read once for each of them', async (t) => {
  const keys = maskedKeys([KEY, 'another-key-1234', 'at-the-end-only-1'])
  const cpuOf = (count: number): number => {
    const bytes = Buffer.from(`${`${KEY} another-key-1234 `.repeat(count)}at-the-end-only-1`)
    const begunAt = process.cpuUsage()
    t.equal(new KeyMask(keys).whole(bytes).toString(), `${'[secret] '.repeat(2 * count)}[secret]`)
    const { user, system } = process.cpuUsage(begunAt)
    return user + system
  }
  cpuOf(1000)
  const least = (count: number) => Math.min(cpuOf(count), cpuOf(count), cpuOf(count))
  const [small, large] = [least(20_000), least(80_000)]
  t.ok(large < 10 * small, `${small} µs for a quarter, ${large} µs for all`)
})
