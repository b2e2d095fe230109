/** Secrets of a configuration are never shown, and a masked one is put back where it was. */
import t from 'tap'
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
sign_in:
  oidc:
    - id: company
      client_secret: oidc-secret
`
const SECRETS = ['metrics-secret', 'sk-one', 'tenant-secret', 'Bearer two', 'oidc-secret']

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

t.test('a mask without a secret in the file stays, and a new secret is taken', async (t) => {
  const text = `channels:\n  - { id: three, api_key: "${MASK}" }\n  - { id: one, api_key: sk-new }\n`
  t.equal(withSecretsOf(text, TEXT), text)
})

t.test('text that is no YAML is no error', async (t) => {
  for (const broken of ['{', 'a: [', '\t- x', '"', '']) t.equal(typeof withoutSecrets(broken), 'string')
})
