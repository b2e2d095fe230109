/** The reference: the document of all endpoints, and the script of the page that shows it. */
import { Buffer } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Reference } from '../../../pipelines/openapi.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { openApiDocument } from '../../openapi/openapi.ts'
import { PAGE } from '../../openapi/page.ts'
import { VERSION } from '../version.ts'

/** Everything in one file, which `npm install` puts there. */
const SCRIPT = new URL('../../openapi/built/reference.js', import.meta.url)

const makeDocument = async () =>
  Buffer.from(JSON.stringify(await openApiDocument(ENDPOINTS, VERSION, () => setImmediate())))
const readScript = async () => promisify(gzip)(await readFile(SCRIPT))
let document: Promise<Buffer> | undefined
let script: Promise<Buffer> | undefined

/** Made when someone wants it first, then kept: few do, and it is a fifth of the CPU of a gateway's start. */
export const REFERENCE: Reference = {
  document: () => (document ??= makeDocument()),
  page: Buffer.from(PAGE),
  script: () => (script ??= readScript()),
}
