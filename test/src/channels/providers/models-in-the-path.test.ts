/** Platforms whose path names the model: Amazon Bedrock and Vertex AI. */
import t from 'tap'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { chatAdapterOf, countingAdapterOf } from '../../../../src/channels/chat/registry.ts'
import { channelOf, loadChannels } from './support.ts'

const PROJECT = 'https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5'
const BODY = '{"model":"up","stream":true,"max_tokens":9,"temperature":1.0,"messages":[]}'

function sent(fields: string, upstreamModel: string, stream: boolean, beta = '') {
  const channel = channelOf(fields)
  const adapter = chatAdapterOf(channel, channel.protocol as ChatProtocol)
  const call = { upstreamModel, stream, query: 'alt=sse' }
  const { base, path, headers } = adapter.request(channel, call)
  const header = (name: string) => (name === 'anthropic-beta' ? beta : '')
  const body = adapter.body?.(Buffer.from(BODY), channel, call, header) ?? Buffer.from(BODY)
  return {
    url: base + path,
    headers: [...headers, ...(adapter.callHeaders?.(header) ?? [])],
    body: String(body),
  }
}

t.test('Bedrock', async (t) => {
  const auth = 'provider: bedrock, auth: { type: aws-sigv4, region: eu-west-1 }'
  const streamed = sent(auth, 'anthropic.claude-v1:0', true, 'one, two')
  t.equal(
    streamed.url,
    'https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-v1%3A0/invoke-with-response-stream',
  )
  t.equal(
    streamed.body,
    '{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one","two"],"max_tokens":9,"temperature":1.0,"messages":[]}',
  )
  t.notOk(streamed.headers.some(([name]) => name === 'authorization' || name === 'anthropic-version'))
  t.match(sent(auth, 'm', false).url, /\/model\/m\/invoke$/)
  const keyed = sent('provider: bedrock, api_key: k, base_url: "http://127.0.0.1:1"', 'm', false)
  t.same(keyed.headers[0], ['authorization', 'Bearer k'])
})

t.test('Vertex', async (t) => {
  const auth = `provider: vertex, base_url: "${PROJECT}", auth: { type: google }`
  t.equal(
    sent(auth, 'gemini-2.5-pro', false).url,
    `${PROJECT}/publishers/google/models/gemini-2.5-pro:generateContent`,
  )
  t.equal(
    sent(auth, 'gemini-2.5-pro', true).url,
    `${PROJECT}/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse`,
  )
  const messages = sent(`${auth}, protocol: messages`, 'claude@1', true, 'one')
  t.equal(messages.url, `${PROJECT}/publishers/anthropic/models/claude%401:streamRawPredict`)
  t.equal(
    messages.body,
    '{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9,"temperature":1.0,"messages":[]}',
  )
  t.same(messages.headers.at(-1), ['anthropic-beta', 'one'])
  t.match(sent(`${auth}, protocol: messages`, 'm', false).url, /:rawPredict$/)
})

t.test('Bedrock counts for a model without the geography of its profile', async (t) => {
  const channel = channelOf('provider: bedrock, auth: { type: aws-sigv4, region: eu-west-1 }')
  const pathOf = (upstreamModel: string) =>
    countingAdapterOf(channel, 'messages')!.request(channel, { upstreamModel, stream: false, query: '' }).path
  for (const geography of ['', 'us.', 'apac.', 'us-gov.', 'global.'])
    t.equal(pathOf(`${geography}anthropic.claude-v1:0`), '/model/anthropic.claude-v1%3A0/count-tokens')
  t.equal(
    pathOf('arn:aws:bedrock:us-east-1:1:x/y'),
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ax%2Fy/count-tokens',
  )
  t.equal(countingAdapterOf(channel, 'generate-content'), null)
})

t.test('what is missing is named', async (t) => {
  const problems = (fields: string) => {
    const loaded = loadChannels(`  - { id: c, models: { m: up }, ${fields} }\n`)
    return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
  }
  t.same(problems('provider: bedrock, api_key: k'), ['channels[0].base_url: is required.'])
  t.same(problems('provider: vertex, auth: { type: google }'), ['channels[0].base_url: is required.'])
  t.same(
    problems('provider: vertex, auth: { type: google }, base_url: "https://aiplatform.googleapis.com"'),
    ['channels[0].base_url: must end in /v1/projects/PROJECT/locations/LOCATION.'],
  )
  const veo = `protocol: veo, auth: { type: google }, base_url: "${PROJECT}"`
  t.same(problems(`provider: vertex, ${veo}, storage_uri: "gs://films/new"`), [])
  t.same(problems(`provider: vertex, ${veo}, storage_uri: "https://films"`), [
    'channels[0].storage_uri: must be the folder of a bucket, such as gs://my-bucket/films.',
  ])
  t.same(problems('provider: gemini, protocol: veo, api_key: k, storage_uri: "gs://films"'), [
    'channels[0].storage_uri: goes with protocol veo of provider vertex only.',
  ])
})
