/** Secrets of a configuration are never shown, and a masked one is put back where it was. */
import t from 'tap'
import { parse, parseDocument } from 'yaml'
import { MASK, withoutSecrets, withSecretsOf } from '../../../src/config/secrets.ts'

const TEXT = `# prices are ours
metrics: { token: 'metrics-secret' }
channels:
  - id: one # the first
    api_key: sk-one
    headers: { x-tenant: tenant-secret }
  - id: two
    api_key: \${TWO_KEY}
    headers:
      authorization: "Bearer two"
  - id: three
    auth: { type: aws-sigv4, region: eu-west-1, access_key_id: access-id, secret_access_key: access-secret }
sign_in:
  oidc:
    - id: company
      client_secret: oidc-secret
`
const SECRETS = [
  'metrics-secret',
  'sk-one',
  'tenant-secret',
  'Bearer two',
  'access-id',
  'access-secret',
  'oidc-secret',
]

t.test('no secret is shown, and all else stays as it is written', async (t) => {
  const shown = withoutSecrets(TEXT)
  for (const secret of SECRETS) t.notMatch(shown, secret)
  t.equal(shown.split(MASK).length - 1, SECRETS.length)
  for (const kept of ['# prices are ours', '# the first', '${TWO_KEY}', 'x-tenant'])
    t.ok(shown.includes(kept), kept)
})

t.test('a masked secret is put back, also where its entry has moved', async (t) => {
  const shown = withoutSecrets(TEXT)
  const put = withSecretsOf(shown, TEXT)
  for (const secret of SECRETS) t.ok(put.includes(secret), secret)
  t.notOk(put.includes(MASK))
  const two = `channels:\n  - { id: two, headers: { authorization: "${MASK}" } }\n  - { id: one, api_key: "${MASK}" }\n`
  t.equal(withSecretsOf(two, TEXT), two.replace(`"${MASK}"`, '"Bearer two"').replace(`"${MASK}"`, '"sk-one"'))
})

t.test('a secret of several lines is masked in one, and put back', async (t) => {
  const text = `channels:
  - id: one
    auth:
      type: google
      credentials: |
        {"type":
          "service_account"}
    models: { a: b }
  - id: two
    api_key: >-
      sk-two
`
  const shown = withoutSecrets(text)
  t.same(parseDocument(shown).errors, [])
  t.notMatch(shown, 'service_account')
  t.same(parse(withSecretsOf(shown, text)), parse(text))
})

t.test('a list of secrets is put back as it was edited', async (t) => {
  const listed = (...keys: string[]) => `channels:\n  - id: one\n    api_keys: [${keys.join(', ')}]\n`
  const current = listed('sk-a', '${B_KEY}', 'sk-c', 'sk-d')
  const masked = /"[^"]+"/g
  const shown = withoutSecrets(current)
  const [a = '', c = '', d = ''] = shown.match(masked) ?? []
  t.equal(shown, listed(a, '${B_KEY}', c, d))
  const put = (...keys: string[]) => withSecretsOf(listed(...keys), current)
  t.equal(put(a, '${B_KEY}', c, d), listed('"sk-a"', '${B_KEY}', '"sk-c"', '"sk-d"'), 'unchanged')
  t.equal(put(c, d), listed('"sk-c"', '"sk-d"'), 'the earlier ones are removed')
  t.equal(put(d, c, a), listed('"sk-d"', '"sk-c"', '"sk-a"'), 'moved')
  t.equal(put('sk-new', d, a), listed('sk-new', '"sk-d"', '"sk-a"'), 'one is added in front')
  t.equal(put(`"${MASK}"`), listed(`"${MASK}"`), 'a mask that names none of them stays')
  t.equal(put(`"${MASK}9"`), listed(`"${MASK}9"`), 'a mask of a key that is not there stays')
})

t.test('a secret below entries without an id is put back where its entry is now', async (t) => {
  const current = 'proxies:\n  - { name: a, token: one }\n  - { name: b, token: two }\n'
  const [, second = ''] = withoutSecrets(current).match(/"[^"]+"/g) ?? []
  const text = `proxies:\n  - { name: b, token: ${second} }\n`
  t.equal(withSecretsOf(text, current), text.replace(second, '"two"'))
})

t.test('a mask without a secret in the file stays, and a new secret is taken', async (t) => {
  const text = `channels:\n  - { id: three, api_key: "${MASK}" }\n  - { id: one, api_key: sk-new }\n`
  t.equal(withSecretsOf(text, TEXT), text)
})

t.test('text that is no YAML is no error', async (t) => {
  for (const broken of ['{', 'a: [', '\t- x', '"', '']) t.equal(typeof withoutSecrets(broken), 'string')
})
