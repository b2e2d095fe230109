/** An S3 server of a third party as a process: keeps what it is given in the folder, listens on the port. */
import S3rver from 's3rver'
import { LOOPBACK } from '../../../src/embedded/ports.ts'
import { answerWhenWritten } from '../../support/bucket.ts'

const [directory = '', port = ''] = process.argv.slice(2)
const server = new S3rver({
  address: LOOPBACK,
  port: Number(port),
  silent: true,
  directory,
  configureBuckets: [{ name: 'media' }],
})
answerWhenWritten(server.store)
await server.run()
// Connections that were idle and end at once would use up the client's retries on a busy machine.
server.httpServer.keepAliveTimeout = 0
