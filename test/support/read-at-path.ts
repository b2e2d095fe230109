/** Reads chat requests as the server does: the router finds what reads one, and the model in its path. */
import { Failure } from '../../schemas/failure.ts'
import { ROUTES } from '../../schemas/routes.ts'
import { type Route, Router } from '../../src/http/router.ts'
import type { ChatCall } from '../../src/protocols/dialect.ts'
import { READERS, type ReaderName } from '../../src/protocols/registry.ts'

const READ: Readonly<Partial<Record<keyof typeof ROUTES, ReaderName>>> = {
  createChatCompletion: 'chat-completions',
  createMessage: 'messages',
  countMessageTokens: 'messages-count',
  createResponse: 'responses',
  generateContent: 'generate-content',
  streamGenerateContent: 'generate-content-stream',
  countContentTokens: 'generate-content-count',
}
const READER_OF = new Map<Route, ReaderName>()

const router = new Router(
  Object.entries(ROUTES).flatMap(([name, [method, ...paths]]) => {
    const route = { handler: () => [] } as unknown as Route
    const reader = READ[name as keyof typeof ROUTES]
    if (reader !== undefined) READER_OF.set(route, reader)
    return paths.map((path) => [method, path, route] as const)
  }),
)

/** @throws Failure also for a path at which no request of a chat protocol is read */
export function readAtPath(path: string, query: string, body: Buffer): ChatCall {
  const found = router.find({ method: 'POST', path, header: () => '' })
  if (found instanceof Failure) throw found
  const reader = 'route' in found ? READER_OF.get(found.route) : undefined
  if (reader === undefined || !('route' in found)) throw new Error(`Nothing reads chat requests at ${path}`)
  return READERS[reader].read({ model: found.params.model, query, body })
}
