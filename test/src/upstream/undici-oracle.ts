import { Client } from 'undici'
import type { Origin } from '../../../src/upstream/client.ts'
import { TEST_DEADLINE_MS } from './recorded-calls.ts'

/** What either client made of an answer; names in lower case, values without surrounding blanks. */
export interface Answer {
  readonly accepted: boolean
  readonly status: number
  readonly fields: readonly string[]
  readonly body: string
  readonly reason: string
}

function readFields(raw: readonly Buffer[]): string[] {
  const fields: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toString('latin1').toLowerCase()
    const value = raw[i + 1]!.toString('latin1').replace(/^[ \t]+|[ \t]+$/g, '')
    fields.push(`${name}: ${value}`)
  }
  return fields
}

/** Asks undici, on a connection of its own. */
export async function askUndici(origin: Origin, method: 'GET' | 'HEAD', path: string): Promise<Answer> {
  const client = new Client(`http://${origin.authority}`, {
    headersTimeout: TEST_DEADLINE_MS,
    bodyTimeout: TEST_DEADLINE_MS,
  })
  try {
    return await new Promise<Answer>((resolve) => {
      let status = 0
      let fields: string[] = []
      let body = ''
      client.dispatch(
        { method, path },
        {
          onRequestStart() {},
          onResponseStart(controller, statusCode) {
            if (statusCode < 200) return
            status = statusCode
            fields = readFields(controller.rawHeaders as Buffer[])
          },
          onResponseData(_controller, chunk) {
            body += chunk.toString('latin1')
          },
          onResponseEnd() {
            resolve({ accepted: true, status, fields, body, reason: '' })
          },
          onResponseError(_controller, error) {
            resolve({ accepted: false, status, fields, body, reason: `${error.name}: ${error.message}` })
          },
        },
      )
    })
  } finally {
    await client.destroy()
  }
}
