/** A process whose clients have taken every file it may open still reaches its upstreams, with files held back. */
import { execFile } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { RESERVED_DESCRIPTORS } from '../../../src/upstream/limits.ts'
import type { Ends } from './call-without-files.ts'
import { answer, replyingServer } from './fixture.ts'

const MAX_OPEN_FILES = 100
const CALLS = RESERVED_DESCRIPTORS + 20

const PROGRAM = fileURLToPath(new URL('call-without-files.ts', import.meta.url))

async function callsThere(baseUrl: string): Promise<Ends> {
  const node = [process.execPath, PROGRAM, baseUrl, String(CALLS)]
  const limited = ['-c', `ulimit -n ${MAX_OPEN_FILES}; exec "$@"`, 'sh', ...node]
  return JSON.parse(await text(execFile('sh', limited, { timeout: 60_000 }).stdout!))
}

// A name is looked up, which takes files too.
for (const host of ['127.0.0.1', 'localhost'])
  t.test(host, async (t) => {
    const server = await replyingServer(t, () => answer('ok'))
    const { first, crowd, last } = await callsThere(`http://${host}:${server.origin.port}`)
    t.equal(first, 'answered')
    const count = (wanted: string) => crowd.filter((end) => end === wanted).length
    const answered = count('answered')
    // More than there are files held back, when the first have ended before the last have looked up the name.
    t.ok(answered > 0, `${answered} with the files held back`)
    t.equal(answered + count('exhausted'), CALLS, 'the others get the reason')
    t.equal(last, 'answered', 'what was given back serves again')
  })
