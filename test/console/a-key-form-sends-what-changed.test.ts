/** The form of a key sends what its user changed, and nothing of what only looks like its text. */
import t from 'tap'
import { changesOf, type Key, keyTextsOf, modelsOf } from '../../console/src/pages/keys/texts.ts'

/** What the browser keeps of the reader's choice. */
let zone: 'local' | 'utc' = 'local'
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: () => zone } })
process.env.TZ = 'America/New_York'

const KEY = {
  name: 'Web',
  allowed_models: [],
  expires_at: '2026-12-01T12:00:30.000Z',
  spend_cap: null,
  account_logs: false,
  requests_per_minute: 60,
  concurrency: null,
  allowed_addresses: ['10.0.0.0/8'],
} as unknown as Key

t.test('another name changes the name alone', async (t) => {
  const before = keyTextsOf(KEY)
  t.same(changesOf(before, before), {})
  t.same(changesOf(before, { ...before, name: 'Site' }), { name: 'Site' })
})

t.test('each field is sent as the API takes it', async (t) => {
  const before = keyTextsOf({ ...KEY, spend_cap: '5' })
  t.same(changesOf(before, { ...before, models: 'fast, large' }), { allowed_models: ['fast', 'large'] })
  t.same(changesOf(before, { ...before, models: '' }), { allowed_models: null })
  t.same(changesOf(before, { ...before, expires: '' }), { expires_at: null })
  t.same(changesOf(before, { ...before, cap: '7.5' }), { spend_cap: '7.5' })
  t.same(changesOf(before, { ...before, accountLogs: true }), { account_logs: true })
  t.same(changesOf(before, { ...before, perMinute: '' }), { requests_per_minute: null })
  t.same(changesOf(before, { ...before, concurrency: '4' }), { concurrency: 4 })
  t.same(changesOf(before, { ...before, addresses: '' }), { allowed_addresses: null })
})

t.test('a key that may call no model says so', async (t) => {
  t.equal(keyTextsOf(KEY).models, 'none')
  t.same(modelsOf('none'), [])
  t.equal(modelsOf(' '), null)
  t.same(modelsOf('none, fast'), ['none', 'fast'])
})

t.test('an end is shown and typed in the time zone of the reader', async (t) => {
  const before = keyTextsOf(KEY)
  t.equal(before.expires, '2026-12-01T07:00')
  t.same(changesOf(before, { ...before, expires: '2026-12-02T07:00' }), {
    expires_at: '2026-12-02T12:00:00.000Z',
  })
  zone = 'utc'
  const inUtc = keyTextsOf(KEY)
  t.equal(inUtc.expires, '2026-12-01T12:00')
  t.same(changesOf(inUtc, { ...inUtc, expires: '2026-12-02T07:00' }), {
    expires_at: '2026-12-02T07:00:00.000Z',
  })
})
