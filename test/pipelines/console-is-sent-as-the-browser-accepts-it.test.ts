/** The console's files are compressed for browsers that accept brotli, and only for those. */
import { firstValueFrom } from 'rxjs'
import t from 'tap'
import { consolePage } from '../../pipelines/console.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'

const PAGE = { type: 'text/html; charset=utf-8', bytes: Buffer.from('plain'), brotli: Buffer.from('br') }
const handle = consolePage({ files: new Map([['index.html', PAGE]]), host: null })

async function bodyFor(accepted: string): Promise<string> {
  const request = {
    path: '/console/keys',
    params: { page: 'keys' },
    header: () => accepted,
  } as unknown as GatewayRequest
  const reply = await firstValueFrom(handle(request))
  return reply.type === 'full' ? String(reply.body) : reply.type
}

for (const accepted of ['br', 'gzip, br', 'br;q=0.1', 'gzip;q=0, br; q=1'])
  t.test(`${accepted}: compressed`, async (t) => t.equal(await bodyFor(accepted), 'br'))

for (const refused of ['', 'gzip', 'br;q=0', 'gzip, br; q=0.000', 'BR;Q=0'])
  t.test(`${refused || 'nothing'}: not compressed`, async (t) => t.equal(await bodyFor(refused), 'plain'))
