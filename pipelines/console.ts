/** `GET /console`: the web console. Its files have hashed names; every other path is a page of the application. */
import { from, of } from 'rxjs'
import { Failure } from '../schemas/failure.ts'
import type { ConsoleFile } from '../src/console/files.ts'
import type { GatewayRequest, Handler, HeaderList } from '../src/http/handler.ts'
import { acceptsCoding, compressReply } from './calls/compression.ts'

export interface Console {
  /** By their path; empty where the console was not built. */
  readonly files: ReadonlyMap<string, ConsoleFile>
  /** The one host name under which the console is served; null for any. */
  readonly host: string | null
}

const PAGE = 'index.html'
const HASHED = 'assets/'

/** Nothing is loaded from or sent to other hosts; pictures that were made may come from a bucket. */
const PAGE_HEADERS: HeaderList = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; " +
      "img-src 'self' data: blob: https:; media-src 'self' blob: https:; " +
      "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
]
const IMMUTABLE = 'public, max-age=31536000, immutable'

/** Returns whether the console is served under the host name of the request. */
export const isAtHost = ({ host }: Console, { header }: Pick<GatewayRequest, 'header'>): boolean =>
  host === null || header('host').replace(/:\d+$/, '') === host

/** @throws Failure `not_found`; `service_unavailable` where the console was not built */
export const consolePage =
  (served: Console): Handler =>
  (request) => {
    const { path, params, header } = request
    const { files } = served
    if (!isAtHost(served, request))
      throw new Failure('not_found', 'The console is not served under this host name.')
    // `/console` itself has none.
    const name = params.page ?? ''
    const found = files.get(name)
    const isAsset = name.startsWith(HASHED)
    if (found === undefined && isAsset) throw new Failure('not_found', `There is no file at ${path}.`)
    const file = found ?? files.get(PAGE)
    if (file === undefined)
      throw new Failure(
        'service_unavailable',
        'The console was not built. Run "npm install" in the folder of the service, and start it again.',
      )
    const accepted = header('accept-encoding')
    const reply = {
      type: 'full' as const,
      status: 200,
      headers: [
        ['content-type', file.type],
        ['cache-control', isAsset ? IMMUTABLE : 'no-cache'],
        ...(isAsset ? [] : PAGE_HEADERS),
      ] satisfies HeaderList,
    }
    if (file.brotli === null || !acceptsCoding(accepted, 'br'))
      return from(compressReply({ ...reply, body: file.bytes }, accepted))
    const headers = [...reply.headers, ['vary', 'accept-encoding'], ['content-encoding', 'br']] as const
    return of({ ...reply, headers, body: file.brotli })
  }
