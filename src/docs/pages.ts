/** The pages of `docs` as Markdown, and their list in the form of llms.txt (https://llmstxt.org). */
import { Buffer } from 'node:buffer'
import { readdir, readFile } from 'node:fs/promises'
import { ROUTES } from '../../schemas/routes.ts'

const FOLDER = new URL('../../docs/', import.meta.url)
const IS_PAGE = /\.md$/
const TITLE = /^# (.+)$/m
/** The first paragraph, even below a heading; not a table, a list or code. */
const FIRST_PARAGRAPH = /\n\n([A-Z`][^\n]*(?:\n[^\n]+)*)/
const FIRST_SENTENCE = /^.*?[.:](?= |$)/
const LINK = /\[([^\]]*)\]\([^)]*\)/g

export interface Docs {
  /** By file name, such as `clients.md`. */
  readonly pages: ReadonlyMap<string, Buffer>
  readonly index: Buffer
}

export async function readDocs(): Promise<Docs> {
  const names = (await readdir(FOLDER)).filter((name) => IS_PAGE.test(name)).sort()
  const pages = await Promise.all(
    names.map(async (name) => [name, await readFile(new URL(name, FOLDER))] as const),
  )
  return { pages: new Map(pages), index: Buffer.from(printIndex(pages)) }
}

const printIndex = (pages: readonly (readonly [name: string, page: Buffer])[]): string =>
  `# Tollgate

> A prepaid gateway in front of many model providers: one key, one wallet, every call metered to the last token.

## Docs

${pages.map(([name, page]) => printEntry(name, page.toString())).join('\n')}

## API

- [OpenAPI description](${ROUTES.readReference[1]}): every endpoint with its fields and errors
- [Models](${ROUTES.listPublicModels[1]}): the models of this installation with their prices, without a key
- [Status](${ROUTES.showStatus[1]}): which models work now, and in the last 30 days, without a key
`

function printEntry(name: string, page: string): string {
  const title = TITLE.exec(page)?.[1] ?? name
  const paragraph = FIRST_PARAGRAPH.exec(page)?.[1]?.replaceAll('\n', ' ').replace(LINK, '$1') ?? ''
  const says = (FIRST_SENTENCE.exec(paragraph)?.[0] ?? paragraph).slice(0, -1)
  return `- [${title}](${ROUTES.openReference[1]}/${name})${says === '' ? '' : `: ${says}`}`
}
