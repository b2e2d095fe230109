/**
 * A process of its own: `node call-without-files.ts BASE_URL CALLS`. Calls once, takes every file it may open, calls
 * that often at once, then once more. Prints how each call ended, as JSON.
 */
import { openSync } from 'node:fs'
import { parseOrigin, UpstreamClient } from '../../../src/upstream/client.ts'
import { getRequest, run } from './recorded-calls.ts'

export interface Ends {
  readonly first: string
  readonly crowd: readonly string[]
  readonly last: string
}

const [baseUrl = '', calls = ''] = process.argv.slice(2)
const { origin } = parseOrigin(baseUrl)
const client = new UpstreamClient({ maxIdlePerOrigin: 0 })

async function call(): Promise<string> {
  const { failure } = await run(client, getRequest(origin))
  return failure?.kind ?? 'answered'
}

function takeEveryFile(): void {
  try {
    for (;;) openSync('/dev/null', 'r')
  } catch {
    // That was the last.
  }
}

const first = await call()
takeEveryFile()
const crowd = await Promise.all(Array.from({ length: Number(calls) }, call))
const ends: Ends = { first, crowd, last: await call() }
client.close()
process.stdout.write(JSON.stringify(ends))
