import t from 'tap'
import { chatAdapterOf } from '../../../../src/channels/chat/registry.ts'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { channelOf, loadChannels } from './support.ts'

const RESOURCE = 'https://r.openai.azure.com/openai'

function requestOf(fields: string): [string, string] {
  const channel = channelOf(`provider: azure, api_key: k, ${fields}`)
  const protocol = channel.protocol as 'chat-completions' | 'responses'
  const call = { upstreamModel: 'my deployment', stream: true, query: '' }
  const { base, path, headers } = chatAdapterOf(channel, protocol).request(channel, call)
  return [base + path, headers[0]!.join(': ')]
}

t.test('the newer form has the deployment in the body', async (t) => {
  t.same(requestOf(`base_url: "${RESOURCE}/v1"`), [`${RESOURCE}/v1/chat/completions`, 'api-key: k'])
  t.same(requestOf(`base_url: "${RESOURCE}/v1", protocol: responses`), [
    `${RESOURCE}/v1/responses`,
    'api-key: k',
  ])
})

t.test('the older form has it in the path, with a version', async (t) => {
  t.same(requestOf(`base_url: "${RESOURCE}", api_version: 2024-10-21-preview`), [
    `${RESOURCE}/deployments/my%20deployment/chat/completions?api-version=2024-10-21-preview`,
    'api-key: k',
  ])
  t.same(requestOf(`base_url: "${RESOURCE}", api_version: 2025-04-01-preview, protocol: responses`), [
    `${RESOURCE}/responses?api-version=2025-04-01-preview`,
    'api-key: k',
  ])
})

t.test('what is missing is named', async (t) => {
  const problems = (fields: string) => {
    const loaded = loadChannels(`  - { id: c, provider: azure, api_key: k, models: { m: up }${fields} }\n`)
    return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
  }
  t.same(problems(''), ['channels[0].base_url: is required.'])
  t.same(problems(`, base_url: "${RESOURCE}"`), [
    'channels[0].api_version: is required with this form of base_url, such as 2024-10-21.',
  ])
  t.same(problems(`, base_url: "${RESOURCE}/v1"`), [])
})

t.test('a first chunk of filter results is no answer yet, and passes with the answer', async (t) => {
  const meter = new ChatCompletionsMeter({ withholdUsage: true })
  const results = `data: ${JSON.stringify({ choices: [], id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }] })}\n\n`
  t.equal(String(meter.push(Buffer.from(results))), results)
  t.equal(meter.isAnswer, false)
  t.equal(meter.firstError, null)
  const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Hi' } }] })}\n\n`
  t.equal(String(meter.push(Buffer.from(chunk))), chunk)
  t.equal(meter.isAnswer, true)
})
