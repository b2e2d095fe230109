import t from 'tap'
import { hasAccess } from '../../../src/core/routing/channel-access.ts'
import { loadChannels } from '../channels/providers/support.ts'

function problemsOf(fields: string): string[] {
  const loaded = loadChannels(`  - { id: c, provider: openai, models: { m: up }, ${fields} }\n`)
  return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
}

const aws = (fields: string) => `auth: { type: aws-sigv4, region: us-east-1, ${fields} }`

t.test('what is wrong is named', async (t) => {
  t.same(problemsOf(aws('service: bedrock')), [])
  t.same(problemsOf('auth: { type: basic }'), [
    'channels[0].auth.type: must be one of aws-sigv4, google, azure-entra, jwt-hs256.',
  ])
  t.same(problemsOf('auth: { region: us-east-1 }'), ['channels[0].auth.type: is required.'])
  t.same(problemsOf('auth: { type: aws-sigv4 }'), ['channels[0].auth.region: is required.'])
  t.same(problemsOf(aws('regoin: x')), ['channels[0].auth.regoin: There is no such field.'])
  t.same(problemsOf(aws('access_key_id: a')), [
    'channels[0].auth: access_key_id and secret_access_key go together. Without both, the environment has the credentials.',
  ])
  t.same(problemsOf(`api_key: k, ${aws('profile: p')}`), [
    'channels[0].auth: takes the place of a key: leave out api_key and api_keys.',
  ])
  t.same(problemsOf(`protocol: openai-images, ${aws('profile: p')}`), [
    'channels[0].auth.type: aws-sigv4 goes with chat protocols only.',
  ])
  t.same(problemsOf('auth: { type: google, credentials: x, credentials_file: y }'), [
    'channels[0].auth: has credentials_file and credentials: leave one out.',
  ])
})

t.test('a channel with an empty secret is off, and the variable is named', async (t) => {
  const text = (auth: string) => `  - { id: c, provider: openai, models: { m: up }, auth: { ${auth} } }\n`
  const jwt = text('type: jwt-hs256, access_key: "${KLING_ACCESS}", secret_key: "${KLING_SECRET}"')
  const off = loadChannels(jwt, { KLING_ACCESS: 'a' })
  if (!off.ok) throw new Error('the file was refused')
  t.equal(hasAccess(off.config.channels[0]!), false)
  t.same(
    off.warnings.map(({ field, message }) => [field, message]),
    [['channels[0].auth.secret_key', 'The channel is off: not set in the environment: KLING_SECRET.']],
  )
  const on = loadChannels(jwt, { KLING_ACCESS: 'a', KLING_SECRET: 's' })
  if (!on.ok) throw new Error('the file was refused')
  t.equal(hasAccess(on.config.channels[0]!), true)
  t.same(on.warnings, [])
  const environment = loadChannels(text('type: google'))
  t.ok(environment.ok && hasAccess(environment.config.channels[0]!), 'the environment has the credentials')
})
