/** Serves a few texts by Node's own HTTP server: for a process without clients, which loads no uWebSockets.js. */
import { once } from 'node:events'

/** An import from an ES module also loads Node's WebSocket: 7 MB of memory. */
const { createServer } = process.getBuiltinModule('node:http')
const TEXT_CONTENT_TYPE = 'text/plain; charset=utf-8'

interface TextAnswer {
  readonly status: number
  readonly body: string
  /** Content type; plain text by default. */
  readonly type?: string
}

export interface TextServer {
  /** Ends every connection. */
  close(): void
}

/** Listens, and answers GET and HEAD by the path. Rejects where the address cannot be listened on. */
export async function serveTexts(
  { host, port }: { readonly host: string; readonly port: number },
  answerTo: (path: string) => Promise<TextAnswer>,
): Promise<TextServer> {
  const server = createServer(async ({ method, url = '' }, response) => {
    const { status, body, type }: TextAnswer =
      method === 'GET' || method === 'HEAD'
        ? await answerTo(url.split('?', 1)[0]!).catch(() => ({ status: 500, body: 'failed\n' }))
        : { status: 405, body: 'Only GET and HEAD are answered here\n' }
    response.writeHead(status, {
      'content-type': type ?? TEXT_CONTENT_TYPE,
      ...(status === 405 && { allow: 'GET, HEAD' }),
    })
    response.end(body)
  })
  server.listen({ host, port })
  await once(server, 'listening')
  return {
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
