import t from 'tap'
import { newId, ulid } from '../../../src/core/keys/ids.ts'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARS = 10

const timeOf = (text: string): number =>
  [...text.slice(0, TIME_CHARS)].reduce((time, character) => time * 32 + ALPHABET.indexOf(character), 0)

t.test('an identifier is its prefix and a ULID of its instant, whatever was asked for before', async (t) => {
  const instants = [0, 1, 31, 32, 1_760_000_000_000, 1_760_000_000_000, 2 ** 48 - 1, 7]
  for (const now of instants) {
    for (const prefix of ['req', 'kreq', 'page'] as const) {
      const id = newId(prefix, now)
      t.match(id, new RegExp(`^${prefix}_[${ALPHABET}]{26}$`))
      t.equal(timeOf(id.slice(prefix.length + 1)), now)
    }
    t.match(ulid(now), new RegExp(`^[${ALPHABET}]{26}$`))
    t.equal(timeOf(ulid(now)), now)
  }
})

t.test('without an instant it is of now', async (t) => {
  const before = Date.now()
  const time = timeOf(ulid())
  t.ok(before <= time && time <= Date.now())
})

t.test('those of one instant differ, in every place of their chance', async (t) => {
  const COUNT = 50_000
  const ids = Array.from({ length: COUNT }, () => ulid(5))
  t.equal(new Set(ids).size, COUNT)
  for (let at = TIME_CHARS; at < 26; at++)
    t.equal(new Set(ids.map((id) => id[at])).size, ALPHABET.length, `place ${at}`)
})
