/** The reference: the document of all endpoints, and the script of the page that shows it. */
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Reference } from '../../../pipelines/openapi.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { openApiDocument } from '../../openapi/openapi.ts'
import { PAGE } from '../../openapi/page.ts'
import { VERSION } from '../version.ts'

/** Everything in one file, which `npm install` puts there. */
const SCRIPT = new URL('../../openapi/built/reference.js', import.meta.url)

const readScript = async () => promisify(gzip)(await readFile(SCRIPT))
let script: Promise<Buffer> | undefined

export const makeReference = (): Reference => ({
  document: JSON.stringify(openApiDocument(ENDPOINTS, VERSION)),
  page: PAGE,
  // Read when the first browser wants it, then kept.
  script: () => (script ??= readScript()),
})
