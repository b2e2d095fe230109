/** A connection lost at the first answer after its start: the caller gets the error, and there is no other. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { connect } from '../../../../src/postgres/connection.ts'
import { isTransient } from '../../../../src/postgres/errors.ts'
import { relayTo } from '../relay.ts'
import { startDatabase } from '../support.ts'

const { url } = await startDatabase(t)

const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05I', 'latin1')
const ENDS = {
  end: (socket: Socket) => socket.destroy(),
  reset: (socket: Socket) => socket.resetAndDestroy(),
}

/** The server's address by way of here, where the first connection is lost in place of that answer. */
function addressWithCut(t: Test, cut: (socket: Socket) => void): Promise<string> {
  let isToBeCut = true
  return relayTo(t, url, (client, server) => {
    let isStarted = false
    client.pipe(server)
    server.on('data', (bytes) => {
      if (isStarted && isToBeCut) {
        isToBeCut = false
        return cut(client)
      }
      isStarted ||= bytes.includes(READY_FOR_QUERY)
      client.write(bytes)
    })
  })
}

// An error that nobody catches fails the test by itself.
for (const [how, cut] of Object.entries(ENDS))
  t.test(how, async (t) => {
    const sql = connect(await addressWithCut(t, cut), { max: 1, name: 'test' })
    const error: unknown = await sql`SELECT 1`.catch((error: unknown) => error)
    t.ok(isTransient(error), `${error}`)
    t.same([...(await sql`SELECT 2 AS two`)], [{ two: 2 }], 'the pool works again')
    await sql.end()
  })
