import { request } from 'node:http'
import { ANSWER, isWhole, type Profile, streamText } from '../upstream/replies.ts'
import { type Endpoint, requestBody } from './request.ts'

/**
 * One call whose response is checked in full. The load only counts; this check ensures that it counts the right
 * response and not an error of the same length.
 */

const PROBE_LIMIT_MS = 30_000
const DATA = 'data: '

const fetchBody = (endpoint: Endpoint, profile: Profile): Promise<string> =>
  new Promise((resolve, reject) => {
    const body = requestBody(profile, endpoint.model)
    const call = request({
      host: '127.0.0.1',
      port: endpoint.port,
      path: endpoint.path,
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        ...endpoint.headers,
        'content-length': Buffer.byteLength(body),
      },
      timeout: PROBE_LIMIT_MS,
    })
    call.once('error', reject)
    call.once('timeout', () => call.destroy(new Error('no answer in time')))
    call.once('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.once('error', reject)
      response.once('end', () => {
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`status ${response.statusCode}: ${text.slice(0, 300)}`))
      })
    })
    call.end(body)
  })

interface Completion {
  choices?: { message?: { content?: string }; delta?: { content?: string } }[]
}

/** Throws unless the body is what the upstream sent. */
export const checkBody = (profile: Profile, chunks: number, body: string): void => {
  if (isWhole(profile)) {
    const content = (JSON.parse(body) as Completion).choices?.[0]?.message?.content
    if (content !== ANSWER) throw new Error(`not the upstream's answer: ${body.slice(0, 300)}`)
    return
  }
  const events = body.split('\n\n').slice(0, -1)
  if (events.pop() !== 'data: [DONE]') throw new Error(`a stream without [DONE]: ${body.slice(-300)}`)
  const text = events
    .filter((event) => event.startsWith(DATA))
    .map((event) => (JSON.parse(event.slice(DATA.length)) as Completion).choices?.[0]?.delta?.content ?? '')
    .join('')
  if (text !== streamText(chunks)) throw new Error(`not the upstream's text: ${body.slice(0, 300)}`)
}

/** Makes one call of a profile and checks it. Returns the length of the body in bytes. */
export const probe = async (endpoint: Endpoint, profile: Profile, chunks: number): Promise<number> => {
  const body = await fetchBody(endpoint, profile)
  checkBody(profile, chunks, body)
  return Buffer.byteLength(body)
}
